"""Classes have one order, and are matched by name."""

from __future__ import annotations

import json

import numpy as np
import pytest

import easyllp
from easyllp import LLPClassifier, bag_metric, bag_scorer, evaluate

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def levels():
    """Rows of three kinds, their bags, and a report whose columns are not in sorted order."""
    rng = np.random.default_rng(5)
    y = rng.integers(3, size=900)
    X = (rng.normal(size=(900, 2)) * 0.5 + np.array([[0, 2], [2, 0], [-2, -1]])[y]).astype(np.float32)
    bags, proportions = easyllp.make_bags(y, size=5)
    names = ["none", "few", "many"]
    counts = pd.DataFrame({name: np.bincount(bags, y == place) for place, name in enumerate(names)}).rename_axis("bag")
    return X, np.asarray(names)[y], bags, counts, pd.DataFrame(proportions, columns=names)


def test_a_report_in_another_order_is_the_same_report(levels):
    X, y, bags, counts, _ = levels
    model = LLPClassifier(l2=0.01).fit_bags(X, counts, bags)
    assert model.classes_.tolist() == model._model.classes == ["few", "many", "none"]
    assert model.score(X, y) > 0.9
    other = LLPClassifier(l2=0.01).fit_bags(X, counts[["many", "none", "few"]], bags)
    assert other._model.to_bytes() == model._model.to_bytes()
    np.testing.assert_allclose(model.prior_, [(y == name).mean() for name in model.classes_])
    assert model.holdout_["accuracy"].value > 0.85 and model.holdout_.classes == ("few", "many", "none")


def test_probabilities_and_counts_are_matched_by_name(levels):
    X, y, bags, counts, proportions = levels
    model = LLPClassifier(l2=0.01).fit_bags(X, counts, bags)
    p = model.predict_proba(X)
    expected = evaluate(p, bags=bags, counts=counts[["few", "many", "none"]])
    assert expected["accuracy"].value > 0.85 and expected.classes == ("few", "many", "none")
    for found in (
        evaluate(p, bags=bags, counts=counts, classes=model.classes_),
        evaluate(p, bags=bags, counts=counts[["many", "none", "few"]], classes=model.classes_),
        evaluate(p, proportions, bags, classes=model.classes_),
        evaluate(pd.DataFrame(p, columns=model.classes_), bags=bags, counts=counts),
    ):
        assert found["accuracy"].value == pytest.approx(expected["accuracy"].value, abs=1e-9)
    # Probabilities without names may be in either order.
    for call in (lambda: evaluate(p, bags=bags, counts=counts), lambda: bag_metric("accuracy", p, proportions, bags)):
        with pytest.raises(ValueError, match="'none', 'few', 'many', which are not in sorted order.*classes=model.classes_"):
            call()
    with pytest.raises(ValueError, match="'low', 'few', 'many', but probabilities are of 'few', 'many', 'none'"):
        evaluate(p, bags=bags, counts=counts.rename(columns={"none": "low"}), classes=model.classes_)
    assert bag_metric("accuracy", p, proportions, bags, classes=model.classes_) == pytest.approx(expected["accuracy"].value, abs=1e-9)


def test_proportions_have_names_too(levels):
    X, y, bags, _, proportions = levels
    model = LLPClassifier(l2=0.01).fit(X, proportions, bags=bags)
    assert model.classes_.tolist() == ["few", "many", "none"] and model.score(X, y) > 0.9
    assert model.score(X, proportions, bags=bags) > 0.85
    assert model.score(X, proportions[["many", "none", "few"]], bags=bags) == model.score(X, proportions, bags=bags)
    with pytest.raises(ValueError, match="'none', 'few', 'lots'"):
        model.score(X, proportions.rename(columns={"many": "lots"}), bags=bags)
    scorer = bag_scorer("accuracy")
    assert scorer._score_func(proportions, model.predict_proba(X), bags) == pytest.approx(model.score(X, proportions, bags=bags))


def test_a_wrapped_classifier_has_the_names(levels):
    from sklearn.linear_model import LogisticRegression

    from easyllp.sklearn import EasyLLPWrapper

    X, y, bags, _, proportions = levels
    model = EasyLLPWrapper(LogisticRegression()).fit(X, proportions, bags=bags)
    assert model.classes_.tolist() == ["few", "many", "none"] and model.score(X, y) > 0.9
    assert model.score(X, proportions, bags=bags) > 0.85


def test_a_prior_goes_by_class(levels):
    X, _, bags, counts, _ = levels
    with_prior = lambda prior: LLPClassifier(l2=0.01, method_params={"prior": prior})
    by_name = with_prior({"none": 0.36, "few": 0.31, "many": 0.33}).fit_bags(X, counts, bags)
    in_order = counts[["few", "many", "none"]]
    assert with_prior([0.31, 0.33, 0.36]).fit_bags(X, in_order, bags)._model.to_bytes() == by_name._model.to_bytes()
    in_words = LLPClassifier("easyllp:prior=[0.31,0.33,0.36]", l2=0.01)
    assert in_words.fit_bags(X, in_order, bags)._model.to_bytes() == by_name._model.to_bytes()
    with pytest.raises(ValueError, match="give the prior as a dict by class"):
        in_words.fit_bags(X, counts, bags)
    with pytest.raises(ValueError, match="give the prior as a dict by class"):
        with_prior([0.36, 0.31, 0.33]).fit_bags(X, counts, bags)
    with pytest.raises(ValueError, match="prior has shares of 'a', 'b', but the classes are"):
        with_prior({"a": 0.5, "b": 0.5}).fit_bags(X, counts, bags)


def test_one_count_is_of_the_class_that_it_names(levels):
    X, y, bags, counts, _ = levels
    few = counts["few"]
    model = LLPClassifier(l2=0.01).fit_bags(X, few, bags)
    assert model.classes_.tolist() == [0, 1] and model._model.classes == ["not few", "few"]
    assert str(model.holdout_).endswith("The positive class is 'few'.")
    p = model.predict_proba(X)
    expected = evaluate(p, bags=bags, counts=few)
    assert expected["accuracy"].value > 0.9 and expected.classes == ("not few", "few")
    assert evaluate(p, bags=bags, counts=few, classes=model.classes_)["auc"] == expected["auc"]
    # The same probabilities with their columns the other way round.
    swapped = evaluate(p[:, ::-1], bags=bags, counts=few, classes=["few", "other"])
    assert swapped["accuracy"].value == pytest.approx(expected["accuracy"].value, abs=1e-9)
    with pytest.raises(ValueError, match="'few', but probabilities are of 'no', 'yes'"):
        evaluate(p, bags=bags, counts=few, classes=["no", "yes"])


@pytest.mark.parametrize("columns", [["a", 1], [1.5, "x"], [("a", 1), ("b", 2)], [None, "b"]])
def test_names_that_no_file_can_hold_are_refused(levels, columns):
    X, _, bags, counts, _ = levels
    both = pd.DataFrame({0: counts["few"], 1: 5 - counts["few"]})
    both.columns = pd.Index(columns, tupleize_cols=False, dtype=object)
    with pytest.raises(ValueError, match="must all be text, whole numbers, numbers or truth values"):
        LLPClassifier().fit_bags(X, both, bags)


def test_onnx_has_the_order_of_predict_proba(levels):
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y, bags, counts, _ = levels
    for report, labels in ((counts, y), (counts["few"], np.where(y == "few", "few", "not few"))):
        model = LLPClassifier(l2=0.01).fit_bags(X, report, bags)
        session = onnxruntime.InferenceSession(model.to_onnx(), providers=["CPUExecutionProvider"])
        label, probabilities, _ = session.run(None, {"x": X})
        np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5)
        assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == model._model.classes
        assert (label == labels).mean() > 0.9

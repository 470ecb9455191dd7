"""Bags that do not look random: warnings and withheld metrics."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold

import easyllp
from easyllp import Estimate, Evaluation, LLPClassifier, NotRandomWarning, WithheldError, bag_metric, bag_scorer, evaluate, make_bags
from easyllp.sklearn import EasyLLPWrapper


@pytest.fixture(scope="module")
def by_region():
    """Rows, bags by region with their proportions, and probabilities: labels depend on the region."""
    rng = np.random.default_rng(5)
    region = rng.integers(60, size=3000)
    X = np.stack([rng.normal(size=3000), region % 2], axis=1).astype(np.float32)
    labels = (rng.random(3000) < 0.2 + 0.5 * X[:, 1]).astype(int)
    proportions = np.array([labels[region == r].mean() for r in range(60)])[region]
    return X, region, proportions, labels, 0.2 + 0.5 * X[:, 1]


def test_metrics_are_withheld_and_cannot_be_taken_for_numbers(by_region):
    _, region, proportions, labels, p = by_region
    with pytest.warns(NotRandomWarning, match=r"do not look random: counts vary .* withheld\. Use force=True"):
        found = evaluate(p, proportions, region, curves=True)
    assert found.is_withheld and len(found) == 0 and found.curves == {} and found.get("auc") is None
    with pytest.raises(WithheldError, match="do not look random"):
        found["auc"]
    with pytest.raises(WithheldError, match="do not look random"):
        found.to_frame()
    assert "withheld" in repr(found) and str(found).startswith("The bags do not look random")
    assert found.force()["auc"].value > 0.5 and not found.force().is_withheld
    assert str(pickle.loads(pickle.dumps(found))) == str(found)
    with pytest.warns(NotRandomWarning, match="do not look random"):
        forced = evaluate(p, proportions, region, force=True)
    assert forced["brier"] == found.force()["brier"]
    assert str(forced).startswith("The bags do not look random") and "auc" in str(forced)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate(p, labels)["auc"].value > 0.5  # row labels assume nothing
        bags, proportions = make_bags(labels, size=50, seed=2)
        assert evaluate(p, proportions, bags)["accuracy"].value > 0.5


def test_fit_warns_and_withholds_what_it_chose_by(by_region):
    X, region, proportions, labels, _ = by_region
    with pytest.warns(NotRandomWarning, match="choice of a penalty .* holdout_ is withheld.*easyllp assumes random bags"):
        model = LLPClassifier().fit(X, proportions, bags=region)
    assert model.holdout_.is_withheld and "brier" in model.holdout_.force()
    counts = {r: int(labels[region == r].sum()) for r in range(60)}
    with pytest.warns(NotRandomWarning, match="do not look random") as said:
        model = LLPClassifier("count-likelihood", epochs=2, holdout=0).fit_bags(X, counts, region)
    assert "assumes" not in str(said[0].message) and model.holdout_ is None
    with pytest.raises(WithheldError, match="do not look random"):
        model.score(X, proportions, bags=region)
    assert model.score(X, labels) > 0.5
    with pytest.warns(NotRandomWarning, match="so is a model"):
        wrapper = EasyLLPWrapper(LogisticRegression(), probe=False).fit(X, proportions, bags=region)
    with pytest.raises(WithheldError):
        wrapper.score(X, proportions, bags=region)


def test_nothing_is_chosen_by_metrics_that_are_withheld(by_region):
    import sklearn

    X, region, proportions, _, p = by_region
    with pytest.raises(WithheldError, match="force=True"):
        bag_metric("brier", p, proportions, region)
    with pytest.warns(NotRandomWarning):
        assert np.isfinite(bag_metric("brier", p, proportions, region, force=True))

    def search(force):
        scoring = bag_scorer("brier", force=force)
        with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = GridSearchCV(LLPClassifier(holdout=0), {"l2": [0.01, 1.0]}, scoring=scoring, cv=GroupKFold(2))
            return found.fit(X, proportions, bags=region, groups=region).cv_results_["mean_test_score"]

    assert np.isnan(search(False)).all() and np.isfinite(search(True)).all()


@pytest.mark.parametrize("module", ["xgboost", "lightgbm"])
def test_boosting_metrics_are_withheld(by_region, module):
    pytest.importorskip(module)
    metric = getattr(__import__(f"easyllp.{module}"), module).metric
    _, region, proportions, _, p = by_region
    with pytest.raises(WithheldError, match="do not look random"):
        metric("brier", proportions, region)
    with pytest.warns(NotRandomWarning):
        forced = metric("brier", proportions, region, link="identity", force=True)
    assert np.isfinite(forced.value(p))


def test_what_cannot_be_true_is_marked():
    metrics = {"auc": Estimate(1.013, 0.95, 1.0, 0.03, True), "f1": Estimate(2.6, 1.0, 1.0, 0.1, True)}
    text = str(Evaluation(metrics, n_bags=4))
    assert "1.0000*" in text and "outside its range" in text and "1.013" not in text and "2.6" not in text
    assert str(metrics["auc"]) == "1.0000* (0.9500 to 1.0000)"
    # Random bags that are few enough lead to it: nothing in these estimates is known to lie in its range.
    rng = np.random.default_rng(2)
    seen = []
    for seed in range(30):
        labels = rng.integers(2, size=40)
        bags, proportions = make_bags(labels, size=10, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = evaluate(np.where(labels == 1, 0.8, 0.2), proportions, bags, force=True)
        seen += [(name, estimate) for name, estimate in found.items()]
    outside = [(name, estimate) for name, estimate in seen if estimate.outside_range]
    assert outside and all(not 0 <= estimate.value <= 1 or name == "log_loss" for name, estimate in outside)
    assert all(0 <= estimate.value <= 1 for name, estimate in seen if name != "log_loss" and not estimate.outside_range)


def test_diagnose_says_the_same(by_region):
    _, region, proportions, _, _ = by_region
    found = easyllp.diagnose(proportions, region)
    assert found.verdict == "not_random" and found.p_value < 0.001
    with pytest.warns(NotRandomWarning) as said:
        evaluate(np.full(3000, 0.5), proportions, region)
    assert f"counts vary {found.ratio:.1f} times" in str(said[0].message)

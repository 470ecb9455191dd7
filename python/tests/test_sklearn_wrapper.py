"""Any classifier of scikit-learn on bags: the corrected loss by weights of rows, and what is refused."""

import itertools
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import easyllp
from easyllp.sklearn import EasyLLPWrapper


@parametrize_with_checks([EasyLLPWrapper(LogisticRegression())])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def tables(classes=2, n_rows=2400, size=4):
    """Two or three clouds of points, features not below 0, and their bags; the first cloud is the largest."""
    rng = np.random.default_rng(1)
    labels = rng.choice(classes, size=n_rows, p=[0.7, 0.3] if classes == 2 else [0.5, 0.3, 0.2])
    X = np.maximum(np.array([[2.0, 5.0], [5.0, 2.0], [6.0, 7.0]])[labels] + 1.2 * rng.normal(size=(n_rows, 2)), 0)
    bags, y = easyllp.make_bags(labels, size, seed=1)
    return X, labels, bags, y


RIGHT = [
    LogisticRegression(),
    make_pipeline(StandardScaler(), EasyLLPWrapper(SGDClassifier(loss="log_loss", random_state=1))),
    GaussianNB(),
    MultinomialNB(),
    DecisionTreeClassifier(min_samples_leaf=100, random_state=1),
    HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=4, random_state=1),
    MLPClassifier((8,), max_iter=60, random_state=1),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", RIGHT, ids=lambda estimator: type(estimator).__name__)
def test_rows_are_learnt_from_bags(estimator, classes):
    if classes == 3 and isinstance(estimator, (GaussianNB, MultinomialNB)):
        pytest.skip("variances of three classes need more bags, and lengths of rows do not matter to the other")
    X, labels, bags, y = tables(classes)
    if hasattr(estimator, "steps"):
        model = clone(estimator).fit(X, y, easyllpwrapper__bags=bags)
    else:
        model = EasyLLPWrapper(estimator).fit(X, y, bags=bags)
    assert model.classes_.tolist() == list(range(classes))
    assert np.mean(model.predict(X) == labels) > 0.9
    said = model.predict_proba(X)
    assert said.shape == (len(X), classes) and (said >= 0).all()
    np.testing.assert_allclose(said.sum(axis=1), 1)


def test_the_objective_is_unbiased_over_all_dealings():
    # At given weights of the model, the slope of the weighted log loss is linear in the targets: what the estimator
    # minimises has the supervised slope on average. Checked through counts that BernoulliNB adds up from its weights.
    X, labels = np.array([[0.0], [1], [1], [0], [1], [0]]), np.array([0, 1, 0, 0, 1, 0])
    wrapped, alone = [], BernoulliNB().fit(X, labels)
    for bags in map(np.array, sorted(set(itertools.permutations([0, 0, 1, 1, 2, 2])))):
        y = np.array([labels[bags == bag].mean() for bag in bags])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # six rows may well have negative counts, and no logarithm of them
            wrapped.append(EasyLLPWrapper(BernoulliNB(), probe=False).fit(X, y, bags=bags).estimator_)
    np.testing.assert_allclose(np.mean([m.class_count_ for m in wrapped], axis=0), alone.class_count_, atol=1e-5)
    np.testing.assert_allclose(np.mean([m.feature_count_ for m in wrapped], axis=0), alone.feature_count_, atol=1e-5)


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(), SGDClassifier(loss="log_loss", random_state=1), DecisionTreeClassifier(random_state=1)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_bags_of_one_are_supervision(estimator):
    X, labels, _, _ = tables(n_rows=300)
    alone = clone(estimator).fit(X, labels)
    ones = EasyLLPWrapper(estimator).fit(X, labels.astype(float), bags=np.arange(300))
    np.testing.assert_allclose(ones.predict_proba(X), alone.predict_proba(X), atol=1e-6)
    without = EasyLLPWrapper(estimator).fit(X, np.array(["no", "yes"])[labels])
    np.testing.assert_allclose(without.predict_proba(X), alone.predict_proba(X), atol=1e-6)
    assert without.classes_.tolist() == ["no", "yes"] and without.score(X, np.array(["no", "yes"])[labels]) > 0.9


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (AdaBoostClassifier(), "does not support negative weights"),
        (RandomForestClassifier(n_estimators=5), "does not support negative weights"),
        (GradientBoostingClassifier(n_estimators=5), "negative weights"),
        (RidgeClassifier(), "negative weights"),
        (LogisticRegression(solver="liblinear"), "handles them wrongly"),
        (LinearSVC(), "handles them wrongly"),
        (SVC(), "handles them wrongly"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_estimators_that_are_wrong_about_negative_weights_are_refused(estimator, words):
    X, _, bags, y = tables(n_rows=400)
    with pytest.raises(ValueError, match=words) as caught:
        EasyLLPWrapper(estimator).fit(X, y, bags=bags)
    assert type(estimator).__name__ in str(caught.value) and "use another classifier" in str(caught.value).lower()


@pytest.mark.parametrize(
    "estimator",
    [KNeighborsClassifier(), make_pipeline(StandardScaler(), LogisticRegression())],
    ids=["knn", "pipeline"],
)
def test_estimators_without_weights_are_refused(estimator):
    X, _, bags, y = tables(n_rows=400)
    with pytest.raises(TypeError, match="has no sample_weight in fit"):
        EasyLLPWrapper(estimator).fit(X, y, bags=bags)


def test_what_cannot_be_told_is_a_warning():
    X, _, bags, y = tables(n_rows=400)
    with pytest.warns(UserWarning, match="it is unknown whether it supports"):
        EasyLLPWrapper(DummyClassifier()).fit(X, y, bags=bags)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EasyLLPWrapper(DummyClassifier(), probe=False).fit(X, y, bags=bags)


def test_probabilities_are_kept_within_0_and_1():
    X, _, bags, y = tables(size=16)
    model = EasyLLPWrapper(DecisionTreeClassifier(max_depth=6, random_state=1)).fit(X, y, bags=bags)
    assert model.estimator_.predict_proba(X).max() > 1
    assert model.predict_proba(X).max() <= 1


def test_predictions_that_are_no_numbers_are_refused():
    X, _, bags, y = tables(n_rows=120, size=12)
    # Far clouds: the few bags there are leave variances of each class with so much noise that some are negative.
    with pytest.raises(ValueError, match="GaussianNB was fitted but predicts NaN"):
        EasyLLPWrapper(GaussianNB()).fit(20 * X, y, bags=bags)


def test_methods_are_those_of_the_estimator():
    X, _, bags, y = tables(n_rows=400)
    assert not hasattr(EasyLLPWrapper(SGDClassifier()), "predict_proba")
    assert not hasattr(EasyLLPWrapper(GaussianNB()), "decision_function")
    model = EasyLLPWrapper(SGDClassifier(random_state=1)).fit(X, y, bags=bags)
    assert model.decision_function(X).shape == (400,) and model.n_features_in_ == 2
    with pytest.raises(NotFittedError):
        EasyLLPWrapper(GaussianNB()).predict(X)


@pytest.mark.parametrize("classes", [2, 3])
def test_predictions_without_probabilities_are_judged_by_bags(classes):
    X, labels, bags, y = tables(classes)
    model = EasyLLPWrapper(SGDClassifier(loss="hinge", random_state=1)).fit(X, y, bags=bags)
    assert not hasattr(model, "predict_proba")
    # From 600 bags of four the estimate has a standard error of about 0.02.
    assert model.score(X, y, bags=bags) == pytest.approx(np.mean(model.predict(X) == labels), abs=0.06)
    truth = labels if classes == 2 else np.eye(3)[labels]
    assert model.score(X, truth, bags=np.arange(len(X))) == pytest.approx(model.score(X, labels))


def test_a_known_prior_is_the_papers_form():
    X, _, bags, y = tables(n_rows=400)
    given = EasyLLPWrapper(GaussianNB(), prior=0.3, probe=False).fit(X, y, bags=bags)
    np.testing.assert_allclose(given.estimator_.class_prior_[1], np.mean(0.3 + 4 * (y - 0.3)), atol=1e-5)


def test_what_is_wrong_is_said():
    X, _, bags, y = tables(n_rows=400)
    with pytest.raises(ValueError, match="X has 399 rows and y has 400"):
        EasyLLPWrapper(GaussianNB()).fit(X[1:], y, bags=bags)
    with pytest.raises(ValueError, match="same for all rows of a bag"):
        EasyLLPWrapper(GaussianNB()).fit(X, np.linspace(0, 1, 400), bags=bags)


def test_sparse_rows_and_data_frames():
    sparse = pytest.importorskip("scipy.sparse")
    X, _, bags, y = tables(n_rows=800)
    dense = EasyLLPWrapper(LogisticRegression()).fit(X, y, bags=bags)
    other = EasyLLPWrapper(LogisticRegression()).fit(sparse.csr_matrix(X), y, bags=bags)
    np.testing.assert_allclose(other.predict_proba(sparse.csr_matrix(X)), dense.predict_proba(X), atol=1e-3)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    named = EasyLLPWrapper(LogisticRegression()).fit(frame, y, bags=bags)
    np.testing.assert_allclose(named.predict_proba(frame), dense.predict_proba(X))

"""LightGBM on bags: slopes of the corrected loss, the metric of held-out bags, and models that learn rows."""

import pickle

import numpy as np
import pytest

lightgbm = pytest.importorskip("lightgbm")

import easyllp  # noqa: E402
import easyllp.lightgbm  # noqa: E402

QUICK = {"num_leaves": 4, "min_data_in_leaf": 40, "learning_rate": 0.3, "num_threads": 1, "seed": 1, "verbose": -1}


@pytest.mark.parametrize("shape", [(5,), (5, 3)])
def test_slopes_are_those_of_the_corrected_loss(shape):
    rng = np.random.default_rng(1)
    scores, targets = rng.normal(size=shape), 3 * rng.normal(size=shape)
    if len(shape) == 2:
        targets += (1 - targets.sum(axis=1, keepdims=True)) / 3

    def loss(scores):
        free = np.logaddexp(0, scores) if scores.ndim == 1 else np.log(np.exp(scores).sum(axis=1))
        return free.sum() - (targets * scores).sum()

    slope, curvature = easyllp.lightgbm.objective(targets)(None, scores)
    assert (curvature > 0).all()
    for place in np.ndindex(shape):
        step = np.zeros(shape)
        step[place] = 1e-4
        assert slope[place] == pytest.approx((loss(scores + step) - loss(scores - step)) / 2e-4, abs=1e-6)


def test_bags_of_one_are_supervision():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    labels = (X[:, 0] + rng.normal(size=400) > 0.5) * 1.0
    targets = easyllp.soft_targets(labels, np.arange(400))
    ours = lightgbm.train({**QUICK, "objective": easyllp.lightgbm.objective(targets)}, lightgbm.Dataset(X), 10)
    own = {**QUICK, "objective": "binary", "boost_from_average": False}
    theirs = lightgbm.train(own, lightgbm.Dataset(X, label=labels), 10)
    np.testing.assert_allclose(easyllp.lightgbm.probabilities(ours.predict(X)), theirs.predict(X), atol=1e-5)


def tables(classes=2, n_rows=2400, size=4):
    """Rows and bags to train on and to hold out."""
    X = np.random.default_rng(1).normal(size=(n_rows, 2))
    labels = (X[:, 0] > 0.5) * 1 if classes == 2 else (X @ [[1, -1, 0], [0, 0, 1]]).argmax(axis=1)
    bags, shares = easyllp.make_bags(labels, size, seed=1)
    held_out = np.isin(bags, np.unique(bags)[::5])
    return [(X[part], labels[part], bags[part], shares[part]) for part in (~held_out, held_out)]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ["brier", "accuracy"])
def test_rows_are_learnt_from_bags(classes, name):
    (X, _, bags, y), (held_X, held_labels, held_bags, held_y) = tables(classes)
    objective = easyllp.lightgbm.objective(easyllp.soft_targets(y, bags))
    train = lightgbm.Dataset(X)
    found = {}
    model = lightgbm.train(
        {**QUICK, "objective": objective, "num_class": 1 if classes == 2 else classes},
        train,
        40,
        valid_sets=[lightgbm.Dataset(held_X, reference=train)],
        feval=easyllp.lightgbm.metric(name, held_y, held_bags),
        callbacks=[lightgbm.early_stopping(10, verbose=False), lightgbm.record_evaluation(found)],
    )
    said = easyllp.lightgbm.probabilities(model.predict(held_X))
    predicted = said > 0.5 if classes == 2 else said.argmax(axis=1)
    assert np.mean(predicted == held_labels) > (0.93 if classes == 2 else 0.85)
    # The best is the lowest Brier score, but the highest accuracy; and predictions are of that round.
    assert list(found["valid_0"]) == [name]
    best = (min if name == "brier" else max)(found["valid_0"][name])
    assert model.best_score["valid_0"][name] == best
    assert easyllp.bag_metric(name, said, held_y, held_bags) == pytest.approx(best, abs=1e-5)


def test_labels_of_the_data_serve_as_targets():
    (X, _, bags, y), (held_X, _, _, _) = tables()
    targets = easyllp.soft_targets(y, bags)
    given = lightgbm.train({**QUICK, "objective": easyllp.lightgbm.objective(targets)}, lightgbm.Dataset(X), 5)
    labelled = lightgbm.train(
        {**QUICK, "objective": easyllp.lightgbm.objective()}, lightgbm.Dataset(X, label=targets), 5
    )
    np.testing.assert_allclose(given.predict(held_X), labelled.predict(held_X), atol=1e-5)


def test_the_scikit_learn_interface():
    (X, _, bags, y), (held_X, held_labels, held_bags, held_y) = tables()
    model = lightgbm.LGBMRegressor(
        n_estimators=40,
        objective=easyllp.lightgbm.objective(),
        **{"num_leaves": 4, "min_child_samples": 40, "learning_rate": 0.3, "n_jobs": 1, "verbose": -1},
    )
    model.fit(
        X,
        easyllp.soft_targets(y, bags),
        eval_set=[(held_X, held_y)],
        eval_metric=easyllp.lightgbm.metric("brier", held_y, held_bags),
        callbacks=[lightgbm.early_stopping(10, verbose=False)],
    )
    said = easyllp.lightgbm.probabilities(model.predict(held_X))
    assert np.mean((said > 0.5) == held_labels) > 0.93
    assert easyllp.bag_metric("brier", said, held_y, held_bags) == pytest.approx(model.best_score_["valid_0"]["brier"])
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(held_X), model.predict(held_X))


def test_what_is_wrong_is_said():
    y, bags = [0.0, 0.0, 1.0, 1.0], [1, 1, 2, 2]
    with pytest.raises(ValueError, match="unknown metric 'f1'"):
        easyllp.lightgbm.metric("f1", y, bags)
    with pytest.raises(ValueError, match="of 4 held-out rows and was given 3 scores"):
        easyllp.lightgbm.metric("brier", y, bags)(None, np.zeros(3))
    with pytest.raises(ValueError, match="num_class if and only if"):
        easyllp.lightgbm.objective(np.ones((4, 3)) / 3)(None, np.zeros(4))

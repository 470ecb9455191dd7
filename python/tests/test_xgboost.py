"""XGBoost on bags: slopes of the corrected loss, the metric of held-out bags, and models that learn rows."""

import itertools
import pickle

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost")

import easyllp  # noqa: E402
import easyllp.xgboost  # noqa: E402

QUICK = {"max_depth": 2, "min_child_weight": 10, "eta": 0.3, "nthread": 1, "seed": 1}


def corrected_loss(scores, targets):
    """Σ_c A_c ℓ(f, c), for log loss."""
    if scores.ndim == 1:
        return np.logaddexp(0, scores) - targets * scores
    return np.log(np.exp(scores).sum(axis=1)) - (targets * scores).sum(axis=1)


@pytest.mark.parametrize("shape", [(5,), (5, 3)])
def test_slope_and_curvature_are_those_of_the_corrected_loss(shape):
    rng = np.random.default_rng(1)
    scores, targets = rng.normal(size=shape), 3 * rng.normal(size=shape)
    if len(shape) == 2:
        targets += (1 - targets.sum(axis=1, keepdims=True)) / 3
    slope, curvature = easyllp.xgboost.objective()(targets, scores)
    step = 1e-4
    for place in np.ndindex(shape):
        moved = [scores.copy() for _ in range(2)]
        moved[0][place] += step
        moved[1][place] -= step
        up, at, down = (corrected_loss(at, targets)[place[0]] for at in (moved[0], scores, moved[1]))
        assert slope[place] == pytest.approx((up - down) / (2 * step), abs=1e-6)
        # Softmax has twice the diagonal, as XGBoost's own: scores of the other classes move as well.
        factor = 1 if len(shape) == 1 else 2
        assert curvature[place] == pytest.approx(factor * (up - 2 * at + down) / step**2, abs=1e-4)


def test_slopes_are_unbiased_over_all_dealings():
    scores, labels = np.random.default_rng(1).normal(size=6), np.array([1.0, 0, 0, 1, 0, 0])
    slopes = []
    for bags in map(np.array, sorted(set(itertools.permutations([0, 0, 1, 1, 2, 2])))):
        shares = np.array([labels[bags == bag].mean() for bag in bags])
        slopes.append(easyllp.xgboost.objective(easyllp.soft_targets(shares, bags))(None, scores)[0] @ scores)
    assert np.mean(slopes) == pytest.approx(easyllp.xgboost.objective(labels)(None, scores)[0] @ scores, abs=1e-6)


def test_curvature_is_never_zero():
    slope, curvature = easyllp.xgboost.objective([1.0, 0.0])(None, np.array([1000.0, -1000.0]))
    assert slope.tolist() == [0, 0] and (curvature == 1e-6).all()


def test_weights_of_rows_count():
    rng = np.random.default_rng(1)
    data = xgboost.DMatrix(rng.normal(size=(4, 1)), label=[-1, 2, 0, 1], weight=[1, 2, 3, 4])
    scores = rng.normal(size=4)
    slope, curvature = easyllp.xgboost.objective()(scores, data)
    alone = easyllp.xgboost.objective()(data.get_label(), scores)
    np.testing.assert_allclose(slope, alone[0] * [1, 2, 3, 4])
    np.testing.assert_allclose(curvature, alone[1] * [1, 2, 3, 4])
    assert np.array_equal(
        easyllp.xgboost.objective()(data.get_label(), scores, sample_weight=data.get_weight())[0], slope
    )


def test_bags_of_one_are_supervision():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    labels = (X[:, 0] + rng.normal(size=300) > 0.5) * 1.0
    targets = easyllp.soft_targets(labels, np.arange(300))
    parameters = {**QUICK, **easyllp.xgboost.parameters(targets)}
    ours = xgboost.train(parameters, xgboost.DMatrix(X), 10, obj=easyllp.xgboost.objective(targets))
    theirs = xgboost.train(parameters, xgboost.DMatrix(X, label=labels), 10)
    np.testing.assert_allclose(ours.predict(xgboost.DMatrix(X)), theirs.predict(xgboost.DMatrix(X)), atol=1e-5)


def tables(classes=2, n_rows=2400, size=4):
    """Rows and bags to train on and to hold out."""
    X = np.random.default_rng(1).normal(size=(n_rows, 2))
    labels = (X[:, 0] > 0.5) * 1 if classes == 2 else (X @ [[1, -1, 0], [0, 0, 1]]).argmax(axis=1)
    bags, shares = easyllp.make_bags(labels, size, seed=1)
    held_out = np.isin(bags, np.unique(bags)[::5])
    parts = [(X[part], labels[part], bags[part], shares[part]) for part in (~held_out, held_out)]
    return parts


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_are_learnt_from_bags(classes):
    (X, _, bags, y), (held_X, held_labels, held_bags, held_y) = tables(classes)
    targets = easyllp.soft_targets(y, bags)
    found = {}
    model = xgboost.train(
        {**QUICK, **easyllp.xgboost.parameters(targets)},
        xgboost.DMatrix(X),
        40,
        obj=easyllp.xgboost.objective(targets),
        evals=[(xgboost.DMatrix(held_X), "held_out")],
        custom_metric=easyllp.xgboost.metric("brier", held_y, held_bags),
        early_stopping_rounds=10,
        evals_result=found,
        verbose_eval=False,
    )
    assert list(found["held_out"]) == ["brier"]
    said = model.predict(xgboost.DMatrix(held_X))
    predicted = said > 0.5 if classes == 2 else said.argmax(axis=1)
    assert np.mean(predicted == held_labels) > (0.93 if classes == 2 else 0.85)
    # The metric saw probabilities, and stopped at the best of them.
    said = model.predict(xgboost.DMatrix(held_X), iteration_range=(0, model.best_iteration + 1))
    best = min(found["held_out"]["brier"])
    assert (
        easyllp.bag_metric("brier", said, held_y, held_bags) == pytest.approx(best, abs=1e-5)
        and model.best_score == best
    )


def test_auc_stops_at_the_highest():
    (X, _, bags, y), (held_X, _, held_bags, held_y) = tables()
    targets = easyllp.soft_targets(y, bags)
    model = xgboost.train(
        {**QUICK, **easyllp.xgboost.parameters(targets)},
        xgboost.DMatrix(X),
        20,
        obj=easyllp.xgboost.objective(targets),
        evals=[(xgboost.DMatrix(held_X), "held_out")],
        custom_metric=easyllp.xgboost.metric("auc", held_y, held_bags),
        early_stopping_rounds=5,
        evals_result=(found := {}),
        verbose_eval=False,
    )
    assert model.best_score == max(found["held_out"]["auc"])


@pytest.mark.parametrize("classes", [2, 3])
def test_the_scikit_learn_interface(classes):
    (X, _, bags, y), (held_X, held_labels, held_bags, held_y) = tables(classes)
    model = xgboost.XGBRegressor(
        n_estimators=40,
        objective=easyllp.xgboost.objective(),
        eval_metric=easyllp.xgboost.metric("brier", held_y, held_bags),
        early_stopping_rounds=10,
        **{"max_depth": 2, "min_child_weight": 10, "learning_rate": 0.3, "n_jobs": 1},
    )
    model.fit(X, easyllp.soft_targets(y, bags), eval_set=[(held_X, held_y)], verbose=False)
    said = easyllp.xgboost.probabilities(model.predict(held_X))
    predicted = said > 0.5 if classes == 2 else said.argmax(axis=1)
    assert np.mean(predicted == held_labels) > (0.93 if classes == 2 else 0.85)
    assert easyllp.bag_metric("brier", said, held_y, held_bags) == pytest.approx(model.best_score, abs=1e-5)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(held_X), model.predict(held_X))


def test_the_identity_takes_probabilities_as_they_are():
    y, bags = [0.0, 0.0, 1.0, 1.0], ["a", "a", "b", "b"]
    metric = easyllp.xgboost.metric("brier", y, bags, link="identity")
    assert metric(y, np.array([-0.1, 0.0, 1.0, 1.2])) == pytest.approx(0, abs=1e-9)


def test_what_is_wrong_is_said():
    y, bags = [0.0, 0.0, 1.0, 1.0], [1, 1, 2, 2]
    with pytest.raises(ValueError, match="unknown metric 'f1'"):
        easyllp.xgboost.metric("f1", y, bags)
    with pytest.raises(ValueError, match="use the metric 'error'"):
        easyllp.xgboost.metric("accuracy", y, bags)
    with pytest.raises(ValueError, match="unknown link"):
        easyllp.xgboost.metric("brier", y, bags, link="probit")
    with pytest.raises(ValueError, match="same for all rows of a bag"):
        easyllp.xgboost.metric("brier", [0.0, 0.5, 1.0, 1.0], bags)
    with pytest.raises(ValueError, match="of 4 held-out rows and was given 3 scores"):
        easyllp.xgboost.metric("brier", y, bags)(None, np.zeros(3))
    with pytest.raises(ValueError, match="the targets of the training rows"):
        easyllp.xgboost.objective([0.5, 1.5])(None, np.zeros(3))
    with pytest.raises(ValueError, match="target of row index 1 is not a finite number"):
        easyllp.xgboost.objective([0.5, np.nan])
    with pytest.raises(ValueError, match="there are no targets"):
        easyllp.xgboost.objective()(None, np.zeros(3))

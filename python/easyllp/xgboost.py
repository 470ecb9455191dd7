"""XGBoost on bags: an objective for soft targets, and a metric on validation bags for early stopping and model selection.

Examples
--------
>>> import numpy as np
>>> import xgboost
>>> import easyllp
>>> import easyllp.xgboost
>>> rng = np.random.default_rng(1)
>>> X = rng.normal(size=(4000, 3))
>>> bags, y = easyllp.make_bags(X[:, 0] > 0, 4, seed=1)
>>> fitted = bags < 800  # bags 800 to 999 are held out
>>> targets = easyllp.soft_targets(y[fitted], bags[fitted])
>>> model = xgboost.train(
...     {**easyllp.xgboost.parameters(targets), "max_depth": 2, "min_child_weight": 20},
...     xgboost.DMatrix(X[fitted]),
...     num_boost_round=200,
...     obj=easyllp.xgboost.objective(targets),
...     evals=[(xgboost.DMatrix(X[~fitted]), "held_out")],
...     custom_metric=easyllp.xgboost.metric("brier", y[~fitted], bags[~fitted]),
...     early_stopping_rounds=20,
...     verbose_eval=False,
... )
>>> probability = model.predict(xgboost.DMatrix(X))
>>> bool(np.mean((probability > 0.5) == (X[:, 0] > 0)) > 0.95)
True
"""

from __future__ import annotations

from typing import Any

import numpy as np

from easyllp._boosting import BagMetric, Objective, checked_targets, probabilities

__all__ = ["metric", "objective", "parameters", "probabilities"]


def objective(targets: Any = None) -> Objective:
    """The corrected log loss as an objective: gradient p − A and Hessian p(1 − p), or 2p(1 − p) for several classes.

    The same object works for ``xgboost.train(obj=…)`` and ``XGBRegressor(objective=…)``. Scores are raw; see `parameters`
    for how to make `train` predict probabilities. XGBoost's own logistic objective rejects labels outside of 0 to 1,
    and clipped labels would be biased.

    Parameters
    ----------
    targets : array-like of shape (n_rows,) or (n_rows, n_classes), optional
        The targets of the training rows, from `easyllp.soft_targets`. By default the labels of the data are the
        targets, which is what ``XGBRegressor.fit(X, targets)`` and ``xgboost.cv`` need.

    Returns
    -------
    callable
        ``(scores, DMatrix) -> (slope, curvature)``, and ``(targets, scores) -> (slope, curvature)`` for the
        scikit-learn interface.

    Examples
    --------
    >>> import numpy as np
    >>> slope, curvature = objective()(np.array([1.0, -2.0]), np.zeros(2))
    >>> slope.tolist(), curvature.tolist()
    ([-0.5, 2.5], [0.25, 0.25])
    """
    return Objective(targets)


def parameters(targets: Any) -> dict[str, Any]:
    """Parameters of `xgboost.train` that go with `objective`: predict probabilities, and start from the mean target.

    They tell XGBoost how to convert scores to probabilities, so that `predict` of the model, even after saving, returns
    those.

    Parameters
    ----------
    targets : array-like of shape (n_rows,) or (n_rows, n_classes)
        The targets of the training rows, from `easyllp.soft_targets`.

    Examples
    --------
    >>> parameters([1.5, -0.5, 0.5, 0.5])
    {'objective': 'binary:logistic', 'base_score': 0.5, 'disable_default_eval_metric': True}
    """
    targets = checked_targets(targets)
    # The default metric requires row labels, and there are none.
    common = {"disable_default_eval_metric": True}
    if targets.ndim == 2:
        return {"objective": "multi:softprob", "num_class": targets.shape[1], **common}
    start = float(np.clip(targets.mean(), 1e-6, 1.0 - 1e-6))
    return {"objective": "binary:logistic", "base_score": start, **common}


class Metric(BagMetric):
    """A metric on validation bags with XGBoost's signatures."""

    def __call__(self, first: Any, second: Any) -> Any:
        if hasattr(second, "get_label"):
            return self.__name__, self.value(first)
        return self.value(second)


def metric(name: str, y: Any, bags: Any, *, link: str = "logit", force: bool = False) -> Metric:
    """A metric estimated from counts of bags, without row labels.

    It works for ``train(custom_metric=…)`` and ``XGBRegressor(eval_metric=…)``. Evaluate it only on bags that are not
    used for training.

    Parameters
    ----------
    name : {"brier", "log_loss", "error", "auc"}
        The metric. "brier" is the least noisy; use it for early stopping. XGBoost maximises "auc" and minimises
        all others, so "accuracy" is not supported: use "error".
    y : array-like of shape (n_rows,) or (n_rows, n_classes)
        The share of positive rows, or of each class, in the bag of each held-out row.
    bags : array-like of shape (n_rows,)
        The bag of each held-out row.
    link : {"logit", "identity"}
        What scores mean: raw, as with `objective`, or probabilities, as with ``reg:squarederror`` on targets.

    force : bool, default=False
        Estimate it even from bags that do not look random, with a `NotRandomWarning`; otherwise they raise a `WithheldError`.

    Returns
    -------
    callable
        ``(scores, DMatrix) -> (name, value)``, and ``(labels, scores) -> value`` for the scikit-learn interface.

    Examples
    --------
    >>> import numpy as np
    >>> held_out = metric("brier", y=[0.0, 0.0, 1.0, 1.0], bags=["a", "a", "b", "b"])
    >>> round(held_out(np.zeros(4), np.array([-9.0, -9.0, 9.0, 9.0])), 6)
    0.0
    """
    if name in ("accuracy", "balanced_accuracy"):
        raise ValueError(f"XGBoost would minimise {name}: use the metric 'error', or 'auc'")
    return Metric(name, y, bags, link, force)

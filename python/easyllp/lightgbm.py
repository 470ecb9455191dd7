"""LightGBM on bags: an objective for soft targets, and a metric on validation bags for early stopping and model selection.

Examples
--------
>>> import lightgbm
>>> import numpy as np
>>> import easyllp
>>> import easyllp.lightgbm
>>> rng = np.random.default_rng(1)
>>> X = rng.normal(size=(4000, 3))
>>> bags, y = easyllp.make_bags(X[:, 0] > 0, 4, seed=1)
>>> fitted = bags < 800  # bags 800 to 999 are held out
>>> targets = easyllp.soft_targets(y[fitted], bags[fitted])
>>> train = lightgbm.Dataset(X[fitted], label=targets)
>>> model = lightgbm.train(
...     {"objective": easyllp.lightgbm.objective(), "num_leaves": 4, "min_data_in_leaf": 100, "verbose": -1},
...     train,
...     num_boost_round=200,
...     valid_sets=[lightgbm.Dataset(X[~fitted], label=y[~fitted], reference=train)],
...     feval=easyllp.lightgbm.metric("brier", y[~fitted], bags[~fitted]),
...     callbacks=[lightgbm.early_stopping(20, verbose=False)],
... )
>>> probability = easyllp.lightgbm.probabilities(model.predict(X))
>>> bool(np.mean((probability > 0.5) == (X[:, 0] > 0)) > 0.95)
True
"""

from __future__ import annotations

from typing import Any

from easyllp._boosting import BagMetric, Objective, probabilities
from easyllp._evaluation import HIGHER_IS_BETTER

__all__ = ["metric", "objective", "probabilities"]


def objective(targets: Any = None) -> Objective:
    """The corrected log loss as an objective: gradient p − A and Hessian p(1 − p), or 2p(1 − p) for several classes.

    The same object works for ``lightgbm.train({"objective": …})`` and ``LGBMRegressor(objective=…)``. Scores are raw, and
    so is the output of `predict`: `probabilities` converts them.

    Parameters
    ----------
    targets : array-like of shape (n_rows,) or (n_rows, n_classes), optional
        The targets of the training rows, from `easyllp.soft_targets`. By default the labels of the data are the
        targets, which supports two classes only: LightGBM stores one label per row. Several classes also need ``num_class``
        among the parameters.

    Returns
    -------
    callable
        ``(scores, Dataset) -> (slope, curvature)``, and ``(targets, scores) -> (slope, curvature)`` for the
        scikit-learn interface.

    Examples
    --------
    >>> import numpy as np
    >>> slope, curvature = objective()(np.array([1.0, -2.0]), np.zeros(2))
    >>> slope.tolist(), curvature.tolist()
    ([-0.5, 2.5], [0.25, 0.25])
    """
    return Objective(targets)


class Metric(BagMetric):
    """A metric on validation bags with LightGBM's signatures."""

    def __call__(self, first: Any, second: Any) -> tuple[str, float, bool]:
        scores = first if hasattr(second, "get_label") else second
        return self.__name__, self.value(scores), HIGHER_IS_BETTER[self.__name__]


def metric(name: str, y: Any, bags: Any, *, link: str = "logit", force: bool = False) -> Metric:
    """A metric estimated from counts of bags, without row labels.

    It works for ``train(feval=…)`` and ``LGBMRegressor.fit(eval_metric=…)``. Evaluate it only on bags that are not
    used for training.

    Parameters
    ----------
    name : {"brier", "log_loss", "error", "accuracy", "auc", "balanced_accuracy"}
        The metric. "brier" is the least noisy; use it for early stopping.
    y : array-like of shape (n_rows,) or (n_rows, n_classes)
        The share of positive rows, or of each class, in the bag of each held-out row.
    bags : array-like of shape (n_rows,)
        The bag of each held-out row.
    link : {"logit", "identity"}
        What scores mean: raw, as with `objective`, or probabilities, as with LightGBM's own regression on
        targets.

    force : bool, default=False
        Estimate it even from bags that do not look random, with a `NotRandomWarning`; otherwise they raise a `WithheldError`.

    Returns
    -------
    callable
        ``(scores, Dataset) -> (name, value, higher_is_better)``, and the same of ``(labels, scores)`` for the
        scikit-learn interface.

    Examples
    --------
    >>> import numpy as np
    >>> held_out = metric("accuracy", y=[0.0, 0.0, 1.0, 1.0], bags=["a", "a", "b", "b"])
    >>> held_out(np.zeros(4), np.array([-9.0, -9.0, 9.0, 9.0]))
    ('accuracy', 1.0, True)
    """
    return Metric(name, y, bags, link, force)

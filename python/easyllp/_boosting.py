"""Gradient boosting on bags: gradient and Hessian of the corrected log loss, and a metric on validation bags.

For two classes the corrected log loss of a row with score f and target A is log(1 + eᶠ) − A f. Its slope in f is p − A
with p = 1/(1 + e⁻ᶠ), and its second derivative p(1 − p) does not depend on A: the loss is convex for any
are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from easyllp._bags import from_proportions
from easyllp._evaluation import HIGHER_IS_BETTER, estimated
from easyllp._randomness import refuse_unless_random

Floats = npt.NDArray[np.float64]

# A curvature of zero would make a leaf's value infinite.
LEAST_CURVATURE = 1e-6


def probabilities(scores: Any) -> Floats:
    """Probabilities from raw scores.

    Parameters
    ----------
    scores : array-like of shape (n_rows,) or (n_rows, n_classes)
        Log-odds of class 1, or one score per class.

    Returns
    -------
    ndarray of the same shape
        The probability of class 1, or of each class.

    Examples
    --------
    >>> probabilities([0.0, 100.0, -100.0]).round(3).tolist()
    [0.5, 1.0, 0.0]
    >>> probabilities([[0.0, 0.0], [0.0, 100.0]]).round(3).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim == 2:
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))
    # The exponent is never positive, so nothing overflows.
    odds = np.exp(-np.abs(scores))
    return np.asarray(np.where(scores >= 0, 1.0, odds) / (1.0 + odds))


def checked_targets(targets: Any) -> Floats:
    """Targets as an array of shape (n_rows,) or (n_rows, n_classes), all finite."""
    checked: Floats = np.asarray(targets, dtype=np.float64)
    if checked.ndim == 2 and checked.shape[1] == 1:
        checked = checked[:, 0]
    if checked.ndim not in (1, 2):
        raise ValueError(f"targets must have one number per row, or one per class; they have {checked.ndim} dimensions")
    if not np.isfinite(checked).all():
        raise ValueError(f"the target of row index {int(np.argwhere(~np.isfinite(checked))[0][0])} is not a finite number")
    return checked


class Objective:
    """Slope and curvature of the corrected log loss; see the `objective` of the module it comes from.

    Called as ``(scores, data)`` by `train`, and as ``(targets, scores)`` by the scikit-learn interface, with
    ``sample_weight`` where rows have weights. A class and not a closure, so that models that hold it can be pickled.
    """

    __name__ = "easyllp"

    def __init__(self, targets: Any = None) -> None:
        self.targets = None if targets is None else checked_targets(targets)

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[Floats, Floats]:
        if hasattr(second, "get_label"):
            scores, labels, sample_weight = first, second.get_label(), second.get_weight()
        else:
            labels, scores = first, second
        scores = np.asarray(scores, dtype=np.float64)
        if self.targets is None and labels is None:
            raise ValueError("there are no targets: pass them to objective(targets), or as label of the data")
        targets = checked_targets(labels) if self.targets is None else self.targets
        if targets.ndim == 1 and scores.ndim == 2 and targets.size == scores.size:
            targets = targets.reshape(scores.shape)
        if targets.shape != scores.shape:
            raise ValueError(
                f"targets have the shape {targets.shape} and scores {scores.shape}: expected the targets of the training rows, "
                "and num_class if and only if there are several classes"
            )
        p = probabilities(scores)
        slope = p - targets
        curvature = np.maximum((1.0 if p.ndim == 1 else 2.0) * p * (1.0 - p), LEAST_CURVATURE)
        if sample_weight is not None and len(sample_weight) > 0:
            weights = np.asarray(sample_weight, dtype=np.float64)
            weights = weights if p.ndim == 1 else weights[:, None]
            slope, curvature = slope * weights, curvature * weights
        return slope, curvature


class BagMetric:
    """A metric of held-out bags from scores of their rows; see the `metric` of the module it comes from."""

    def __init__(self, name: str, y: Any, bags: Any, link: str, force: bool) -> None:
        if name not in HIGHER_IS_BETTER:
            raise ValueError(f"unknown metric {name!r}: expected one of {', '.join(HIGHER_IS_BETTER)}")
        if link not in ("logit", "identity"):
            raise ValueError(f"unknown link {link!r}: expected 'logit' for raw scores, or 'identity' for probabilities")
        self.bags = from_proportions(y, bags)
        # Once, and not in every round.
        refuse_unless_random(self.bags, force=force, stacklevel=3)
        self.__name__ = name
        self.link = link

    def value(self, scores: Any) -> float:
        """The metric, from scores in the order of the bags' rows."""
        scores = np.asarray(scores, dtype=np.float64)
        if len(scores) != len(self.bags.of_row):
            raise ValueError(
                f"the metric is of {len(self.bags.of_row)} held-out rows and was given {len(scores)} scores: evaluate no other data, "
                "in particular no training rows"
            )
        predicted = probabilities(scores) if self.link == "logit" else np.clip(scores, 0.0, 1.0)
        return estimated(self.__name__, predicted, self.bags)

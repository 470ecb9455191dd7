"""Bags from labels, and targets from bags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from easyllp import _easyllp
from easyllp._bags import Bags, from_proportions
from easyllp._settings import checked_seed, is_whole, whole_number


def counts_of(bags: Bags) -> npt.NDArray[np.float64]:
    """Counts in the form of the compiled part: a line per bag, one column for two classes."""
    return np.ascontiguousarray(bags.counts.reshape(len(bags.names), -1))


def soft_targets(
    y: Any,
    bags: Any,
    *,
    prior: float | Sequence[float] | None = None,
    bag_weights: str = "equal",
) -> npt.NDArray[np.float32]:
    """Compute soft targets, which any loss can be trained on.

    The loss ℓ(f, 0) + A·(ℓ(f, 1) − ℓ(f, 0)) with these targets A has, over random assignments of rows to bags, the same mean as the
    loss with the row labels. Targets may be outside of 0 to 1; clipping them would bias the loss.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or (n_rows, n_classes)
        Each row's bag proportion: the share of positive rows in its bag, or the share of each class.
    bags : array-like of shape (n_rows,)
        The bag id of each row, of any hashable type.
    prior : float or sequence of float, optional
        The known share of the positive class, or of each class. Targets are then the paper's, A = p + k(α − p). By default they are
        centred at the pooled proportions, which needs no prior and is exact for any sizes.
    bag_weights : {"equal", "size", "variance:RHO"}, default="equal"
        The weights of bags in centred targets.

    Returns
    -------
    targets : ndarray of shape (n_rows,) or (n_rows, n_classes), dtype float32

    Examples
    --------
    >>> from easyllp import soft_targets
    >>> soft_targets([0.5, 0.5, 1.0, 1.0], ["a", "a", "b", "b"], prior=0.5)
    array([0.5, 0.5, 1.5, 1.5], dtype=float32)
    """
    of = from_proportions(y, bags)
    shares = None if prior is None else [float(share) for share in np.atleast_1d(np.asarray(prior, dtype=float))]
    if shares is not None and bag_weights != "equal":
        raise ValueError("bag_weights cannot be combined with prior")
    if bag_weights == "noise":
        raise ValueError("bag_weights='noise' requires counts with noise: see LLPClassifier.fit_bags")
    targets = _easyllp.soft_targets(of.of_row, counts_of(of), None, shares, bag_weights)
    if targets.shape[1] == 1 and of.counts.ndim == 2:
        return np.concatenate([1 - targets, targets], axis=1)
    return targets[:, 0] if targets.shape[1] == 1 else targets


def make_bags(
    y: Any, size: int | tuple[int, int] = 64, *, seed: int = 1
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Make random bags from labelled rows, for experiments.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Row labels. The larger of two is the positive class; more classes are in sorted order.
    size : int or (int, int), default=64
        The bag size, or its minimum and maximum; the last bag may be smaller.
    seed : int, default=1
        The seed. The same seed gives the same bags as the program `easyllp bag`.

    Returns
    -------
    bags : ndarray of shape (n_rows,)
        The number of each row's bag.
    proportions : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Each row's bag proportion, as `LLPClassifier.fit` takes it for `y`.

    Examples
    --------
    >>> from easyllp import make_bags
    >>> bags, proportions = make_bags(["no", "yes", "yes", "no", "yes", "yes"], size=3)
    >>> sorted(set(proportions.round(2).tolist()))
    [0.33, 1.0]
    """
    y = np.asarray(y)
    if y.ndim != 1 or len(y) == 0:
        raise ValueError(f"y must have one label per row; its shape is {y.shape}")
    if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.round(y))).all():
        raise ValueError("y must be labels, found fractional numbers")
    if y.dtype.kind == "O" and any(value is None or value != value for value in y.tolist()):
        raise ValueError("y must be labels, found missing ones")
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError("at least two classes are required, found one in y")
    ends = list(size) if isinstance(size, (tuple, list)) else [size]
    if not 1 <= len(ends) <= 2 or not all(is_whole(end) for end in ends) or min(ends) < 1 or max(ends) != ends[-1]:
        raise ValueError(f"size is {size!r}: it must be a whole number of at least 1, or two in order")
    sizes = [whole_number("size", end, 1) for end in ends]
    of_row = _easyllp.deal(len(y), sizes, checked_seed(seed)).astype(np.int64)
    members = np.bincount(of_row)
    counts = np.zeros((len(members), len(classes)))
    np.add.at(counts, (of_row, labels), 1)
    proportions = counts / members[:, None]
    return of_row, (proportions[:, 1] if len(classes) == 2 else proportions)[of_row]

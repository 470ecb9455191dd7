"""Row-level metrics, estimated from bags."""

from __future__ import annotations

import json
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from easyllp import _easyllp
from easyllp._bags import Bags, eager, from_proportions, key, table_columns
from easyllp._classes import by_class, check_order
from easyllp._randomness import NotRandomWarning, WithheldError, refuse_unless_random
from easyllp._reports import from_report
from easyllp._settings import checked_seed, whole_number
from easyllp._targets import counts_of

#: The metrics that have a name, and whether higher is better.
HIGHER_IS_BETTER = {
    **dict.fromkeys(("brier", "log_loss", "error"), False),
    **dict.fromkeys(("accuracy", "auc", "balanced_accuracy"), True),
}


class Estimate(NamedTuple):
    """A row-level metric, estimated from bags.

    Attributes
    ----------
    value : float
        The estimate; from few bags it may leave its natural range.
    low, high : float
        The ends of its interval, clipped to the natural range.
    standard_error : float
    outside_range : bool
        Whether the value is outside its natural range: there are too few bags, or bags are not random.
    """

    value: float
    low: float
    high: float
    standard_error: float
    outside_range: bool = False

    def __str__(self) -> str:
        value, interval = _cells(self)
        return f"{value} ({interval})"


#: What an asterisk stands for.
_ON_ASTERISKS = "* The estimate is outside its range: too few bags, or bags that are not random. The nearest possible value is shown."


def _cells(estimate: Estimate) -> tuple[str, str]:
    """A value clipped to its range, marked if it differs from the estimate, and the interval."""
    value, low, high, _, outside_range = estimate
    interval = "outside its range" if outside_range and high <= low else f"{low:.4f} to {high:.4f}"
    return (f"{min(max(value, low), high):.4f}*" if outside_range else f"{value:.4f}"), interval


@dataclass(frozen=True, repr=False)
class Evaluation(Mapping[str, Estimate]):
    """Estimates by name: `evaluation["auc"].value`. It prints as a table, and `to_frame` returns a pandas DataFrame.

    Names are log_loss, brier, accuracy, and if no class is empty auc, precision, recall, f1 (for two classes) and
    balanced_accuracy.

    If the bags do not look random, metrics estimated from them are withheld: the mapping is empty, and asking for a metric
    raises a `WithheldError` with the reason. `force` returns them nevertheless.

    Attributes
    ----------
    warning : str or None
        Why the metrics may be biased.
    level : float
        The level of the intervals.
    n_bags : int
        The number of bags.
    classes : tuple, optional
        The names of the classes, if known, in the order of the confusion matrix; with two, precision, recall and f1 refer to the
        second.
    curves : dict
        For `evaluate(..., curves=True)`: confusion, and for two classes thresholds (the ROC curve, and precision against recall),
        calibration and lift; each number is an `Estimate`.
    """

    metrics: dict[str, Estimate]
    n_bags: int
    level: float = 0.95
    curves: dict[str, Any] = field(default_factory=dict)
    classes: tuple[Hashable, ...] | None = None
    warning: str | None = None
    _withheld: Evaluation | None = field(default=None, compare=False)

    @property
    def is_withheld(self) -> bool:
        """Whether metrics are withheld, since the bags do not look random."""
        return self._withheld is not None

    def force(self) -> Evaluation:
        """Return all metrics, including withheld ones, which are biased."""
        return self if self._withheld is None else self._withheld

    def __getitem__(self, name: str) -> Estimate:
        if self._withheld is not None:
            raise WithheldError(self.warning)
        return self.metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def to_frame(self) -> Any:
        """Return the metrics as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row per metric, indexed by name, with the columns value, low, high, standard_error and outside_range.

        Examples
        --------
        >>> from easyllp import evaluate
        >>> evaluate([0.9, 0.2, 0.8, 0.1], [1, 0, 1, 0]).to_frame().loc["accuracy", "value"].item()
        1.0
        """
        if self._withheld is not None:
            raise WithheldError(self.warning)
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        return pd.DataFrame.from_dict(self.metrics, orient="index", columns=list(Estimate._fields)).rename_axis("metric")

    def __repr__(self) -> str:
        lines = [] if self.warning is None else [self.warning]
        if self.metrics:
            width = max(len(name) for name in self.metrics)
            lines.append(f"{'':{width}}  from bags  {self.level * 100:g} % interval")
            for name, estimate in self.metrics.items():
                value, interval = _cells(estimate)
                lines.append(f"{name.replace('_', ' '):{width}}  {value:>9}  {interval}")
        if any(estimate.outside_range for estimate in self.metrics.values()):
            lines.append(_ON_ASTERISKS)
        # Of 0 and 1 everyone knows.
        is_named = self.classes is not None and len(self.classes) == 2 and self.classes != (0, 1)
        positive = f" The positive class is {self.classes[1]!r}." if is_named and self.classes else ""
        return "\n".join([*lines, f"From {self.n_bags} bags.{positive}"])

    def judged(self, found: dict[str, Any], force: bool) -> Evaluation:
        """Withhold the metrics if the bags do not look random."""
        if found["verdict"] == "plausible":
            return self
        if force or not found["is_rejected"]:
            return replace(self, warning=_sentence(found["words"]))
        warning = _sentence(f"{found['words']} and are withheld. Use force=True, or force() of this result, to show them")
        biased = replace(self, warning=_sentence(found["words"]))
        return replace(self, metrics={}, curves={}, warning=warning, _withheld=biased)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def logits(probabilities: Any, n_classes: int) -> npt.NDArray[np.float32]:
    """Probabilities as log-odds: one column for two classes."""
    p = np.asarray(probabilities)
    if p.dtype.kind not in "biuf":
        raise TypeError(f"probabilities must be numbers; their dtype is {p.dtype}")
    p = p.astype(np.float64)
    if p.ndim == 2 and p.shape[1] == 1:
        p = p[:, 0]
    if p.ndim not in (1, 2):
        raise ValueError(f"probabilities must be one per row, or one per class; they have {p.ndim} dimensions")
    if not np.isfinite(p).all() or p.min(initial=0.0) < -1e-6 or p.max(initial=0.0) > 1 + 1e-6:
        raise ValueError("probabilities must be between 0 and 1: convert scores to probabilities first")
    if p.ndim == 2 and (np.abs(p.sum(axis=1) - 1) > 1e-3).any():
        row = int(np.argmax(np.abs(p.sum(axis=1) - 1) > 1e-3))
        raise ValueError(f"the probabilities of row index {row} sum to {p[row].sum():g}, not to 1")
    if p.ndim == 2 and p.shape[1] == 2:
        p = p[:, 1]
    if (1 if p.ndim == 1 else p.shape[1]) != (1 if n_classes == 2 else n_classes):
        raise ValueError(f"probabilities are of {2 if p.ndim == 1 else p.shape[1]} classes, and bags count {n_classes}")
    p = np.clip(p, _easyllp.LEAST_PROBABILITY, 1.0)
    if p.ndim == 1:
        rest = np.clip(1 - p, _easyllp.LEAST_PROBABILITY, 1.0)
        return np.ascontiguousarray((np.log(p) - np.log(rest)).astype(np.float32)[:, None])
    return np.ascontiguousarray(np.log(p).astype(np.float32))


def declared_noise(noise: tuple[str, Any] | None, names: Sequence[Hashable]) -> tuple[str, list[float]] | None:
    """Noise for the compiled part: a distribution, and one scale per bag. Scales by bag id are put into the bags' order."""
    if noise is None:
        return None
    if not (isinstance(noise, tuple) and len(noise) == 2):
        raise TypeError(f'noise is {noise!r}: it must be ("laplace", scale) or ("gaussian", standard deviation)')
    law, scale = noise
    if law not in ("laplace", "gaussian"):
        raise ValueError(f"unknown noise `{law}`: choose one of laplace, gaussian")
    if hasattr(scale, "index") and hasattr(scale, "to_dict"):
        scale = scale.to_dict()
    if isinstance(scale, Mapping):
        scale = {key(name): value for name, value in scale.items()}
        missing = [name for name in names if name not in scale]
        if missing:
            raise ValueError(f"noise has no scale for {len(missing)} bags, such as {missing[0]!r}")
        scale = [scale[name] for name in names]
    scales = np.asarray(scale, dtype=np.float64)
    if scales.ndim > 0 and scales.shape != (len(names),):
        raise ValueError(f"noise has scales of shape {scales.shape} for {len(names)} bags: one for all or one per bag is required")
    return law, np.broadcast_to(scales, (len(names),)).tolist()


def evaluate(
    probabilities: Any,
    y: Any = None,
    bags: Any = None,
    *,
    counts: Any = None,
    noise: tuple[str, Any] | None = None,
    classes: Any = None,
    level: float = 0.95,
    of: str = "population",
    bootstrap: int | None = None,
    seed: int = 1,
    curves: bool = False,
    force: bool = False,
) -> Evaluation:
    """Estimate row-level metrics of probabilities, from bags that the model was not trained on.

    Every metric estimates what row labels would give: it is unbiased over random assignments of the rows to bags. So
    bags must be random: rows grouped regardless of their labels. Where the counts reject that, a `NotRandomWarning` says
    so and the metrics are withheld; see `Evaluation`.

    Parameters
    ----------
    probabilities : array-like of shape (n_rows,) or (n_rows, n_classes)
        What `predict_proba` gives, or the probabilities of the positive class.
    y : array-like of shape (n_rows,) or (n_rows, n_classes)
        Each row's bag proportion; without `bags`, the row labels as 0 and 1 or as one column per class.
    bags : array-like of shape (n_rows,), optional
        The bag id of each row; by default every row is its own bag.
    counts : mapping or table, optional
        Instead of `y`: a report of counts by bag id, as for `LLPClassifier.fit_bags`.
    classes : array-like of shape (n_classes,), optional
        The class of each column of `probabilities`, such as `model.classes_`; by default the names of its columns, if any.
        Columns of `y` and of `counts` are matched with them by name. It is required if these names are not in sorted order.
    noise : (str, float or array-like), optional
        Noise that was added to `counts`: ("laplace", scale) or ("gaussian", standard deviation), of all bags or one per bag.
    level : float, default=0.95
        The level of intervals.
    of : {"population", "rows"}, default="population"
        What intervals cover: metrics of the population that the rows were drawn from, or of these rows. For these rows only the
        assignment to bags is random. The values are the same.
    bootstrap : int, optional
        The number of bootstrap draws of bags for the intervals; by default they are computed from standard errors.
    seed : int, default=1
        The seed of these draws.
    curves : bool, default=False
        Add confusion, thresholds, calibration and lift.
    force : bool, default=False
        Return metrics even if the bags do not look random. The warning remains.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> from easyllp import evaluate, make_bags
    >>> labels = np.arange(2000) % 2
    >>> bags, proportions = make_bags(labels, size=10)
    >>> right_in_nine_of_ten = np.where(np.arange(2000) % 20 < 2, 1 - labels, labels) * 0.8 + 0.1
    >>> accuracy = evaluate(right_in_nine_of_ten, proportions, bags)["accuracy"]
    >>> accuracy.low < 0.9 < accuracy.high
    True
    """
    given, probabilities, classes = _given(probabilities, y, bags, counts, classes)
    return evaluated(
        logits(probabilities, given.n_classes),
        "logit",
        given,
        classes,
        noise,
        level=level,
        of=of,
        bootstrap=bootstrap,
        seed=seed,
        curves=curves,
        force=force,
    )


def evaluated(
    scores: npt.NDArray[np.float32],
    link: str,
    given: Bags,
    classes: tuple[Hashable, ...] | None,
    noise: tuple[str, Any] | None,
    *,
    level: float = 0.95,
    of: str = "population",
    bootstrap: int | None = None,
    seed: int = 1,
    curves: bool = False,
    force: bool = False,
) -> Evaluation:
    """How good scores are, from bags with their counts in the order of scores; for functions that users call."""
    if of not in ("rows", "population"):
        raise ValueError(f"of is {of!r}: choose rows or population")
    answer = json.loads(
        _easyllp.evaluate(
            scores,
            link,
            given.of_row,
            counts_of(given),
            declared_noise(noise, given.names),
            level,
            of == "population",
            None if bootstrap is None else (whole_number("bootstrap", bootstrap, 100, 10**6), checked_seed(seed)),
            curves,
        )
    )
    found = answer.pop("randomness")
    evaluation = Evaluation(
        {name: _estimate(found) for name, found in answer.pop("metrics")},
        n_bags=len(given.names),
        level=level,
        curves=_with_estimates(answer),
        classes=classes,
    ).judged(found, force)
    if evaluation.warning is not None:
        warnings.warn(evaluation.warning, NotRandomWarning, stacklevel=3)
    return evaluation


def _given(
    probabilities: Any, y: Any, bags: Any, counts: Any, classes: Any
) -> tuple[Bags, npt.NDArray[Any], tuple[Hashable, ...] | None]:
    """Bags with their counts in the order of probabilities, these, and the names of the classes where they are known."""
    probabilities = eager(probabilities)
    if classes is None and len(table_columns(probabilities) or []) > 1:
        classes = table_columns(probabilities)
    probabilities = np.asarray(probabilities)
    given = bags_of(len(probabilities), y, bags, counts)
    if classes is not None:
        classes = np.asarray(classes).tolist()
        return by_class(given, classes), probabilities, tuple(classes)
    check_order(given)
    names = given.columns
    if names is not None and given.counts.ndim == 1:
        names = [f"not {names[0]}", names[0]]
    return given, probabilities, None if names is None else tuple(names)


def bags_of(n_rows: int, y: Any, bags: Any, counts: Any) -> Bags:
    """The bags that `evaluate` is called with."""
    if counts is not None:
        if bags is None or y is not None:
            raise ValueError("counts require bags and exclude y")
        return from_report(bags, counts, n_rows)
    if n_rows == 0:
        raise ValueError("there are no rows")
    if y is None:
        raise ValueError("y, each row's bag proportion, or counts by bag are required")
    return from_proportions(y, np.arange(n_rows) if bags is None else bags, n_rows)


def _estimate(found: dict[str, Any]) -> Estimate:
    nan = float("nan")
    value, low, high, error = (
        nan if found[name] is None else found[name] for name in ("value", "low", "high", "standard_error")
    )
    return Estimate(value, low, high, error, found["outside_range"])


def _with_estimates(part: Any) -> Any:
    if isinstance(part, dict):
        if "standard_error" in part:
            return _estimate(part)
        return {name: _with_estimates(value) for name, value in part.items()}
    return [_with_estimates(value) for value in part] if isinstance(part, list) else part


def bag_metric(
    name: str, probabilities: Any, y: Any, bags: Any = None, *, classes: Any = None, force: bool = False
) -> float:
    """One row-level metric, estimated from bags alone.

    A number cannot say that it should not be trusted: bags that do not look random raise a `WithheldError`.

    Parameters
    ----------
    name : {"log_loss", "brier", "error", "accuracy", "auc", "balanced_accuracy"}
    probabilities, y, bags, classes
        As in `evaluate`.
    force : bool, default=False
        Estimate it even if the bags do not look random, with a `NotRandomWarning`.

    Examples
    --------
    >>> from easyllp import bag_metric
    >>> bag_metric("error", [0.9, 0.2, 0.8, 0.1], [1, 0, 1, 0])
    0.0
    """
    given, probabilities, _ = _given(probabilities, y, bags, None, classes)
    if bags is not None:
        refuse_unless_random(given, force=force, stacklevel=2)
    return estimated(name, probabilities, given)


def estimated(name: str, probabilities: Any, given: Bags) -> float:
    """One row-level metric, from bags that were tested before."""
    value, *_ = _easyllp.metric(name, logits(probabilities, given.n_classes), "logit", given.of_row, counts_of(given))
    return value


def bag_scorer(name: str, *, force: bool = False) -> Any:
    """A scorer for scikit-learn that needs only bags: for `GridSearchCV`, `cross_val_score` and similar functions.

    Higher is better, as in scikit-learn: metrics for which lower is better are negated. Bags are passed by metadata routing, which must be
    enabled; they stay whole in each fold with `GroupKFold`. Bags of a fold that do not look random raise a `WithheldError`,
    which a search turns into NaN and a warning instead of using biased numbers.

    Parameters
    ----------
    name : {"log_loss", "brier", "error", "accuracy", "auc", "balanced_accuracy"}
    force : bool, default=False
        Score even bags that do not look random, with a `NotRandomWarning`.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from easyllp import LLPClassifier, bag_scorer, datasets, make_bags
    >>> train, test = datasets.optdigits()
    >>> bags, proportions = make_bags(train.y % 2, size=8)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(LLPClassifier(holdout=0), {"l2": [0.01, 0.1]}, scoring=bag_scorer("brier"), cv=GroupKFold(3))
    ...     search = search.fit(train.X, proportions, bags=bags, groups=bags)
    >>> search.score(test.X, test.y % 2) > -0.2
    True
    """
    from sklearn.metrics import make_scorer

    if name not in HIGHER_IS_BETTER:
        bag_metric(name, [0.5, 0.5], [0, 1])  # says which there are
    scorer = make_scorer(
        _BagMetric(name, force), greater_is_better=HIGHER_IS_BETTER[name], response_method="predict_proba"
    )
    import sklearn

    # A request can only be set while routing is enabled, but remains set.
    with sklearn.config_context(enable_metadata_routing=True):
        return scorer.set_score_request(bags=True)


def _is_fraction(y: Any) -> bool:
    y = np.asarray(y)
    return bool(y.dtype.kind == "f" and (y != np.round(y)).any())


class _BagMetric:
    """A metric with a name of its own, which can be pickled."""

    def __init__(self, name: str, force: bool) -> None:
        self.name = name
        self.force = force
        self.__name__ = f"bag_{name}"

    def __call__(self, y_true: Any, y_pred: Any, bags: Any = None) -> float:
        if bags is None and _is_fraction(y_true):
            raise ValueError(
                "y holds proportions, and no bags have reached the scorer: enable metadata routing "
                "(sklearn.set_config(enable_metadata_routing=True)) and pass bags= to fit"
            )
        # Estimators have their classes in sorted order.
        columns: list[Any] = table_columns(y_true) or []
        classes = sorted(columns) if len(columns) > 1 else None
        return bag_metric(self.name, y_pred, y_true, bags, classes=classes, force=self.force)

    def __repr__(self) -> str:
        return self.__name__

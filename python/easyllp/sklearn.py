"""Any scikit-learn classifier on bags, if it supports sample weights, including negative ones.

A row with the target A is used once for each class: with label 1 and the weight A, and with label 0 and the
weight 1 − A. To a classifier that adds up weighted losses that is the corrected loss itself. Targets leave [0, 1], so
weights are negative, and many classifiers reject them, or drop them silently, which would bring the bias of naive
proportions back. `EasyLLPWrapper` therefore tests the classifier on a small problem first. With scikit-learn 1.9 it
finds right:

- LogisticRegression with all solvers but liblinear, SGDClassifier, MLPClassifier;
- GaussianNB, BernoulliNB, MultinomialNB, if there are so many bags that none of their variances and shares comes out
  negative (`fit` refuses what then predicts NaN);
- DecisionTreeClassifier, ExtraTreesClassifier, HistGradientBoostingClassifier, and LGBMClassifier of LightGBM.

It refuses

- LogisticRegression(solver="liblinear"), LinearSVC and SVC, which drop negative weights;
- RidgeClassifier, which takes roots of weights;
- AdaBoostClassifier, BaggingClassifier, RandomForestClassifier, GradientBoostingClassifier and XGBClassifier, which
  raise errors of their own; for XGBoost there is `easyllp.xgboost`;
- classifiers without `sample_weight`.

Targets are noisy: trees need large leaves, and boosting few rounds of shallow trees. Choose
settings on validation bags.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from easyllp._bags import eager, from_proportions
from easyllp._classes import check_prior, in_class_order, prior_of
from easyllp._evaluation import bag_metric
from easyllp._randomness import NotRandomWarning, randomness
from easyllp._targets import soft_targets

__all__ = ["EasyLLPWrapper"]


Method = TypeVar("Method", bound=Callable[..., Any])


def _if_estimator_has(method: str) -> Callable[[Method], Method]:
    def check(wrapper: EasyLLPWrapper) -> bool:
        # Asks for the method, so that the estimator's own AttributeError says why it is not there.
        getattr(getattr(wrapper, "estimator_", wrapper.estimator), method)
        return True

    return cast("Callable[[Method], Method]", available_if(check))


class EasyLLPWrapper(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier, trained on bags through weights of rows.

    Parameters
    ----------
    estimator : estimator
        A classifier whose `fit` has `sample_weight` and supports negative weights. For a pipeline, wrap its last
        step.
    prior : float or array-like of shape (n_classes,), optional
        The share of class 1, or of each class, if it is known; see `easyllp.soft_targets`.
    bag_weights : str
        The weights of bags; see `easyllp.soft_targets`.
    probe : bool
        Whether `fit` first tests the estimator on a small problem with negative weights, and rejects one that fails
        it, or that predicts NaN after fitting. The test takes two fits of some hundred rows.

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        If there were bags, 0 and 1, or the sorted names of the columns of `y`, or their places where they have none; otherwise the
        labels.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import easyllp
    >>> from easyllp.sklearn import EasyLLPWrapper
    >>> X = np.random.default_rng(1).normal(size=(2000, 2))
    >>> bags, y = easyllp.make_bags(X[:, 0] > 0, 4, seed=1)
    >>> model = EasyLLPWrapper(LogisticRegression()).fit(X, y, bags=bags)
    >>> bool(np.mean(model.predict(X) == (X[:, 0] > 0)) > 0.95)
    True
    """

    # Bags are asked for wherever metadata is routed.
    __metadata_request__fit = {"bags": True}
    __metadata_request__score = {"bags": True}

    def __init__(self, estimator: Any, *, prior: Any = None, bag_weights: str = "equal", probe: bool = True) -> None:
        self.estimator = estimator
        self.prior = prior
        self.bag_weights = bag_weights
        self.probe = probe

    def fit(self, X: Any, y: Any, *, bags: Any = None) -> EasyLLPWrapper:
        """Train on bags, or on labels.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe with n_rows rows
            What the estimator takes.
        y : array-like of shape (n_rows,) or (n_rows, n_classes)
            With bags, the share of positive rows, or of each class, in each row's bag. Without, the labels: every row
            is a bag of its own, and the estimator is trained as without the wrapper.
        bags : array-like of shape (n_rows,), optional
            The bag id of each row, of any hashable type.
        """
        X = eager(X)
        if bags is None:
            self.estimator_ = clone(self.estimator).fit(X, y)
            return self
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(
                f"{_name(self.estimator)} has no sample_weight in fit, which targets of bags require: use a classifier "
                "that has it, and wrap that one itself if it is part of a pipeline or of a search"
            )
        given = from_proportions(y, bags)
        found = randomness(given)
        if found["verdict"] != "plausible":
            warnings.warn(f"{found['words']}, and so is a model that is trained on them", NotRandomWarning, stacklevel=2)
        check_prior(self.prior, given)
        given, classes = in_class_order(given)
        y, prior = given.labels, prior_of(self.prior, classes)
        targets = np.asarray(soft_targets(y, bags, prior=prior, bag_weights=self.bag_weights), dtype=np.float64)
        n_rows = _num_samples(X)
        if len(targets) != n_rows:
            raise ValueError(f"X has {n_rows} rows and y has {len(targets)}: both need one entry per row")
        if targets.ndim == 2 and not targets.any(axis=0).all():
            empty = int(np.argmin(targets.any(axis=0)))
            raise ValueError(f"no bag counts a row of class {classes[empty]!r}: leave its column out")
        if self.probe:
            _try_negative_weights(self.estimator)
        of_classes = np.stack([1.0 - targets, targets], axis=1) if targets.ndim == 1 else targets
        # A row's copies stay side by side and those of no weight are left out, so that bags of one row are just labels.
        row, label = np.nonzero(of_classes)
        copies = _safe_indexing(X, row)
        fitted = clone(self.estimator).fit(copies, classes[label], sample_weight=of_classes[row, label])
        if self.probe:
            _check_finite(fitted, _safe_indexing(X, np.arange(min(n_rows, 100))))
        self.estimator_ = fitted
        return self

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels, in the order of `predict_proba`'s columns."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.classes_)

    @property
    def n_features_in_(self) -> int:
        """How many columns X had."""
        try:
            check_is_fitted(self)
        except Exception as error:
            raise AttributeError("n_features_in_ is known once fit has been called") from error
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """The names of X's columns, if it had some."""
        return np.asarray(self.estimator_.feature_names_in_)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, bags: Any = None) -> float:
        """Return the accuracy: from row labels `y`, or with `bags` estimated from the proportions of bags."""
        if bags is None:
            return float(super().score(X, y, sample_weight))
        if hasattr(self, "predict_proba"):
            return bag_metric("accuracy", self.predict_proba(X), y, bags, classes=self.classes_)
        # Predictions are treated as certain, which does not change accuracy.
        return bag_metric("accuracy", self.predict(X)[:, None] == self.classes_, y, bags, classes=self.classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The label of each row."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(eager(X)))

    @_if_estimator_has("predict_proba")
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class, of shape (n_rows, n_classes).

        Probabilities outside of [0, 1] are clipped: a tree's leaf holds the mean target of its rows.
        """
        check_is_fitted(self)
        shares = np.clip(self.estimator_.predict_proba(eager(X)), 0.0, None)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    @_if_estimator_has("decision_function")
    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """The estimator's scores."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(eager(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.classifier_tags = inner.classifier_tags
        return tags


def _check_finite(fitted: Any, rows: Any) -> None:
    """Reject a classifier that predicts NaN, for example after a negative variance estimate."""
    for method in ("predict_proba", "decision_function"):
        if hasattr(fitted, method):
            with np.errstate(all="ignore"):
                said = getattr(fitted, method)(rows)
            if not np.isfinite(said).all():
                raise ValueError(
                    f"{_name(fitted)} was fitted but predicts NaN: targets are noisy, and an estimate that is never "
                    "negative on labels, such as a variance, was negative. Use more or smaller bags, or "
                    "another classifier, such as LogisticRegression"
                )
            return


def _name(estimator: Any) -> str:
    return type(estimator).__name__


def _try_negative_weights(estimator: Any) -> None:
    """Reject an estimator that does not support negative weights.

    Two clouds of points have their labels with the weight 1, the wrong labels with the weight 2, and these once more
    with −2. The wrong labels cancel out, so the clouds are separated as without them. If negative weights are
    dropped, or treated as positive, the wrong labels dominate, and nearly all predictions are reversed.
    """
    told: list[float] = []
    for shift in (0.0, 6.0):  # some estimators take no negative features, others see no difference far from zero
        points = _clouds(shift)
        try:
            alone = _fitted(estimator, points[:1])
        except Exception:
            continue
        told.append(np.mean(alone.predict(points[3][0]) == points[3][1]))
        if told[-1] < 0.75:
            continue
        try:
            cancelled = _fitted(estimator, points[:3])
            right = np.mean(cancelled.predict(points[3][0]) == points[3][1])
        except Exception as error:
            raise ValueError(
                f"{_name(estimator)} does not support negative weights, which targets of bags require "
                f"({_first_line(error)}): use another classifier, such as LogisticRegression, or LLPClassifier"
            ) from error
        if right < (0.5 + told[-1]) / 2:
            raise ValueError(
                f"{_name(estimator)} accepts negative weights, which targets of bags require, but handles them wrongly: on a "
                "test problem with an accuracy of "
                f"{told[-1]:.0%}, wrong labels whose weights cancel out reduce it to {right:.0%}. Use another "
                "classifier or solver, "
                "such as LogisticRegression with its default one, or LLPClassifier; probe=False trains it nevertheless"
            )
        return
    warnings.warn(
        f"{_name(estimator)} with these settings does not learn the small problem that tests negative weights, "
        "so it is unknown "
        "whether it supports them; probe=False silences this",
        stacklevel=3,
    )


def _clouds(shift: float) -> list[tuple[Any, Any, float]]:
    """Points, labels and weights: right labels, wrong ones, their opposite, and points to ask for."""
    generator = np.random.default_rng(1)
    labels = np.arange(400) % 2
    centres = np.where(labels[:, None] == 1, [1.5, -1.5], [-1.5, 1.5]) + shift
    points = centres + generator.normal(size=centres.shape)
    # Weights must cancel out between points that are near to each other, as those of bags do, not only in one point.
    near = [points + 0.3 * generator.normal(size=points.shape) for _ in range(2)]
    asked = centres + generator.normal(size=centres.shape)
    parts = [(points, labels, 1.0), (near[0], 1 - labels, 2.0), (near[1], 1 - labels, -2.0), (asked, labels, 0.0)]
    return [(np.maximum(place, 0.0) if shift else place, label, weight) for place, label, weight in parts]


def _fitted(estimator: Any, parts: list[tuple[Any, Any, float]]) -> Any:
    points, labels = (np.concatenate([part[index] for part in parts]) for index in (0, 1))
    weights = np.concatenate([np.full(len(labels), weight) for _, labels, weight in parts])
    order = np.random.default_rng(2).permutation(len(points))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of convergence, on a problem that the settings were not made for
        return clone(estimator).fit(points[order], labels[order], sample_weight=weights[order])


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}".rstrip(": ")

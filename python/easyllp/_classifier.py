"""The estimator, which follows scikit-learn's contract."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from easyllp import _easyllp
from easyllp._bags import Bags, _is_missing, eager, from_proportions
from easyllp._classes import by_class, check_prior, counted, in_class_order, names_of, prior_of
from easyllp._evaluation import Estimate, Evaluation, _estimate, bags_of, declared_noise, evaluated
from easyllp._randomness import NotRandomWarning, TrainingBagsWarning, refuse_unless_random
from easyllp._reports import from_report
from easyllp._rows import column_names, is_sparse, is_table, readable, sparse, table, warn_of_keys, warn_of_scales
from easyllp._settings import fit_config, image_shape, method_settings, n_threads, seed_of, whole_number
from easyllp._targets import counts_of


class LLPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of single rows, trained on the label proportions of bags.

    A share of the bags is held out as validation bags, to choose the penalty (with Adam, the number of epochs) and to estimate
    metrics; the model is then trained on all bags. From a table and a report whose counts have names, `fit_bags` makes the same model
    file as the program `easyllp train` with the same settings and seed, byte for byte.

    An array is not scaled: float32 in C order is used without a copy, anything else is converted once. The columns of a table
    (pandas, Polars, PyArrow, or any type with Arrow's PyCapsule interface) are encoded: numbers are standardised and may be missing, text
    and categorical columns are categories. The same numbers therefore give a different model as an
    array than as a table, at the same `l2`: as with scikit-learn's LogisticRegression, scale an array first if its columns differ in
    unit (StandardScaler gives the table's model); there is a warning if their ranges differ much.

    A linear model is fitted to convergence (L-BFGS) by default. Any of `epochs`, `lr` and `batch_size` makes it train with Adam instead,
    where `l2` is the weight decay; `optimizer_` says which it was.

    SciPy's sparse matrices and arrays are not scaled either, and stay sparse: the time and memory to fit a linear model are proportional
    to the stored values. Other models, Adam, easyllp-sgd and laplacian-mean-map do not support them.

    Parameters
    ----------
    method : str, default="easyllp"
        The method, with optional parameters after a colon, such as "label-generation:epsilon=0.1". See `easyllp.methods()`.

        - auto: easyllp, then debiased-square and count-likelihood from there; the best stage by validation bags
        - easyllp: minimises any loss on corrected targets; unbiased at row level
        - easyllp-sgd: one pass over the bags, with a projected step on one row of each
        - supervised: trains on row labels, as bags of one row; the reference
        - naive: trains each row towards the proportion of its bag; a baseline
        - label-generation: in every step, trains on the labels that match the counts and agree best with the model
        - proportion-matching: matches the mean prediction of a bag to its proportion
        - debiased-square: minimises the squared error of mean predictions, corrected to that of rows
        - count-likelihood: maximises the likelihood of the counts under independent rows
        - llp-em: alternates between labels as probable as the counts make them and the model of these
        - mean-map: estimates class means from bag means by least squares
        - laplacian-mean-map: estimates class means of each bag, similar where bags are similar
        - alternating-mean-map: starts at the mean map, then alternates between labels that match the counts and the
          model of these

    model : str, default="linear"
        linear, mlp:256,128, embedding:16,mlp:256,128 (for categories), cnn:mnist, cnn:cifar, or cnn: and layers.
    loss : {"logistic", "softmax", "squared", "brier"}, optional
        Cross-entropy by default. For networks squared or brier is often better.
    l2 : float or "auto", optional
        The L2 penalty l2/2·‖w‖² of a linear model that is fitted to convergence; by default the best of up to eight on validation bags,
        tried until two in a row are no better. With Adam it is the weight decay, by default 0. The used value is `l2_`.
    epochs : int, optional
        Train with Adam for at most this many epochs (40 by default for networks), with early stopping on validation bags. Without this,
        `lr` and `batch_size` a linear model is fitted to convergence (L-BFGS).
    lr : float, optional
        The learning rate of Adam, by default 0.001. Setting it makes a linear model train with Adam. For easyllp-sgd a factor of the paper's
        step sizes.
    batch_size : int, optional
        The minibatch size of Adam in rows, by default 256. Setting it makes a linear model train with Adam.
    holdout : float, default=0.2
        The share of the bags to hold out as validation bags; 0 for none.
    stop_by : {"brier", "error"}, default="brier"
        The metric on validation bags that chooses the penalty or the epoch.
    patience : int, default=10
        Early stopping: stop training with Adam after this many epochs in a row without improvement.
    smoothing : int, default=1
        Smooth the validation metric over this many epochs.
    method_params : dict, optional
        The parameters of the method by name; unset ones have their defaults. A `prior` is the share of the positive class of two,
        the share of each class in the order of `classes_`, or a dict of shares by class.

        easyllp:

        - bag_weights (equal, size, noise or variance:RHO with RHO of at least 0): Weights of bags. Unset: `equal`, or
          `size` with a prior.
        - batches (rows or bags, by default rows): Minibatches of rows of all bags, or of whole bags.
        - prior (a share from 0 to 1, or a list of the shares of all classes, which sum to 1): Known share of the
          positive class, or of each class. Uses the paper's targets instead of centred ones.
        - rebag (a whole number of at least 1): Requires row labels: randomly regroup the rows into bags of this size in
          every epoch.
        - targets (soft, surrogate or fresh-surrogate, by default soft): Correct the bag's proportions, or surrogate
          labels that are drawn from them once or in every epoch.

        easyllp-sgd:

        - domain (whole, ball:RADIUS or box:BOUND, with a number above 0, by default whole): The convex set that the
          weights are projected onto.
        - iterate (last or average, by default last): Return the last iterate, or the mean of all iterates.
        - prior (a share from 0 to 1, or a list of the shares of all classes, which sum to 1): Known share of the
          positive class, or of each class. Unset: pooled from the bags.
        - steps (soft, surrogate or given): Size of step t for bags of k rows, times the learning rate: 1/√(kt), 1/(k√t)
          or 1/√t. Unset: the paper's for these targets.
        - targets (soft, surrogate or fresh-surrogate, by default soft): Correct the bag's proportions, or a surrogate
          label that is drawn from them for each step.

        label-generation:

        - epsilon (a number of at least 0, by default 1.0): Entropy regularisation of the labels: 0 gives hard labels, 1
          the probabilities given the counts.
        - relabel (minibatch or round:EPOCHS, by default minibatch): Generate labels in every minibatch, or once per
          round of epochs.

        proportion-matching:

        - distance (cross-entropy or squared, by default cross-entropy): The distance between mean prediction and
          proportion.

        llp-em:

        - rounds (a whole number of at least 1, by default 20): Maximum number of rounds.

        mean-map:

        - ridge (a number above 0, by default 1e-09): Ridge penalty of the least squares from bag means to class means.

        laplacian-mean-map:

        - smoothness (a number above 0, by default 1.0): How strongly class means of similar bags are pulled together
          (γ).

        alternating-mean-map:

        - ridge (a number above 0, by default 1e-09): Ridge penalty of the initial mean map.
        - rounds (a whole number of at least 1, by default 20): Maximum number of rounds.

    image : str or (int, int, int), optional
        For a cnn, the shape of the images in rows: channels, height and width, such as "1x28x28".
    max_vocabulary : int, default=1000
        A text column of a table with more distinct values than this is hashed; at most 4096.
    hash_buckets : int, default=65536
        Buckets for each hashed column.
    random_state : int, RandomState instance or None, default=1
        The seed of the split, of initial weights and of minibatches.
    n_jobs : int, optional
        The number of threads; by default one per core. The maximum is 64 or one per core. The model does not depend on it.
    verbose : int, default=0
        Whether to print progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order, which is the order of all arrays with a column per class, in files and in ONNX, too. With labels
        they are the labels; with proportions or counts of several classes the names of their columns, if any, or 0, 1, …; with
        one count 0 and 1, where 1 is the counted class.
    prior_ : ndarray of shape (n_classes,)
        The share of each class among the training rows.
    history_ : dict
        The training log on all bags: `epoch` and `loss`, a list each.
    notes_ : list of str
        Notes on the training, such as why a stage was left out, or that the validation metric was still improving in the
        last epoch. With `verbose` they are printed.
    stopped_because_ : str
        finished, converged, flat (no further decrease of the loss), local_minimum (the loss is not convex) or early_stopping.
    optimizer_ : {"L-BFGS", "Adam", "SGD"}
        The optimizer. With `verbose`, the reason for the choice is printed.
    l2_ : float or None
        The L2 penalty that was given or chosen, or the weight decay of Adam; None for SGD.
    holdout_ : Evaluation or None
        Validation metrics, estimated from the held-out bags. They describe models trained on the other bags, not the final model,
        which is trained on all bags. The held-out bags are split into two to five folds, and each fold
        evaluates what is best on the others: no bag evaluates its own choice. None with `holdout=0`, and with fewer than 4 held-out bags if there was a
        choice among penalties or epochs. The metrics are withheld if the bags do not look
        random.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        For tables.

    Examples
    --------
    >>> from easyllp import LLPClassifier, datasets, make_bags
    >>> train, test = datasets.optdigits()
    >>> bags, proportions = make_bags(train.y % 2, size=8)  # odd or even, by counts of eight
    >>> model = LLPClassifier().fit(train.X, proportions, bags=bags)
    >>> round(model.score(test.X, test.y % 2), 2)
    0.88
    >>> model = LLPClassifier("label-generation", epochs=2, method_params={"epsilon": 0.1})
    >>> model.fit(train.X, proportions, bags=bags).optimizer_
    'Adam'
    """

    # Bags are asked for wherever metadata is routed.
    __metadata_request__fit = {"bags": True}
    __metadata_request__score = {"bags": True}

    feature_names_in_: npt.NDArray[Any]
    _model: _easyllp.Model
    _is_by_name: bool = False  # whether columns are found by name, in any order, as in a file

    def __init__(
        self,
        method: str = "easyllp",
        model: str = "linear",
        *,
        loss: str | None = None,
        l2: float | str | None = None,
        epochs: int | None = None,
        lr: float | None = None,
        batch_size: int | None = None,
        holdout: float = 0.2,
        stop_by: str = "brier",
        patience: int = 10,
        smoothing: int = 1,
        method_params: dict[str, Any] | None = None,
        image: str | tuple[int, int, int] | None = None,
        max_vocabulary: int = 1000,
        hash_buckets: int = 65536,
        random_state: Any = 1,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.model = model
        self.loss = loss
        self.l2 = l2
        self.epochs = epochs
        self.lr = lr
        self.batch_size = batch_size
        self.holdout = holdout
        self.stop_by = stop_by
        self.patience = patience
        self.smoothing = smoothing
        self.method_params = method_params
        self.image = image
        self.max_vocabulary = max_vocabulary
        self.hash_buckets = hash_buckets
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, *, bags: Any = None) -> LLPClassifier:
        """Train on the proportions of bags, or on row labels.

        Parameters
        ----------
        X : array-like or table of shape (n_rows, n_features)
        y : array-like of shape (n_rows,) or (n_rows, n_classes)
            With `bags`, each row's bag proportion: the share of positive rows in its bag, or the share of each class, the same for all
            rows of a bag; columns of a table name their classes. Without, the rows' own labels.
        bags : array-like of shape (n_rows,) or (n_rows, n_keys), optional
            The bag id of each row, of any hashable type; several key columns form one id. By default every row is its own bag.

        Returns
        -------
        self
        """
        X = eager(X)
        if bags is not None:
            features = self._features(X, reset=True)
            given = from_proportions(y, bags, _n_rows(X))
            warn_of_keys(X, given.of_row)
            check_prior(self._method().get("prior"), given)
            given, classes = in_class_order(given)
            return self._fit(features, given, classes, None)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: LLPClassifier learns from labels or proportions")
        features, y = self._features(X, reset=True, y=y)
        try:
            check_classification_targets(y)
        except ValueError as error:
            raise ValueError(f"{error} With proportions of bags, pass bags=, the bag id of each row.") from error
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y has one class only ({classes.tolist()[0]!r}), and two are needed; of bags, give proportions with bags=")
        counts = np.zeros((len(labels), len(classes)))
        counts[np.arange(len(labels)), labels] = 1
        rows = np.arange(len(labels), dtype=np.uint32)
        given = Bags(rows, counts[:, 1] if len(classes) == 2 else counts, list(range(len(labels))))
        return self._fit(features, given, classes, None)

    def fit_bags(self, X: Any, counts: Any, bags: Any, *, noise: tuple[str, Any] | None = None) -> LLPClassifier:
        """Train on a report of counts.

        Parameters
        ----------
        X : array-like or table of shape (n_rows, n_features)
        counts : mapping or table
            The number of positive rows of each bag, by bag id: these are class 1, all others class 0. Or the number of rows in each class, one
            column per class; the column names are the class names. A pandas Series or DataFrame has the ids as its index. A table without such
            an index (Polars, PyArrow, the result of `pandas.read_csv`) has them in the columns with the names of the columns of `bags`, or
            else in its first columns.
        bags : array-like of shape (n_rows,) or (n_rows, n_keys)
            The bag id of each row; ids of several keys are tuples.
        noise : (str, float or array-like), optional
            Noise that was added to counts: ("laplace", scale) or ("gaussian", standard deviation), of all bags, or one per bag by its id
            or in the order of `counts`.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from easyllp import LLPClassifier
        >>> X = np.random.default_rng(1).normal(size=(300, 2)).astype(np.float32)
        >>> day = np.arange(300) // 10
        >>> clicks = {d: int((X[day == d, 0] > 0).sum()) for d in range(30)}
        >>> model = LLPClassifier(l2=0.01).fit_bags(X, clicks, day)
        >>> model.predict([[2.0, 0.0], [-2.0, 0.0]])
        array([1, 0])
        """
        X = eager(X)
        features = self._features(X, reset=True)
        given = from_report(bags, counts, _n_rows(X))
        warn_of_keys(X, given.of_row)
        check_prior(self._method().get("prior"), given)
        given, classes = in_class_order(given)
        name = given.columns[0] if given.columns and given.counts.ndim == 1 else None
        positive = name if isinstance(name, str) else None
        return self._fit(features, given, classes, declared_noise(noise, given.names), positive)

    def _method(self) -> dict[str, Any]:
        """The method's name and parameters."""
        return method_settings(self.method, self.method_params)

    def _fit(
        self,
        features: Any,
        given: Bags,
        classes: npt.NDArray[Any],
        noise: tuple[str, list[float]] | None,
        positive: str | None = None,
    ) -> LLPClassifier:
        if len(given.names) < 2:
            raise ValueError("at least 2 bags are required, found n_samples=1 bag")
        if noise is None:
            _check_classes(given, classes)
        warn_of_scales(features)
        method = self._method()
        if "prior" in method:
            method["prior"] = prior_of(method["prior"], classes)
        model, outcome = _easyllp.Model.fit(
            features,
            given.of_row,
            counts_of(given),
            noise,
            names_of(classes) if positive is None else counted(positive),
            fit_config(self, method, seed_of(self.random_state)),
            image_shape(self.image),
            (whole_number("max_vocabulary", self.max_vocabulary, 0), whole_number("hash_buckets", self.hash_buckets, 0)),
            n_threads(self.n_jobs),
            bool(self.verbose),
        )
        self._adopt(model, classes)
        told = json.loads(outcome)
        self.history_ = {name: [epoch[name] for epoch in told["log"]["epochs"]] for name in ("epoch", "loss")}
        self.stopped_because_ = told["log"]["stopped"]
        self.notes_ = told["notes"]
        self.optimizer_ = told["optimizer"]
        self.l2_ = told["l2"]
        evaluation = _evaluation(told["validation"], classes.tolist() if positive is None else model.classes)
        self.holdout_ = None if evaluation is None else evaluation.judged(told["randomness"], force=False)
        if told["randomness"]["verdict"] != "plausible":
            warnings.warn(self._doubts(told), NotRandomWarning, stacklevel=3)
        return self

    def _doubts(self, told: dict[str, Any]) -> str:
        """How bags that do not look random affect the model, its choice and the metrics."""
        sentences = [told["randomness"]["words"]]
        if told["randomness"]["is_rejected"]:
            if self.holdout_ is not None:
                sentences.append(
                    "The choice of a penalty and early stopping use such a metric; holdout_ is withheld: use holdout_.force() to see it"
                )
            if told["assumes_random_bags"]:
                sentences.append(
                    f"Method {self._model.method} assumes random bags, so the model is biased, too: consider "
                    "method='count-likelihood', for bags made by features that the model sees"
                )
        return ". ".join(sentences)

    def _adopt(self, model: _easyllp.Model, classes: npt.NDArray[Any]) -> None:
        """Take a model of these classes."""
        self._model = model
        self.classes_ = classes
        self.prior_ = np.asarray(model.prior)

    def _features(self, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
        """Rows as the compiled part takes them, checked as scikit-learn checks them."""
        with_y = not (isinstance(y, str) and y == "no_validation")
        if reset:
            self._is_by_name = False
        was_table = not reset and hasattr(self, "feature_names_in_")
        if is_table(X) and (reset or was_table):
            names = column_names(X)
            if _n_rows(X) == 0:
                raise ValueError("X has no rows")
            if self._is_by_name:
                missing = [name for name in self.feature_names_in_ if name not in names]
                if missing:
                    raise ValueError(f"column `{missing[0]}` is missing from the table")
            else:
                validate_data(self, X, skip_check_array=True, reset=reset)
            if reset and not hasattr(self, "feature_names_in_"):
                self.feature_names_in_ = np.asarray(names, dtype=object)
            features = table(X)
            if not with_y:
                return features
            y = column_or_1d(y, warn=True)
            if len(y) != _n_rows(X):
                raise ValueError(f"y has {len(y)} labels for {_n_rows(X)} rows")
            if y.dtype.kind == "O" and any(_is_missing(label) for label in y.tolist()):
                raise ValueError("y has missing labels")
            return features, y
        if was_table and self._is_by_name:
            raise ValueError("a model read from a file finds columns by name: pass a table with column names")
        if was_table:
            # Columns of an array have their names by the order that the table had; numbers may be missing as they were there.
            checked = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
            return [(name, readable(checked[:, place], np.float64)) for place, name in enumerate(self.feature_names_in_)]
        # Whether all is finite is seen to once, by the compiled part.
        checked = validate_data(
            self, X, y, dtype=np.float32, order="C", accept_sparse="csr", ensure_all_finite=False, reset=reset
        )
        features = checked[0] if with_y else checked
        features = sparse(features) if is_sparse(features) else readable(features, np.float32)
        return (features, checked[1]) if with_y else features

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._features(eager(X), reset=False)

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """Score rows.

        Parameters
        ----------
        X : array-like or table of shape (n_rows, n_features)

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes, the log-odds of the second (or, with squared loss, its probability minus a half): above 0 it is predicted.
            For more, one score per class in the order of `classes_`: the class with the highest is predicted.
        """
        features = self._checked(X)
        scores, unfamiliar = self._model.scores(features)
        _warn_of_unfamiliar(unfamiliar)
        return scores if scores.shape[1] > 1 else scores[:, 0] - np.float32(self._model.threshold)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like or table of shape (n_rows, n_features)

        Returns
        -------
        classes : ndarray of shape (n_rows,)
            Each one of `classes_`.
        """
        scores = self.decision_function(X)
        places = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        predicted: npt.NDArray[Any] = np.asarray(self.classes_)[places]
        return predicted

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like or table of shape (n_rows, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            In the order of `classes_`; those of a row sum to 1.

        Warns
        -----
        UnfamiliarValuesWarning
            If columns of a table have categories not seen in training, numbers outside the training range, or missing values
            in columns that had none.

        Examples
        --------
        >>> import numpy as np
        >>> from easyllp import LLPClassifier
        >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]], dtype=np.float32)
        >>> model = LLPClassifier(l2=0.1, holdout=0).fit(X, [0.0, 0.0, 1.0, 1.0], bags=["a", "a", "b", "b"])
        >>> model.predict_proba(X).argmax(axis=1)
        array([0, 0, 1, 1])
        """
        features = self._checked(X)
        probabilities, unfamiliar = self._model.probabilities(features)
        _warn_of_unfamiliar(unfamiliar)
        return probabilities

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, bags: Any = None) -> float:
        """Return the accuracy: from row labels `y`, or with `bags` estimated from the proportions of bags.

        Parameters
        ----------
        X : array-like or table of shape (n_rows, n_features)
        y : array-like of shape (n_rows,) or (n_rows, n_classes)
            Labels; with `bags` each row's bag proportion.
        sample_weight : array-like of shape (n_rows,), optional
            Only for labels.
        bags : array-like of shape (n_rows,), optional
            The bag id of each row. Use bags that the model was not trained on.

        Returns
        -------
        accuracy : float
            Estimated from few bags it may leave the range 0 to 1. Bags that do not look random raise a `WithheldError`.
        """
        if bags is None:
            return float(super().score(X, y, sample_weight))
        if sample_weight is not None:
            raise ValueError("sample_weight is for labels of rows, not for bags")
        X = eager(X)
        given = from_proportions(y, bags, _n_rows(X))
        refuse_unless_random(given, force=False, stacklevel=2)
        if given.n_classes != len(self.classes_):
            raise ValueError(f"y is of {given.n_classes} classes, and the model of {len(self.classes_)}")
        given = by_class(given, self.classes_)
        scores = self._scores_of_bags(X, given, None)
        value, *_ = _easyllp.metric("accuracy", scores, self._model.link, given.of_row, counts_of(given))
        return value

    def evaluate(
        self, X: Any, y: Any = None, bags: Any = None, *, counts: Any = None, noise: tuple[str, Any] | None = None, **options: Any
    ) -> Evaluation:
        """Estimate row-level metrics from bags that the model was not trained on.

        The same as `easyllp.evaluate` of `predict_proba(X)`, but from the model's scores, and training bags are
        recognised, with a `TrainingBagsWarning`: metrics from training bags are too good.

        Parameters
        ----------
        X : array-like or table of shape (n_rows, n_features)
        y, bags, counts, noise
            As in `easyllp.evaluate`.
        **options
            Further options of `easyllp.evaluate`.

        Returns
        -------
        Evaluation
        """
        check_is_fitted(self)
        X = eager(X)
        given = by_class(bags_of(_n_rows(X), y, bags, counts), self.classes_)
        if bags is None:
            scores, unfamiliar = self._model.scores(self._checked(X))
            _warn_of_unfamiliar(unfamiliar)
        else:
            scores = self._scores_of_bags(X, given, declared_noise(noise, given.names))
        return evaluated(scores, self._model.link, given, tuple(self.classes_.tolist()), noise, **options)

    def _scores_of_bags(self, X: Any, given: Bags, noise: tuple[str, list[float]] | None) -> npt.NDArray[np.float32]:
        """Scores, with the warnings that evaluation has; for methods that users call."""
        bags = (given.of_row, counts_of(given), noise)
        (scores, unfamiliar), found = self._model.scores_of_bags(self._checked(X), *bags)
        if unfamiliar:
            warnings.warn(_unfamiliar(unfamiliar), UnfamiliarValuesWarning, stacklevel=3)
        if found is not None:
            warnings.warn(
                f"the model was trained on {found}: metrics from training bags are too good. Evaluate it on other bags",
                TrainingBagsWarning,
                stacklevel=3,
            )
        return scores

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which the program `easyllp` and `easyllp.load` read.

        Parameters
        ----------
        path : path-like
            The file to write. It is written atomically, and an existing file is replaced.
        """
        check_is_fitted(self)
        self._model.save(os.fspath(path))

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """Export the model as ONNX.

        Its inputs are the columns of the table it was trained on, by name (numbers as float64, categories as text, each of shape
        (n_rows, 1)), or for arrays one input `x`, float32 of shape (n_rows, n_features). Its outputs are `label` (the name of the class),
        `probabilities` (in the order of `classes_`, as in `predict_proba`) and `scores`. Hashed columns are not supported.

        Parameters
        ----------
        path : path-like, optional
            A file to write, in addition.

        Returns
        -------
        onnx : bytes
            The file.
        """
        check_is_fitted(self)
        return self._model.to_onnx(None if path is None else os.fspath(path))

    @property
    def coef_(self) -> npt.NDArray[np.float32]:
        """Weights of a linear model: (1, n_features) for two classes, else (n_classes, n_features).

        For a table they apply to the standardised columns, in the order of `feature_names_in_`. A table with categories or missing
        numbers has more features than columns, and no `coef_`: see `easyllp show`.
        """
        weights, _ = self._weights()
        if hasattr(self, "feature_names_in_"):
            features = self._model.dense_columns
            if sorted(features) != sorted(self.feature_names_in_):
                raise AttributeError("there is no coef_: it requires columns of numbers without missing ones")
            weights = weights[[features.index(name) for name in self.feature_names_in_]]
        return weights.T

    @property
    def intercept_(self) -> npt.NDArray[np.float32]:
        """Intercepts of a linear model."""
        return np.asarray(self._weights()[1], dtype=np.float32)

    def _weights(self) -> tuple[npt.NDArray[np.float32], list[float]]:
        if not hasattr(self, "_model"):
            raise AttributeError("there are no weights: call fit first")
        weights = self._model.weights
        if weights is None:
            raise AttributeError(f"model {self._model.name} is not linear, so it has no coef_")
        return weights

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            method = self._method()
            method.pop("prior", None)  # which may be by class
            tags.input_tags.sparse = _easyllp.needs_dense_rows(fit_config(self, method, seed=0)) is None
        except (TypeError, ValueError):  # settings that `fit` refuses
            tags.input_tags.sparse = False
        return tags


class UnfamiliarValuesWarning(UserWarning):
    """Rows have values that the model was not trained on: unseen, missing or out of range."""


def _unfamiliar(lines: list[str]) -> str:
    return "\n".join(["rows have values that the model was not trained on", *lines])


def _warn_of_unfamiliar(lines: list[str]) -> None:
    if lines:
        warnings.warn(_unfamiliar(lines), UnfamiliarValuesWarning, stacklevel=3)


def _check_classes(given: Bags, classes: npt.NDArray[Any]) -> None:
    """Refuse bags that hold rows of one class only. Counts with noise do not tell."""
    counts = given.counts if given.counts.ndim == 2 else np.stack([given.sizes - given.counts, given.counts], axis=1)
    there = classes[counts.any(axis=0)].tolist()
    if len(there) == 1:
        raise ValueError(
            f"by their counts the bags hold one class only ({there[0]!r}), and two are needed: add bags with rows of another; "
            "noise of counts is declared in fit_bags"
        )


def _n_rows(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def _evaluation(told: dict[str, Any] | None, classes: list[Any]) -> Evaluation | None:
    if told is None:
        return None
    metrics: dict[str, Estimate] = {name: _estimate(found) for name, found in told["metrics"]}
    return Evaluation(metrics, n_bags=told["n_bags"], classes=tuple(classes))

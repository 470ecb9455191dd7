"""Bad input gets a clear error, and nothing worse."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import easyllp
from easyllp import LLPClassifier, bag_metric, bag_scorer, diagnose, evaluate, make_bags, soft_targets

X = np.array([[0.0], [1.0], [0.2], [0.9]], dtype=np.float32)
HALF = [0.5, 0.5, 0.5, 0.5]
AB = ["a", "a", "b", "b"]


def fit(X=X, y=HALF, bags=AB, **settings):
    return LLPClassifier(**{"l2": 0.1, "holdout": 0, **settings}).fit(X, y, bags=bags)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: fit(bags=AB[:3]), ValueError, "bags has 3 ids for 4 rows: one id per row is required"),
        (lambda: fit(y=HALF[:3]), ValueError, "y has 3 proportions for 4 rows"),
        (lambda: fit(y=[0.5, 0.5, 0.5, 1.0]), ValueError, "bag 'b' has 0.5 at row index 2 and 1.0 at row index 3"),
        (lambda: fit(y=[0.4] * 4), ValueError, "bag 'a' has 2 rows and a proportion of 0.4, which is not a whole number"),
        (lambda: fit(y=[1.5] * 4), ValueError, "not a whole number of rows from 0 to all"),
        (lambda: fit(y=[-0.5] * 4), ValueError, "not a whole number of rows from 0 to all"),
        (lambda: fit(y=[np.nan] * 4), ValueError, "y is not a finite number at row index 0"),
        (lambda: fit(y=list("abab")), ValueError, "with bags, y is each row's bag proportion"),
        (lambda: fit(y=np.array([[0.5, 0.0]] * 4)), ValueError, "bag 'a' has 2 rows but its class counts sum to 1"),
        (lambda: fit(y=np.zeros((4, 1, 1))), ValueError, "it has 3 dimensions"),
        (lambda: fit(bags=[None, "a", "b", "b"]), ValueError, "row index 0 has no bag id"),
        (lambda: fit(bags=[0.0, np.nan, 1.0, 1.0]), ValueError, "row index 1 has no bag id"),
        (lambda: fit(bags=["a"] * 4), ValueError, "found n_samples=1 bag"),
        (lambda: fit(X=np.array([[np.nan], [1], [2], [3]])), ValueError, "row index 0 has NaN in dense column index 0: features must be finite"),
        (lambda: fit(X=np.array([[np.inf], [1], [2], [3]])), ValueError, "row index 0 has inf in dense column index 0"),
        (lambda: fit(X=np.array([[1e300], [1], [2], [3]])), ValueError, "row index 0 has inf in dense column index 0"),
        (lambda: fit(X=np.zeros((4, 0))), ValueError, "0 feature"),
        (lambda: fit(X=np.zeros(4)), ValueError, "Expected 2D array"),
        (lambda: fit(X=np.array([["a"], ["b"], ["c"], ["d"]])), ValueError, "could not convert"),
        (lambda: fit(X=X.astype(complex)), ValueError, "Complex data not supported"),
        (lambda: fit(method="magic"), ValueError, "unknown method `magic`: choose one of auto, "),
        (lambda: fit(model="tree"), ValueError, "unknown model `tree`: choose linear"),
        (lambda: fit(model="mlp:0"), ValueError, "mlp:0"),
        (lambda: fit(loss="hinge"), ValueError, "unknown loss `hinge`: choose one of logistic, softmax, squared"),
        (lambda: fit(stop_by="auc"), ValueError, "unknown stop_by `auc`: choose one of brier, error"),
        (lambda: fit(model=5), TypeError, "model is 5: it must be text"),
        (lambda: fit(l2=-1), ValueError, 'l2 is -1: it must be "auto" or a number of at least 0'),
        (lambda: fit(l2="much"), TypeError, "l2 is 'much': it must be"),
        (lambda: fit(l2="auto"), ValueError, "`l2` auto requires validation bags"),
        (lambda: fit(epochs=0), ValueError, "epochs is 0: it must be a whole number of at least 1"),
        (lambda: fit(epochs=1.5), ValueError, "epochs is 1.5: it must be a whole number"),
        (lambda: fit(holdout=1.0), ValueError, "holdout is 1.0: it must be a number from 0 to below 1"),
        (lambda: fit(holdout=0.2), ValueError, "at least 2 are required: hold out more, or none"),
        (lambda: fit(method_params={"bag_weights": "heavy"}), ValueError, "parameter `bag_weights` of easyllp is heavy: expected equal, "),
        (lambda: fit(method="mean-map", method_params={"bag_weights": "size"}), ValueError, "method mean-map has no parameter `bag_weights`"),
        (lambda: fit(method="mean-map:ridge=-1"), ValueError, "parameter `ridge` of mean-map is -1: expected a number above 0"),
        (lambda: fit(method="mean-map", method_params={"ridge": float("inf")}), ValueError, "`ridge` of mean-map is inf"),
        (lambda: fit(method="mean-map:ridge=1", method_params={"ridge": 1}), ValueError, "'ridge' is set by method=.* and by method_params"),
        (lambda: fit(method_params={"name": "naive"}), ValueError, "method easyllp has no parameter `name`"),
        (lambda: fit(method="easyllp:name=naive"), ValueError, "method easyllp has no parameter `name`"),
        (lambda: fit(method=None), TypeError, "method is None: it must be text"),
        (lambda: fit(method_params=5), TypeError, "method_params is 5: it must be a dict"),
        (lambda: fit(method_params={"prior": object()}), ValueError, "parameter `prior` of easyllp is <object"),
        (lambda: fit(method="supervised"), ValueError, "method supervised requires row labels, found counts of bags"),
        (lambda: fit(method_params={"prior": 2.0}), ValueError, "parameter `prior` of easyllp is 2"),
        (lambda: fit(method_params={"prior": [0.1, 0.2, 0.7]}), ValueError, "class"),
        (lambda: fit(image="1x2x2", model="cnn:mnist"), ValueError, "images of shape 1x2x2"),
        (lambda: fit(image="square", model="cnn:mnist"), ValueError, "square"),
        (lambda: fit(hash_buckets=-1), ValueError, "hash_buckets is -1"),
        (lambda: fit(image=5), TypeError, "image is 5"),
        (lambda: fit(bags=5), TypeError, "bags must have one id per row"),
        (lambda: fit(bags=[[1], [1], [2], [2]]), TypeError, "a bag id of type list, which has no hash"),
        (lambda: LLPClassifier().fit(X, HALF), ValueError, "pass bags="),
        (lambda: bag_scorer("brier")._score_func(HALF, HALF), ValueError, "no bags have reached the scorer"),
        (lambda: make_bags([0.0, np.nan, 1.0], size=2), ValueError, "found fractional numbers"),
        (lambda: make_bags(["a", None, "b"], size=2), ValueError, "found missing ones"),
        (lambda: make_bags([0, 1, 1], size=2.5), ValueError, "size is 2.5"),
        (lambda: make_bags([0, 1, 1], size=2, seed=2**64), ValueError, "seed is 18446744073709551616"),
        (lambda: make_bags([0, 1, 1], size=2, seed=-1), ValueError, "seed is -1"),
        (lambda: make_bags([0, 1, 1], size=2, seed=0.5), ValueError, "seed is 0.5"),
        (lambda: evaluate(HALF, HALF, AB, bootstrap=200, seed=2**64), ValueError, "seed is 18446744073709551616"),
        (lambda: evaluate(HALF, HALF, AB, bootstrap=200, seed=-1), ValueError, "seed is -1"),
        (lambda: diagnose(HALF, AB, counts={"a": 1, "b": 1}), ValueError, "either y"),
        (lambda: evaluate(np.full((4, 2), 0.3), HALF, AB), ValueError, "sum to 0.6, not to 1"),
        (lambda: evaluate([], []), ValueError, "no rows"),
        (lambda: soft_targets(HALF, AB, bag_weights="noise"), ValueError, "counts with noise"),
        (lambda: LLPClassifier().fit_bags(X, {"a": 1, "b": 1}, AB, noise="laplace"), TypeError, "noise is 'laplace'"),
        (lambda: LLPClassifier().fit_bags(X, {"a": 1, "b": 1}, AB, noise=("laplace", [1, 2, 3])), ValueError, "for 2 bags"),
        (lambda: LLPClassifier().fit_bags(X, {"a": [1, 2], "b": 1}, AB), ValueError, "counts must be a number a bag"),
        (lambda: fit(n_jobs=0), ValueError, "n_jobs is 0"),
        (lambda: fit(random_state=-1), ValueError, "random_state is -1"),
        (lambda: LLPClassifier().fit(X, [1, 1, 1, 1]), ValueError, "y has one class only \\(1\\), and two are needed"),
        (lambda: fit(y=[0.0] * 4), ValueError, "by their counts the bags hold one class only \\(0\\), and two are needed: add bags"),
        (lambda: fit(y=[1.0] * 4), ValueError, "one class only \\(1\\)"),
        (lambda: fit(y=[[0.0, 0.0, 1.0]] * 4), ValueError, "one class only \\(2\\)"),
        (lambda: LLPClassifier().fit_bags(X, {"a": 2, "b": 2}, AB), ValueError, "one class only \\(1\\)"),
        (lambda: LLPClassifier().fit_bags(X, {"a": [2, 0], "b": [2, 0]}, AB), ValueError, "one class only \\(0\\)"),
        (lambda: LLPClassifier().fit(X, None), ValueError, "y to be passed"),
        (lambda: LLPClassifier().fit(X, [0.1, 0.2, 0.3, 0.4]), ValueError, "Unknown label type"),
        (lambda: LLPClassifier().predict(X), Exception, "not fitted"),
        (lambda: fit().predict(np.zeros((2, 3))), ValueError, "3 features"),
        (lambda: LLPClassifier().fit_bags(X, {"a": 1}, AB), ValueError, "1 bags of the rows have no report: 'b'"),
        (lambda: LLPClassifier().fit_bags(X, {"a": 1, "b": 1, "c": 0}, AB), ValueError, "1 reported bags have no rows: 'c'"),
        (lambda: LLPClassifier().fit_bags(X, {"a": 1, "b": 3}, AB), ValueError, "reports 3 of class index 1"),
        (lambda: LLPClassifier().fit_bags(X, [1, 1], AB), TypeError, "counts must be a mapping"),
        (lambda: LLPClassifier().fit_bags(X, {"a": 1, "b": 1}, AB, noise=("cauchy", 1)), ValueError, "unknown noise"),
        (lambda: LLPClassifier().fit_bags(X, {"a": 1, "b": 1}, AB, noise=("laplace", -1)), ValueError, "noise of scale -1"),
        (lambda: soft_targets(HALF, AB, prior=0.5, bag_weights="size"), ValueError, "bag_weights cannot be combined with prior"),
        (lambda: make_bags([1, 1, 1], size=2), ValueError, "found one in y"),
        (lambda: make_bags([0, 1, 1], size=0), ValueError, "size is 0"),
        (lambda: make_bags([0, 1, 1], size=(3, 2)), ValueError, "size is"),
        (lambda: evaluate([0.5, 2.0], [0, 1]), ValueError, "probabilities must be between 0 and 1"),
        (lambda: evaluate([0.5], [0]), ValueError, "at least 2 bags"),
        (lambda: evaluate([0.5, 0.5], None), ValueError, "y, each row's bag proportion, or counts by bag are required"),
        (lambda: evaluate([0.5, 0.5], [0, 1], level=2), ValueError, "level is 2"),
        (lambda: evaluate(np.full((4, 3), 1 / 3), HALF, AB), ValueError, "of 3 classes, and bags count 2"),
        (lambda: bag_metric("beauty", [0.5, 0.5], [0, 1]), ValueError, "unknown metric `beauty`: choose one of"),
        (lambda: bag_scorer("beauty"), ValueError, "unknown metric `beauty`: choose one of"),
        (lambda: diagnose(HALF), ValueError, "bags, the bag id of each row, are required"),
        (lambda: easyllp.load("nowhere.safetensors"), OSError, "nowhere.safetensors"),
        (lambda: fit().save("nowhere/at/all"), OSError, "cannot write"),
    ],
)
def test_each_mistake_gets_its_message(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


HUGE = 2**70
WHOLE = {
    **{name: lambda value, name=name: fit(**{"model": "mlp:2", "l2": None, "holdout": 0.5, "epochs": 2, name: value}) for name in
       ("epochs", "batch_size", "patience", "smoothing", "max_vocabulary", "hash_buckets", "random_state", "n_jobs")},
    "size": lambda value: make_bags([0, 1, 1, 0], size=value),
    "seed": lambda value: make_bags([0, 1, 1, 0], size=2, seed=value),
    "rebag": lambda value: fit(method_params={"rebag": value}),
    "rounds": lambda value: fit(method="llp-em", method_params={"rounds": value}),
    "bootstrap": lambda value: evaluate(HALF, HALF, AB, bootstrap=value),
    "image": lambda value: fit(model="cnn:mnist", image=(1, 28, value)),
}


@pytest.mark.parametrize("value", [HUGE, -HUGE, np.int64(-3), 2.0, np.float64(2), True, np.True_, "2"], ids=repr)
@pytest.mark.parametrize("name", WHOLE)
def test_what_is_no_whole_number_in_range_is_refused_by_name(name, value):
    if name == "n_jobs" and not isinstance(value, (str, float, bool, np.bool_)):
        pytest.skip("more threads than there are cores are as many as make sense, and negative numbers count from the end")
    with pytest.raises(ValueError, match=rf"{name}.* is .*: (it must be|expected a whole number)"):
        WHOLE[name](value)


@pytest.mark.parametrize("n_jobs", [10_000, HUGE, -1, -2, -HUGE, np.int32(3)])
def test_any_number_of_threads_comes_to_an_end(task, n_jobs):
    X, y = task
    expected = LLPClassifier(l2=0.1, holdout=0).fit(X, y)
    assert LLPClassifier(l2=0.1, holdout=0, n_jobs=n_jobs).fit(X, y)._model.to_bytes() == expected._model.to_bytes()


def test_whole_numbers_of_numpy_are_whole_numbers(task):
    X, y = task
    settings = {"epochs": 2, "batch_size": 64, "patience": 3, "smoothing": 1}
    model, again = (LLPClassifier(**{name: kind(value) for name, value in settings.items()}).fit(X, y) for kind in (int, np.uint8))
    assert model._model.to_bytes() == again._model.to_bytes()


def test_tables_that_cannot_be_read():
    pd = pytest.importorskip("pandas")
    y = [0, 1, 0, 1]
    for column, message in [
        ([[1], [2], [3], [4]], "column `a` holds objects, which cannot be a feature"),
        ([{}, {}, {}, {}], "column `a` holds objects"),
        ([1j, 2j, 3j, 4j], "column `a` holds complex128, which cannot be a feature"),
        ([np.inf, 1.0, 2.0, 3.0], "column `a` has inf in row index 0"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            LLPClassifier(l2=0.1, holdout=0).fit(pd.DataFrame({"a": column}), y)
    with pytest.raises(TypeError, match="column names must be text"):
        LLPClassifier().fit(pd.DataFrame({1: [1.0, 2, 3, 4], "a": [1.0, 2, 3, 4]}), y)
    with pytest.raises(ValueError, match="Expected a 2-dimensional|Expected 2D"):
        LLPClassifier().fit(pd.Series([1.0, 2, 3, 4]), y)
    with pytest.raises(ValueError, match="at most|67,108,864"):
        LLPClassifier(hash_buckets=2**32 - 1, max_vocabulary=1).fit(pd.DataFrame({"a": list("abcd")}), y)
    with pytest.raises(ValueError, match="no rows"):
        LLPClassifier().fit(pd.DataFrame({"a": []}), [])
    with pytest.raises(ValueError, match="y has 3 labels for 4 rows"):
        LLPClassifier().fit(pd.DataFrame({"a": [1.0, 2, 3, 4]}), y[:3])


def test_a_damaged_file_is_refused(task, tmp_path):
    X, y = task
    model = LLPClassifier(l2=0.1).fit(X, y)
    model.save(tmp_path / "model")
    whole = bytearray((tmp_path / "model").read_bytes())
    whole[-1] ^= 1
    (tmp_path / "model").write_bytes(whole)
    with pytest.raises(ValueError, match="checksum"):
        easyllp.load(tmp_path / "model")


def test_the_environment_names_vectors_that_are_there():
    def imported(vectors):
        environment = {**os.environ, "EASYLLP_VECTORS": vectors}
        return subprocess.run([sys.executable, "-c", "import easyllp"], env=environment, capture_output=True, text=True)

    assert imported("scalar").returncode == 0
    refused = imported("mmx").stderr.splitlines()[-1]
    assert refused.startswith("ValueError: EASYLLP_VECTORS is `mmx`, which this machine does not have: choose one of scalar"), refused

"""Sparse matrices: they stay sparse, give the models that dense arrays give, and are refused where that cannot be."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import easyllp
from easyllp import LLPClassifier, diagnose, make_bags

# Sums in another order, to within the tolerance of L-BFGS.
CLOSE = {"rtol": 0, "atol": 2e-5}


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(5)
    X = scipy.sparse.random_array((2000, 300), density=0.03, format="csr", dtype=np.float32, rng=rng)
    y = (X @ np.sin(np.arange(300)) + 0.1 * rng.normal(size=2000) > 0).astype(int)
    return X, y


@pytest.mark.parametrize("form", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "csc_array", "coo_array"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_all_forms_give_the_dense_model(task, form, index):
    X, y = task
    bags, proportions = make_bags(y, size=4)
    dense = LLPClassifier(l2=0.01).fit(X.toarray(), proportions, bags=bags)
    given = getattr(scipy.sparse, form)(X)
    for part in ("indptr", "indices"):
        if hasattr(given, part):
            setattr(given, part, getattr(given, part).astype(index))
    sparse = LLPClassifier(l2=0.01).fit(given, proportions, bags=bags)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, **CLOSE)
    np.testing.assert_allclose(sparse.decision_function(given), dense.decision_function(X.toarray()), rtol=0, atol=1e-4)
    np.testing.assert_allclose(sparse.predict_proba(given), sparse.predict_proba(X.toarray()), rtol=0, atol=1e-6)
    report = {bag: int(y[bags == bag].sum()) for bag in np.unique(bags)}
    np.testing.assert_allclose(LLPClassifier(l2=0.01).fit_bags(given, report, bags).coef_, sparse.coef_, **CLOSE)


def test_order_and_duplicates_do_not_matter(task):
    X, y = task
    columns, values = X.indices.copy(), X.data.copy()
    for start, end in zip(X.indptr[:-1], X.indptr[1:]):
        columns[start:end], values[start:end] = columns[start:end][::-1].copy(), values[start:end][::-1].copy()
    halves = scipy.sparse.csr_array((np.repeat(values / 2, 2), np.repeat(columns, 2), X.indptr * 2), shape=X.shape)
    assert not halves.has_canonical_format
    expected = LLPClassifier(l2=0.01).fit(X, y)
    np.testing.assert_allclose(LLPClassifier(l2=0.01).fit(halves, y).coef_, expected.coef_, **CLOSE)


def test_saved_models_score_sparse_rows(task, tmp_path):
    X, y = task
    model = LLPClassifier(l2=0.01).fit(X, y)
    model.save(tmp_path / "m.model")
    np.testing.assert_array_equal(easyllp.load(tmp_path / "m.model").predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"model": "mlp:4"}, "a model that is not linear does not support sparse rows"),
        ({"epochs": 3}, "training with Adam does not support sparse rows"),
        ({"method": "easyllp-sgd"}, "easyllp-sgd does not support sparse rows"),
        ({"method": "laplacian-mean-map"}, "laplacian-mean-map does not support sparse rows"),
    ],
)
def test_what_needs_dense_rows_says_so(task, settings, reason):
    X, y = task
    bags, proportions = make_bags(y, size=4)
    model = LLPClassifier(**settings)
    assert not model.__sklearn_tags__().input_tags.sparse
    with pytest.raises(ValueError, match=reason + ".*convert the rows to a dense array"):
        model.fit(X, proportions, bags=bags)
    assert LLPClassifier().__sklearn_tags__().input_tags.sparse


def test_a_network_does_not_score_sparse_rows(task):
    X, y = task
    model = LLPClassifier(model="mlp:4", epochs=1).fit(X.toarray(), y)
    with pytest.raises(ValueError, match="an MLP does not support sparse rows"):
        model.predict_proba(X)


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [
        ("indices", 300, "column index 300, but there are only 300 columns"),
        ("indices", -1, "but there are only 300 columns"),
        ("data", np.inf, "has inf in"),
    ],
)
def test_broken_matrices_are_refused(task, part, value, reason):
    X, y = task
    broken = X.copy()
    getattr(broken, part)[7] = value
    with pytest.raises(ValueError, match=reason):
        LLPClassifier(l2=0.01).fit(broken, y)
    broken = X.copy()
    broken.indptr[3] = broken.indptr[4] + 1
    with pytest.raises(ValueError, match="row index 3 of a sparse matrix"):
        LLPClassifier(l2=0.01).fit(broken, y)


def test_diagnosis_looks_at_sparse_columns(task):
    X, y = task
    order = np.argsort(X.toarray()[:, 17], kind="stable")
    bags = np.empty(2000, dtype=int)
    bags[order] = np.arange(2000) // 20
    counts = np.bincount(bags, y)
    of_sparse = diagnose(counts=dict(enumerate(counts.astype(int).tolist())), bags=bags, X=X).uneven
    of_dense = diagnose(counts=dict(enumerate(counts.astype(int).tolist())), bags=bags, X=X.toarray()).uneven
    assert of_sparse[0]["column"] == of_dense[0]["column"] == 17
    assert of_sparse[0]["ratio"] == pytest.approx(of_dense[0]["ratio"], rel=1e-6)


LARGE = """
import resource, numpy as np, scipy.sparse
from easyllp import LLPClassifier
X = scipy.sparse.random_array((8000, 100_000), density=3e-4, format="csr", dtype=np.float32, rng=np.random.default_rng(1))
y = (np.asarray(X.sum(axis=1)).ravel() > 15).astype(int)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = LLPClassifier().fit(X, y)
model.predict_proba(X)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory in kilobytes")
def test_memory_goes_with_the_numbers_stored():
    ran = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    # 240,000 numbers; as a dense array they would be 3.2 GB.
    assert int(ran.stdout) < 300_000, f"{ran.stdout} kB"

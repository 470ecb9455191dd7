"""Whatever `fit` is given, it fits or raises an error of its own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import easyllp
from easyllp import LLPClassifier

values = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.integers(-3, 3), st.none(), st.text(max_size=2), st.booleans()
)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    X=st.one_of(
        arrays.arrays(
            st.sampled_from([np.float32, np.float64, np.int8, np.uint64, np.bool_, "U2", object, np.complex64]),
            arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=12),
        ),
        st.lists(st.lists(values, max_size=3), max_size=12),
    ),
    y=st.one_of(
        arrays.arrays(np.float64, arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=12)),
        st.lists(st.sampled_from([0, 1, 0.5, -1, "a", None]), max_size=12),
    ),
    bags=st.one_of(st.none(), st.lists(values, max_size=12), st.lists(st.integers(0, 3), max_size=12)),
    method=st.sampled_from([method.name for method in easyllp.methods()]),
    model=st.sampled_from(["linear", "mlp:3", "embedding:2,mlp:2", "cnn:fc3 relu"]),
    holdout=st.sampled_from([0, 0.2, 0.5]),
    l2=st.sampled_from([None, 0.1, "auto"]),
)
def test_whatever_fit_is_given_it_fits_or_raises(X, y, bags, method, model, holdout, l2):
    estimator = LLPClassifier(method, model, holdout=holdout, l2=l2, epochs=None if l2 == "auto" else 1, image="1x1x2")
    try:
        estimator.fit(X, y, bags=bags)
    except (ValueError, TypeError):
        return
    assert np.isfinite(estimator.predict_proba(X)).all()


@st.composite
def tasks(draw):
    """Rows, their bags, and what each bag reports: one count, or one per class. There are two bags and two classes at least."""
    n_rows, n_classes = draw(st.integers(6, 24)), draw(st.sampled_from([2, 2, 3]))
    whole = lambda most: arrays.arrays(np.int64, n_rows, elements=st.integers(0, most), fill=st.nothing())
    numbers = st.floats(-9, 9, width=32)
    X = draw(arrays.arrays(np.float32, (n_rows, draw(st.integers(1, 3))), elements=numbers, fill=st.nothing()))
    ids, labels = draw(whole(draw(st.integers(1, 7)))), draw(whole(n_classes - 1))
    ids[:2], labels[:2] = [0, 1], [0, 1]
    _, bags = np.unique(ids, return_inverse=True)
    counts = np.zeros((bags.max() + 1, n_classes))
    np.add.at(counts, (bags, labels), 1)
    return X, bags, counts[:, 1] if n_classes == 2 else counts


def in_form(X, form):
    """Rows in one of the forms that people have them in; a table has a column of text, too."""
    if form == "table":
        pd = pytest.importorskip("pandas")
        return pd.DataFrame(X, columns=list("abc")[: X.shape[1]]).assign(word=np.where(X[:, 0] > 0, "x", "y"))
    return {"C": X, "float64, F": np.asfortranarray(X, dtype=np.float64), "sparse": scipy.sparse.csr_array(X)}[form]


def reported(estimator, X, bags, counts, form, noise):
    if form == "proportions":
        shares = (counts.T / np.bincount(bags)).T
        return estimator.fit(X, shares[bags], bags=bags)
    if form == "mapping":
        return estimator.fit_bags(X, dict(enumerate(counts.tolist())), bags, noise=noise)
    pd = pytest.importorskip("pandas")
    report = pd.DataFrame(counts).add_prefix("class ")
    return estimator.fit_bags(X, report, bags, noise=noise)


def test_most_of_what_goes_together_is_learnt_from():
    is_fitted = []

    @settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        task=tasks(),
        rows=st.sampled_from(["C", "float64, F", "sparse", "table"]),
        report=st.sampled_from(["proportions", "mapping", "table"]),
        noise=st.sampled_from([None, None, ("laplace", 0.5), ("gaussian", 1.0)]),
        method=st.sampled_from([method.name for method in easyllp.methods() if method.name != "supervised"]),  # which requires row labels
        is_linear=st.booleans(),
        holdout=st.sampled_from([0, 0, 0.5]),
    )
    def fits_or_raises(task, rows, report, noise, method, is_linear, holdout):
        X, bags, counts = task
        # Sparse rows are for linear models and L-BFGS.
        is_linear = is_linear or rows == "sparse"
        model = "linear" if is_linear else "embedding:2,mlp:2" if rows == "table" else "mlp:3"
        is_sgd = method == "easyllp-sgd"
        estimator = LLPClassifier(method, model, holdout=holdout, l2=None if is_sgd else 0.1, epochs=None if is_sgd or rows == "sparse" else 1)
        is_fitted.append(False)
        try:
            reported(estimator, in_form(X, rows), bags, counts, report, noise)
        except (ValueError, TypeError):
            return
        is_fitted[-1] = True
        assert np.isfinite(estimator.predict_proba(in_form(X, rows))).all()

    fits_or_raises()
    # The rest are too few bags to hold some out, and methods that require a linear model.
    assert np.mean(is_fitted) > 0.5

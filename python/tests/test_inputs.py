"""Rows in all the forms that people have them in."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from easyllp import LLPClassifier, _easyllp, datasets, diagnose, make_bags


def test_float32_in_c_order_is_read_where_it_lies(task):
    X, _ = task
    assert _easyllp.address(X) == X.ctypes.data
    model = LLPClassifier(l2=0.1)
    assert model._features(X, reset=True) is X or np.shares_memory(model._features(X, reset=True), X)
    # A whole number of lines from the middle is in C order, too.
    assert _easyllp.address(model._features(X[100:300], reset=True)) == X[100:].ctypes.data


@pytest.mark.parametrize(
    "form", ["float64", "Fortran", "strided", "list", "int", "csr", "csc", "coo array", "read-only", "memmap", "unaligned"]
)
def test_any_other_array_is_converted_once(task, form, tmp_path):
    X, y = task
    X = X.round(1)
    given = X.round().astype(int) if form == "int" else X
    expected = LLPClassifier(l2=0.1).fit(given.astype(np.float32), y)
    if form == "memmap":
        np.save(tmp_path / "x.npy", X)
    if form == "read-only":
        given = X.copy()
        given.flags.writeable = False
    forms = {
        "float64": lambda: given.astype(np.float64),
        "Fortran": lambda: np.asfortranarray(given),
        "strided": lambda: np.repeat(given, 2, axis=1)[:, ::2],
        "list": lambda: given.tolist(),
        "int": lambda: given,
        "csr": lambda: scipy.sparse.csr_matrix(given),
        "csc": lambda: scipy.sparse.csc_array(given),
        "coo array": lambda: scipy.sparse.coo_array(given),
        "read-only": lambda: given,
        "memmap": lambda: np.load(tmp_path / "x.npy", mmap_mode="r"),
        "unaligned": lambda: unaligned(given),
    }
    model = LLPClassifier(l2=0.1).fit(forms[form](), y)
    # Sparse rows are added up in another order: to within the tolerance of L-BFGS.
    tolerance = {"rtol": 0, "atol": 1e-5 if form in ("csr", "csc", "coo array") else 0}
    np.testing.assert_allclose(model.coef_, expected.coef_, **tolerance)
    np.testing.assert_allclose(model.predict_proba(forms[form]()), expected.predict_proba(given.astype(np.float32)), **tolerance)


def unaligned(values):
    """The same numbers at an address that their type does not allow, as a file with a header of one byte has them."""
    moved = np.frombuffer(b"\0" + values.tobytes(), dtype=values.dtype, offset=1).reshape(values.shape)
    assert not moved.flags.aligned
    return moved


def test_numbers_lie_anywhere(task):
    pd = pytest.importorskip("pandas")
    X, y = task
    bags, proportions = make_bags(y, size=4)
    assert diagnose(proportions, bags, X=unaligned(X)) == diagnose(proportions, bags, X=X)
    one = pd.DataFrame({"a": X[:, 0].astype(np.float64)})
    model = LLPClassifier(l2=0.1).fit(one, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        moved = model.predict_proba(unaligned(one.to_numpy()))
    np.testing.assert_array_equal(moved, model.predict_proba(one))


def frame():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(11)
    city = rng.choice(["Bern", "Oslo", "Wien"], size=600)
    age = rng.normal(40, 12, size=600)
    y = ((age > 40) ^ (city == "Oslo")).astype(int)
    age[::50] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "city": pd.Categorical(city),
            "word": rng.choice(["x", "y"], size=600),
            "zone": pd.Categorical(rng.choice([1, 2, 30], size=600)),
            "flag": rng.random(600) > 0.5,
            "since": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(100, size=600), unit="D"),
        }
    ), y


def test_tables_of_all_kinds_are_the_same_rows():
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    pandas, y = frame()
    model = LLPClassifier(l2=0.01).fit(pandas, y)
    expected = model.predict_proba(pandas)
    # Categories of Polars are text.
    polars = pl.from_pandas(pandas).with_columns(pl.col("zone").cast(pl.String).cast(pl.Categorical))
    for other in (pa.Table.from_pandas(pandas), polars):
        again = LLPClassifier(l2=0.01).fit(other, y)
        np.testing.assert_allclose(again.predict_proba(other), expected, atol=1e-6)
        assert again.feature_names_in_.tolist() == list(pandas.columns)
    assert model.score(pandas, y) > 0.6


def test_categories_are_kept_and_new_ones_do_no_harm():
    pandas, y = frame()
    model = LLPClassifier(model="embedding:4,mlp:16", epochs=40, lr=0.01).fit(pandas, y)
    assert model.score(pandas, y) > 0.9  # no linear model of these columns reaches that
    strange = pandas.copy()
    strange["city"] = "Rom"
    assert np.isfinite(model.predict_proba(strange)).all()
    # Zones are numbers, but categories: in whatever order they are coded.
    reordered = pandas.copy()
    reordered["zone"] = reordered["zone"].cat.reorder_categories([30, 1, 2])
    np.testing.assert_array_equal(model.predict_proba(reordered), model.predict_proba(pandas))


def test_pandas_without_pyarrow(monkeypatch):
    pandas, y = frame()
    bags, proportions = make_bags(y, size=4)
    with_arrow = LLPClassifier(l2=0.01).fit(pandas, proportions, bags=bags)
    monkeypatch.setattr("easyllp._rows._has_pyarrow", lambda: False)
    without = LLPClassifier(l2=0.01).fit(pandas, proportions, bags=bags)
    assert without._model.to_bytes() == with_arrow._model.to_bytes()


def test_pandas_from_before_arrow_s_capsules(monkeypatch):
    pd = pytest.importorskip("pandas")
    pandas, y = frame()
    expected = LLPClassifier(l2=0.01).fit(pandas, y)
    monkeypatch.delattr(pd.DataFrame, "__arrow_c_stream__")
    assert LLPClassifier(l2=0.01).fit(pandas, y)._model.to_bytes() == expected._model.to_bytes()


def test_pandas_of_all_kinds_is_alike_with_and_without_pyarrow(monkeypatch):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(3)
    odd = pd.DataFrame(
        {
            "flag": pd.Categorical(rng.random(200) > 0.5),
            "some": pd.Series(np.where(rng.random(200) > 0.2, rng.integers(5, size=200), None), dtype=object),
            "zoned": pd.date_range("2026-01-01", periods=200, freq="h", tz="Europe/Vienna"),
            "whole": pd.Series(rng.integers(9, size=200), dtype="Int64"),
            "word": pd.Series(rng.choice(["x", None], size=200), dtype=object),
        }
    )
    y = rng.random(200) > 0.5
    model = LLPClassifier(l2=0.01).fit(odd, y)
    expected = model.predict_proba(odd)
    monkeypatch.setattr("easyllp._rows._has_pyarrow", lambda: False)
    np.testing.assert_allclose(model.predict_proba(odd), expected, atol=1e-6)
    again = LLPClassifier(l2=0.01).fit(odd, y)
    np.testing.assert_allclose(again.predict_proba(odd), expected, atol=1e-5)
    for strange in (pd.Series(pd.period_range("2026", periods=200)), pd.Series([1, "a"] * 100, dtype=object)):
        with pytest.raises(ValueError, match="column `odd` holds"):
            LLPClassifier(l2=0.01).fit(odd.assign(odd=strange), y)


def test_a_table_for_an_array_is_an_array(task):
    pd = pytest.importorskip("pandas")
    X, y = task
    model = LLPClassifier(l2=0.1).fit(X, y)
    with pytest.warns(UserWarning, match="X has feature names"):
        np.testing.assert_array_equal(model.predict_proba(pd.DataFrame(X, columns=list("abc"))), model.predict_proba(X))


def test_columns_are_found_by_their_names():
    pandas, y = frame()
    model = LLPClassifier(l2=0.01).fit(pandas, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pandas[pandas.columns[::-1]])
    with pytest.raises(ValueError, match="feature names|features"):
        model.predict(pandas.drop(columns="age"))


def test_an_array_for_a_table_has_its_columns_in_order():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"z": rng.normal(size=300), "a": 100 + rng.normal(size=300)}).astype(np.float32)
    model = LLPClassifier(l2=0.01).fit(table, table["z"] > 0)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        again = model.predict_proba(table.to_numpy())
    np.testing.assert_allclose(again, model.predict_proba(table), rtol=1e-6)
    # An hour in seconds has more digits than float32, and a number may be missing.
    late = table.assign(z=1.7e9 + np.arange(300.0))
    model = LLPClassifier(l2=0.01).fit(late, np.arange(300) > 150)
    late.loc[7, "a"] = np.nan
    with pytest.warns(UserWarning):
        np.testing.assert_allclose(model.predict_proba(late.to_numpy()), model.predict_proba(late), atol=1e-6)
    mixed, y = frame()
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="column `city` is numeric"):
        LLPClassifier(l2=0.01).fit(mixed, y).predict(np.zeros((2, 6)))


def test_images():
    train, test = datasets.optdigits()
    bags, proportions = make_bags(train.y % 2, size=8)
    model = LLPClassifier("proportion-matching", "cnn:conv3x8 relu pool2 fc32 relu", image=(1, 8, 8), epochs=20, lr=0.005)
    model.fit(train.X, proportions, bags=bags)
    assert model.score(test.X, test.y % 2) > 0.9  # a linear model has 0.88
    with pytest.raises(ValueError, match="a cnn needs to know the shape of its images"):
        LLPClassifier(model="cnn:mnist").fit(train.X, proportions, bags=bags)


def test_embedded_data():
    (train_X, train_y), (test_X, test_y) = datasets.adult()
    assert (len(train_y), len(test_y)) == (32561, 16281)
    assert train_y.mean() == pytest.approx(0.2408, abs=1e-4)
    if hasattr(train_X, "columns"):
        assert train_X.shape == (32561, 14) and str(train_X["sex"].dtype) == "category"

"""Reports in the forms that files and libraries leave them in."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from easyllp import LLPClassifier, diagnose, evaluate, make_bags
from easyllp._reports import from_report

pd = pytest.importorskip("pandas")


@pytest.fixture
def clicks(task):
    """Rows, their bags, and clicks of each bag by a flat table as `read_csv` gives it."""
    X, y = task
    bags, _ = make_bags(y, size=4)
    flat = pd.DataFrame({"bag": np.arange(100), "clicks": np.bincount(bags, y)})
    return X, bags, flat


def test_a_flat_table_has_its_ids_in_columns(clicks):
    X, bags, flat = clicks
    expected = LLPClassifier(l2=0.1).fit_bags(X, flat.set_index("bag")["clicks"], bags)
    named = pd.Series(bags, name="bag")
    # By the name of the column, wherever it stands; or the first column, if lines are no ids.
    for ids, report in (
        (named, flat),
        (named, flat[["clicks", "bag"]]),
        (named + 1, flat.assign(bag=flat["bag"] + 1)),
        (bags + 1, flat.assign(bag=flat["bag"] + 1)),
        ([f"d{bag}" for bag in bags], flat.assign(bag=[f"d{bag}" for bag in flat["bag"]])),
        (pd.DataFrame({"bag": bags}), flat),
        (bags[:, None], flat.set_index("bag")),
    ):
        model = LLPClassifier(l2=0.1).fit_bags(X, report, ids)
        assert model._model.to_bytes() == expected._model.to_bytes()
    # Without a name, 0 to 99 may be the index or the column, whatever its order.
    for report in (flat, flat.assign(bag=flat["bag"].to_numpy()[::-1]).sample(frac=1, random_state=1)):
        with pytest.raises(ValueError, match=r"its index or its column 'bag'.*set_index\('bag'\)"):
            LLPClassifier(l2=0.1).fit_bags(X, report, bags)
    # Of a table that was filtered, the index has no ids.
    rest = flat.assign(bag=flat["bag"] + 1).drop(index=99)
    of_rest = LLPClassifier(l2=0.1).fit_bags(X[bags < 99], rest, bags[bags < 99] + 1)
    expected = LLPClassifier(l2=0.1).fit_bags(X[bags < 99], flat.set_index("bag")["clicks"].drop(index=99), bags[bags < 99])
    assert of_rest._model.to_bytes() == expected._model.to_bytes()
    # Lines are ids where no column can be.
    both = pd.DataFrame({"hit": flat["clicks"], "miss": 4 - flat["clicks"]})
    assert LLPClassifier(l2=0.1).fit_bags(X, both, bags).classes_.tolist() == ["hit", "miss"]


@pytest.mark.parametrize("noise", [None, ("laplace", 1.0)])
def test_a_column_of_sizes_is_no_class(clicks, noise):
    X, bags, flat = clicks
    with pytest.raises(ValueError, match="column 'size' of the report is the number of rows of every bag"):
        LLPClassifier(l2=0.1).fit_bags(X, flat.assign(size=4), pd.Series(bags, name="bag"), noise=noise)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_flat_table_of_two_keys(clicks, library):
    tables = pytest.importorskip(library)
    X, bags, flat = clicks
    columns = {"day": [bag % 7 for bag in range(100)], "batch": [f"b{bag // 7}" for bag in range(100)], "clicks": flat["clicks"].tolist()}
    report = (tables.table if library == "pyarrow" else tables.DataFrame)(columns)
    keys = pd.DataFrame({"day": bags % 7, "batch": [f"b{bag // 7}" for bag in bags]})
    expected = LLPClassifier(l2=0.1).fit_bags(X, flat.set_index("bag")["clicks"], bags)
    for ids in (keys, list(zip(keys["day"], keys["batch"], strict=True)), keys.rename(columns={"day": "d", "batch": "e"})):
        assert LLPClassifier(l2=0.1).fit_bags(X, report, ids)._model.to_bytes() == expected._model.to_bytes()
    with pytest.raises(ValueError, match="bag 0 is reported twice, by its column 'day'"):
        from_report(keys["day"], report)


def test_a_day_is_a_day(task):
    X, y = task
    days = np.datetime64("2026-01-01") + np.arange(400) // 4
    counts = np.bincount(np.arange(400) // 4, y).tolist()
    plain = [datetime.date(2026, 1, 1) + datetime.timedelta(days=day) for day in range(100)]
    moments = [datetime.datetime(day.year, day.month, day.day) for day in plain]
    expected = from_report(np.arange(400) // 4, dict(enumerate(counts)))
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    reports = [
        dict(zip(plain, counts, strict=True)),
        dict(zip(moments, counts, strict=True)),
        dict(zip(np.unique(days), counts, strict=True)),
        dict(zip(np.unique(days).astype("datetime64[ns]"), counts, strict=True)),
        pd.Series(counts, index=plain),
        pd.Series(counts, index=pd.DatetimeIndex(plain)),
        pl.DataFrame({"day": plain, "count": counts}),
        pa.table({"day": pa.array(plain, pa.date32()), "count": counts}),
    ]
    of_rows = days.tolist()
    ids = [days, days.astype("datetime64[ns]"), of_rows, pd.Series(days), pl.Series(of_rows), pa.array(of_rows), list(days), days[:, None]]
    for report in reports:
        for given in ids:
            found = from_report(given, report)
            np.testing.assert_array_equal(found.of_row, expected.of_row)
            np.testing.assert_array_equal(found.counts, expected.counts)
    two = from_report(np.stack([days, days], axis=1), {(day, day): count for day, count in zip(plain, counts, strict=True)})
    np.testing.assert_array_equal(two.of_row, expected.of_row)
    # Scales of noise have ids, too.
    noise = ("laplace", dict.fromkeys(plain, 1.0))
    LLPClassifier(l2=0.1).fit_bags(X, reports[1], days, noise=noise)
    with pytest.raises(ValueError, match="row index 3 has no bag id"):
        from_report([*days[:3], np.datetime64("NaT")], reports[0])


def test_lazy_frames_are_collected(clicks):
    pl = pytest.importorskip("polars")
    X, bags, flat = clicks
    rows = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    report, ids = pl.from_pandas(flat), pl.DataFrame({"bag": bags})
    expected = LLPClassifier(l2=0.1).fit_bags(rows, report, ids)
    model = LLPClassifier(l2=0.1).fit_bags(rows.lazy(), report.lazy(), ids.lazy())
    assert model._model.to_bytes() == expected._model.to_bytes()
    p = expected.predict_proba(rows)
    np.testing.assert_array_equal(model.predict_proba(rows.lazy()), p)
    assert evaluate(p, bags=ids.lazy(), counts=report.lazy()) == evaluate(p, bags=ids, counts=report)
    assert diagnose(bags=ids.lazy(), counts=report.lazy(), X=rows.lazy()) == diagnose(bags=ids, counts=report, X=rows)
    proportions = np.bincount(bags, weights=flat["clicks"].to_numpy()[bags])[bags] / 16
    by_shares = LLPClassifier(l2=0.1).fit(rows.lazy(), proportions, bags=ids.lazy())
    assert by_shares.score(rows.lazy(), proportions, bags=ids.lazy()) == by_shares.score(rows, proportions, bags=bags)

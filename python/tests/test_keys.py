"""Ids of bags: tuples stay tuples, and what does not match is shown from both sides."""

from __future__ import annotations

import numpy as np
import pytest

from easyllp import LLPClassifier
from easyllp._bags import places
from easyllp._reports import from_report


def keys():
    """Two bags whose keys would be one if they were joined by " / "."""
    return [("a / b", "c"), ("a", "b / c")]


@pytest.mark.parametrize("form", ["array", "tuples", "frame", "index"])
def test_several_keys_are_tuples(form):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(keys(), columns=["x", "y"])
    forms = {
        "array": np.array(keys()),
        "tuples": keys(),
        "frame": table,
        "index": pd.MultiIndex.from_frame(table).to_numpy(),
    }
    of_row, names = places(forms[form])
    assert of_row.tolist() == [0, 1] and names == keys()
    report = pd.Series([0, 1], index=pd.MultiIndex.from_tuples(keys()[::-1]))
    assert from_report(forms[form], report).counts.tolist() == [0, 1]
    assert from_report(forms[form], report).of_row.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("ids", "report", "message"),
    [
        (["00001", "00002"], {1: 1, 2: 0}, r"'00001', '00002' \(str\); the report has 1, 2 \(int\)"),
        ([1, 2], {1: 1, 3: 0}, r"2 \(int\); the report has 3 \(int\)"),
        ([1, 2], {1: 1, 2: 0, 3: 0}, r"3 \(int\); the rows have 1, 2 \(int\)"),
        (keys(), {("a", "c"): 1}, r"\(tuple of str, str\); the report has \('a', 'c'\)"),
        (np.array([2.0**53, 1.0]), {2**53 + 1: 1, 1: 0}, r"row index 0 has the bag id 9007199254740992.0, a float64 of at least 2\*\*53"),
    ],
)
def test_ids_that_do_not_match_are_shown_from_both_sides(ids, report, message):
    with pytest.raises(ValueError, match=message):
        from_report(ids, report)


def test_whole_numbers_match_whatever_their_type_is(task):
    X, _ = task
    ids = np.arange(len(X)) // 20
    report = {float(bag): 10 + bag % 3 for bag in range(20)}
    model = LLPClassifier(l2=0.1, holdout=0).fit_bags(X, report, ids)
    same = LLPClassifier(l2=0.1, holdout=0).fit_bags(X, {int(bag): count for bag, count in report.items()}, ids.astype(float))
    np.testing.assert_array_equal(model.coef_, same.coef_)

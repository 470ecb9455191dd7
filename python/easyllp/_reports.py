"""Reports: counts by bag id, in the forms that people have them in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from easyllp._bags import Bags, _values, eager, key, places


class _Report(NamedTuple):
    ids: list[Hashable]
    columns: list[Hashable] | None  # what counts are called, if they are
    counts: Any
    source: str  # where the ids were found


def from_report(bags: Any, counts: Any, n_rows: int | None = None) -> Bags:
    """Bags from each row's id and a report, in whose order the bags are.

    A report is a mapping, a pandas Series or DataFrame whose index holds the ids, or a table whose columns do: those with the names of
    `bags`, or the first ones.
    """
    bags = eager(bags)
    of_row, seen = places(bags, n_rows)
    report = _report(eager(counts), _key_names(bags), seen)
    names = [key(name) for name in report.ids]
    if len(names) == 0:
        raise ValueError("the report has no bags")
    place_of = {name: place for place, name in enumerate(names)}
    if len(place_of) != len(names):
        twice = next(name for place, name in enumerate(names) if place_of[name] != place)
        raise ValueError(f"bag {twice!r} is reported twice, by {report.source}")
    unreported = [name for name in seen if name not in place_of]
    if unreported:
        of_rows = set(seen)
        others = [name for name in names if name not in of_rows] or names
        raise ValueError(
            f"{len(unreported)} bags of the rows have no report: {_first_few(unreported)}; {report.source} has {_first_few(others)}"
        )
    missing = set(place_of).difference(seen)
    if missing:
        named = [name for name in names if name in missing]
        raise ValueError(f"{len(named)} reported bags have no rows: {_first_few(named)}; the rows have {_first_few(seen)}")
    try:
        values = np.asarray(report.counts, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("counts must be a number a bag, or as many numbers as there are classes") from error
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    to_report = np.asarray([place_of[name] for name in seen], dtype=np.uint32)
    given = Bags(to_report[of_row], values, names, report.columns)
    _check_counts(given)
    return given


def _check_counts(given: Bags) -> None:
    """Refuse a column of sizes among the counts of classes. Where counts have noise, nothing else would tell."""
    if given.counts.ndim == 2 and given.columns is not None and given.counts.shape[1] == len(given.columns):
        is_size = (given.counts == given.sizes[:, None]).all(axis=0)
        if is_size.any() and given.counts[:, ~is_size].any():
            name = given.columns[int(np.argmax(is_size))]
            raise ValueError(
                f"column {name!r} of the report is the number of rows of every bag, and not the count of a class: leave it out, for example with "
                f"counts.drop(columns=[{name!r}])"
            )


def _key_names(bags: Any) -> list[Hashable] | None:
    """What the keys of rows are called, if they have names."""
    columns = getattr(bags, "column_names", None) or getattr(bags, "columns", None)
    if columns is not None:
        return list(columns)
    name = getattr(bags, "name", None)
    return [name] if isinstance(name, str) else None


def _report(counts: Any, keys: list[Hashable] | None, seen: Sequence[Hashable]) -> _Report:
    if isinstance(counts, Mapping):
        return _Report(list(counts), None, list(counts.values()), "the report")
    is_pandas = hasattr(counts, "iloc")
    if is_pandas and not hasattr(counts, "columns"):
        columns: list[Hashable] | None = [counts.name] if isinstance(counts.name, str) else None
        return _Report(counts.index.tolist(), columns, counts.to_numpy(), "its index")
    if is_pandas and not _is_flat(counts, keys, seen):
        return _Report(counts.index.tolist(), list(counts.columns), counts.to_numpy(), "its index")
    if is_pandas or (hasattr(counts, "__arrow_c_stream__") and hasattr(counts, "columns")):
        return _flat(counts, keys, seen)
    raise TypeError(
        "counts must be a mapping from bag id to count, a pandas Series or DataFrame with the ids as its index, or a table with the ids "
        f"in its first columns, or in those named as bags are; it is a {type(counts).__name__}"
    )


def _flat(table: Any, keys: list[Hashable] | None, seen: Sequence[Hashable]) -> _Report:
    """A report whose ids are in columns."""
    names = _columns(table)
    of_keys = _key_columns(names, keys, seen)
    rest = [name for name in names if name not in of_keys]
    if not rest or len(set(names)) < len(names):
        shown = ", ".join(map(repr, names))
        raise ValueError(f"the report has the columns {shown or 'none'}: expected ids first, then counts, with unique names")
    counts = list(zip(*(_values(table[name]) for name in rest), strict=True))
    source = f"its column{'s' if len(of_keys) > 1 else ''} {', '.join(map(repr, of_keys))}"
    return _Report(_ids(table, of_keys), rest, counts, source)


def _columns(table: Any) -> list[Hashable]:
    return list(getattr(table, "column_names", None) or table.columns)


def _ids(table: Any, columns: list[Hashable]) -> list[Hashable]:
    parts = [_values(table[name]) for name in columns]
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def _key_columns(names: list[Hashable], keys: list[Hashable] | None, seen: Sequence[Hashable]) -> list[Hashable]:
    """Columns of ids: those with the names of the rows' keys, or as many of the first."""
    if keys is not None and all(name in names for name in keys):
        return keys
    return names[: len(seen[0]) if seen and isinstance(seen[0], tuple) else 1]


def _is_flat(frame: Any, keys: list[Hashable] | None, seen: Sequence[Hashable]) -> bool:
    """Whether the ids of a pandas report are in its columns, as `read_csv` leaves them, and not in its index."""
    index, names = frame.index, list(frame.columns)
    of_keys = _key_columns(names, keys, seen)
    if any(name is not None for name in index.names) or index.nlevels > 1 or len(of_keys) == len(names):
        return False
    if of_keys == keys:
        return True
    wanted = set(seen)
    is_index = {key(name) for name in index} == wanted
    is_column = {key(name) for name in _ids(frame, of_keys)} == wanted
    if is_index and is_column:
        raise ValueError(
            f"the ids of the report can be its index or its column {of_keys[0]!r}: say which, by counts.set_index({of_keys[0]!r}) "
            "or counts.rename_axis('bag')"
        )
    # As `read_csv` leaves them, lines are numbered from 0.
    is_numbered = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    return not is_index and (is_numbered or is_column)


def _first_few(names: Sequence[Any]) -> str:
    """Some ids and their types: 1 and "1" are two ids."""
    shown = ", ".join(repr(name) for name in names[:3]) + (", …" if len(names) > 3 else "")
    return f"{shown} ({' or '.join(sorted({_type(name) for name in names}))})"


def _type(name: Any) -> str:
    parts = ", ".join(type(part).__name__ for part in name) if isinstance(name, tuple) else ""
    return f"tuple of {parts}" if parts else type(name).__name__

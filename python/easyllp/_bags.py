"""Bags as arrays: ids become indices, proportions of rows become counts of bags."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Bags:
    """Which bag each row is in, and what each bag reports.

    Attributes
    ----------
    of_row : ndarray of shape (n_rows,), dtype uint32
        The place of each row's bag in `names`.
    counts : ndarray of shape (n_bags,) or (n_bags, n_classes), dtype float64
        How many rows of each bag are positive, or how many are in each class.
    names : list
        The bags' ids.
    columns : list, optional
        The names of the columns of counts, if any.
    """

    of_row: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.float64]
    names: Sequence[Hashable]
    columns: Sequence[Hashable] | None = None

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many rows each bag has."""
        return np.bincount(self.of_row, minlength=len(self.names))

    @property
    def n_classes(self) -> int:
        """How many classes the bags count."""
        return 2 if self.counts.ndim == 1 else self.counts.shape[1]

    @property
    def proportions(self) -> npt.NDArray[np.float64]:
        """What share of each bag is positive, or in each class."""
        sizes = self.sizes
        return self.counts / (sizes if self.counts.ndim == 1 else sizes[:, None])

    @property
    def labels(self) -> npt.NDArray[np.float64]:
        """The proportions of its bag for each row: what `fit` takes as `y`."""
        return self.proportions[self.of_row]


def places(ids: Any, n_rows: int | None = None) -> tuple[npt.NDArray[np.uint32], list[Hashable]]:
    """Number distinct ids in the order in which they come up; ids of several columns are tuples."""
    array = _id_array(eager(ids))
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"bags has {len(array)} ids for {n_rows} rows: one id per row is required")
    if array.dtype.kind in "biufSUmM":
        missing = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array) if array.dtype.kind in "mM" else None
        if missing is not None and missing.any():
            raise ValueError(f"row index {int(np.argmax(missing))} has no bag id")
        if array.dtype.kind == "f":
            n_bits = int(np.finfo(array.dtype).nmant) + 1
            rounded = np.abs(array) >= 2.0**n_bits
            if rounded.any():
                row = int(np.argmax(rounded))
                raise ValueError(
                    f"row index {row} has the bag id {array[row]!s}, a {array.dtype} of at least 2**{n_bits}, where whole numbers are "
                    "rounded: make ids integers or text"
                )
        distinct, first, place = np.unique(array, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty(len(order), dtype=np.uint32)
        rank[order] = np.arange(len(order), dtype=np.uint32)
        return rank[place], _names(distinct[order])
    place_of: dict[Hashable, int] = {}
    of_row = np.empty(len(array), dtype=np.uint32)
    for row, name in enumerate(map(key, array.tolist())):
        if _is_missing(name) or (isinstance(name, tuple) and any(_is_missing(part) for part in name)):
            raise ValueError(f"row index {row} has no bag id")
        try:
            of_row[row] = place_of.setdefault(name, len(place_of))
        except TypeError as error:
            raise TypeError(f"row index {row} has a bag id of type {type(name).__name__}, which has no hash") from error
    return of_row, list(place_of)


def _id_array(ids: Any) -> npt.NDArray[Any]:
    """One id per row. Other types than arrays stay objects, so that 1 and "1" are two ids and large numbers are not rounded."""
    if isinstance(ids, np.ndarray):
        if ids.ndim == 1:
            return ids
        if ids.ndim == 2 and ids.shape[1] == 1:
            return ids[:, 0]
        if ids.ndim == 2:
            return _objects(zip(*(_names(column) for column in ids.T), strict=True))
        raise ValueError(f"bags must have one id per row, or several columns of ids; it has {ids.ndim} dimensions")
    columns = getattr(ids, "column_names", None) or getattr(ids, "columns", None)
    if columns is not None and len(columns) == 1:
        return _id_array(ids[columns[0]])
    if columns is not None:  # a table of keys
        return _objects(zip(*(_values(ids[name]) for name in columns), strict=True))
    if hasattr(ids, "to_numpy") and getattr(getattr(ids, "dtype", None), "kind", "O") in "biufmM":
        plain = ids.to_numpy()
        if plain.dtype.kind in "biufmM":
            return np.asarray(plain)
    try:
        return _objects(_values(ids))
    except TypeError as error:
        raise TypeError(f"bags must have one id per row; it is a {type(ids).__name__}") from error


def _values(column: Any) -> list[Any]:
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _objects(values: Iterable[Any]) -> npt.NDArray[np.object_]:
    values = list(values)
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def eager(data: Any) -> Any:
    """The data, read if it is a lazy frame, as Polars has them."""
    return data.collect() if type(data).__name__ == "LazyFrame" and hasattr(data, "collect") else data


def key(name: Any) -> Any:
    """An id by which rows and reports meet: a day is its first moment, and NumPy's values are Python's."""
    if type(name) in (str, int):
        return name
    if isinstance(name, tuple):
        return tuple(key(part) for part in name)
    if isinstance(name, np.generic):
        name = _names(np.asarray([name]))[0]
    if isinstance(name, date) and not isinstance(name, datetime):
        return datetime(name.year, name.month, name.day)
    return name


def _names(distinct: npt.NDArray[Any]) -> list[Hashable]:
    """Ids as Python has them, by which reports are looked up: times are compared with those of any unit."""
    if distinct.dtype.kind in "mM":
        micro = distinct.astype(f"{distinct.dtype.kind}8[us]")
        if (micro == distinct).all():
            return list(micro.tolist())
        return list(distinct)
    return list(distinct.tolist())


def _is_missing(name: Any) -> bool:
    if isinstance(name, (float, np.floating, np.datetime64, np.timedelta64)):
        return bool(name != name)
    return name is None or type(name).__name__ in ("NAType", "NaTType")


def from_proportions(y: Any, bags: Any, n_rows: int | None = None) -> Bags:
    """Bags from each row's id and the proportions of its bag, which must be the same for all rows of a bag.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or (n_rows, n_classes)
        The share of positive rows in the row's bag, or the share of each class.
    bags : array-like of shape (n_rows,) or (n_rows, n_keys)
        The bag id of each row, of any hashable type.
    n_rows : int, optional
        How many rows there must be.
    """
    y = eager(y)
    columns = table_columns(y)
    y = np.asarray(y)
    if y.dtype.kind not in "biuf":
        raise ValueError(
            f"with bags, y is each row's bag proportion, a number from 0 to 1; its dtype is {y.dtype}: pass a report of counts to "
            "fit_bags, or to evaluate as counts="
        )
    y = y.astype(np.float64)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim not in (1, 2):
        raise ValueError(f"y must have one proportion per row, or one per class; it has {y.ndim} dimensions")
    of_row, names = places(bags, len(y) if n_rows is None else n_rows)
    if len(y) != len(of_row):
        raise ValueError(f"y has {len(y)} proportions for {len(of_row)} rows")
    if not np.isfinite(y).all():
        row = int(np.argwhere(~np.isfinite(y))[0][0])
        raise ValueError(f"y is not a finite number at row index {row}")
    first = np.full(len(names), -1, dtype=np.int64)
    first[of_row[::-1]] = np.arange(len(of_row))[::-1]
    of_bag = y[first]
    differs = y != of_bag[of_row]
    if differs.any():
        row = int(np.argwhere(differs)[0][0])
        bag = of_row[row]
        raise ValueError(
            f"y must be the same for all rows of a bag: bag {names[bag]!r} has {y[first[bag]].tolist()} at row index {first[bag]} "
            f"and {y[row].tolist()} at row index {row}"
        )
    sizes = np.bincount(of_row, minlength=len(names))
    most = sizes if y.ndim == 1 else sizes[:, None]
    counts = of_bag * most
    whole = np.round(counts)
    # What division and multiplication leave is forgiven, and float32, but no more than that.
    is_bad = (np.abs(counts - whole) > np.maximum(1e-6, 5e-7 * np.abs(counts))) | (whole < 0) | (whole > most)
    if is_bad.any():
        bag = int(np.argwhere(is_bad)[0][0])
        raise ValueError(
            f"bag {names[bag]!r} has {sizes[bag]} rows and a proportion of {of_bag[bag].tolist()}, which is not a whole number of "
            "rows from 0 to all: keep bags whole when rows are split; counts with noise go to fit_bags"
        )
    if y.ndim == 2 and (whole.sum(axis=1) != sizes).any():
        bag = int(np.argmax(whole.sum(axis=1) != sizes))
        raise ValueError(f"bag {names[bag]!r} has {sizes[bag]} rows but its class counts sum to {whole[bag].sum():g}")
    return Bags(of_row, whole, names, columns if y.ndim == 2 else None)


def table_columns(data: Any) -> list[Hashable] | None:
    """The names of the columns of a table, if it is one."""
    columns = getattr(data, "column_names", None) or getattr(data, "columns", None)
    return None if columns is None or isinstance(data, np.ndarray) else list(columns)

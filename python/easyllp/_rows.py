"""Rows in the form of the compiled part: a float32 array, the parts of a sparse matrix, a table by Arrow's PyCapsules, or a list of columns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from easyllp._bags import _is_missing, _values


def is_table(X: Any) -> bool:
    """Whether rows come with named columns that may be of different kinds. Without names that are text they are an array."""
    if isinstance(X, np.ndarray) or not (hasattr(X, "__arrow_c_stream__") or _is_pandas(X)):
        return False
    if hasattr(X, "read_next_batch"):
        raise TypeError(f"X is a {type(X).__name__}, which can be read once only: read it into a table first")
    if not (hasattr(X, "columns") or hasattr(X, "column_names")):
        return False  # one column, which scikit-learn has words for
    return any(isinstance(name, str) for name in _names(X))


def _names(X: Any) -> list[Any]:
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def _is_pandas(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "iloc")


def readable(values: Any, dtype: type[np.number[Any]]) -> npt.NDArray[Any]:
    """Numbers in C order at an address that suits them, as the compiled part reads them; copied if they are not."""
    return np.require(values, dtype, ["C", "A"])


def is_sparse(X: Any) -> bool:
    """Whether rows are a sparse matrix or array of SciPy."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def sparse(X: Any) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.float32]]:
    """The parts of a sparse matrix by rows: how many columns it has, where rows start, columns and numbers. Of float32 numbers with
    32-bit columns in CSR format nothing is copied but the starts. The compiled part checks them."""
    X = X.tocsr()
    n_columns = int(X.shape[1])
    starts = readable(X.indptr, np.int64)
    n_values = int(starts[-1]) if len(starts) else 0
    columns, values = X.indices[:n_values], readable(X.data[:n_values], np.float32)
    if columns.dtype == np.int32:
        columns = columns.view(np.uint32)
    elif len(columns) and (columns.min() < 0 or columns.max() >= n_columns):
        raise ValueError(f"a sparse matrix of {n_columns} columns has a number in column {columns[(columns < 0) | (columns >= n_columns)][0]}")
    return n_columns, starts, readable(columns, np.uint32), values


#: Ranges this many times the median range, or this small a part of it, belong to columns of another unit. Pixels of images are not: the
#: rarely lit ones have small ranges, too.
_LARGE, _SMALL = 100, 1000


def warn_of_scales(X: Any) -> None:
    """Warn if the columns of an array have very different ranges: an array is taken as it is, the columns of a table are standardised."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] < 2:
        return
    with np.errstate(invalid="ignore", over="ignore"):
        ranges = np.ptp(X[:: max(1, len(X) // 10_000)], axis=0)
    varying = np.flatnonzero(ranges > 0)
    if len(varying) < 2 or not np.isfinite(ranges).all():
        return
    # Both medians of an even number of ranges: their mean would be half the wider of two.
    ordered = np.sort(ranges[varying])
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    widest, narrowest = (int(varying[place(ranges[varying])]) for place in (np.argmax, np.argmin))
    if ranges[widest] > _LARGE * low or ranges[narrowest] * _SMALL < high:
        warnings.warn(
            f"X is an array, whose columns are not scaled, and their ranges differ: column {widest} has a range of "
            f"{ranges[widest]:.3g}, column {narrowest} of {ranges[narrowest]:.3g}. The penalty `l2` and the learning rate then act "
            "unevenly on columns, and a table with the same numbers, whose columns are standardised, gives another model: scale X "
            "first, for instance with sklearn.preprocessing.StandardScaler",
            UserWarning,
            stacklevel=4,
        )


def warn_of_keys(X: Any, of_row: npt.NDArray[np.uint32]) -> None:
    """Warn of a column of a table that names the bags: each of its values is one bag."""
    n_bags = int(of_row.max()) + 1
    if not is_table(X) or n_bags in (1, len(of_row)):
        return
    n_seen = 1000  # enough to pass over nearly all columns
    for name in _names(X):
        column = X[name]
        if not _is_one_to_one(column[:n_seen], of_row[:n_seen]) or not _is_one_to_one(column, of_row):
            continue
        warnings.warn(
            f"column {name!r} names the bags: each of its values is one bag, so its effect cannot be learned, and other bags have "
            f"other values. Drop it from X, as in X.drop(columns={name!r})",
            UserWarning,
            stacklevel=4,
        )


def _is_one_to_one(column: Any, of_row: npt.NDArray[np.uint32]) -> bool:
    """Whether rows have the same value if, and only if, they are in the same bag."""
    values = _values(column)
    try:
        pairs = set(zip(values, of_row.tolist(), strict=True))
    except TypeError:  # lists, or several columns of one name
        return False
    return len(pairs) == len(set(values)) == len(np.unique(of_row))


def column_names(X: Any) -> list[str]:
    """The names of a table's columns."""
    names = _names(X)
    odd = [name for name in names if not isinstance(name, str)]
    if odd:
        raise TypeError(
            f"column names must be text, and {odd[0]!r} is a {type(odd[0]).__name__}: rename the columns, or pass an array"
        )
    return names


def table(X: Any) -> Any:
    """A table that the compiled part reads.

    What Arrow has is read where it lies. Pandas is read by columns without PyArrow, or if it is too old for Arrow's PyCapsules.
    """
    column_names(X)
    if _is_pandas(X):
        for name, kind in X.dtypes.items():
            if getattr(kind, "kind", "O") == "c":
                raise ValueError(f"column `{name}` holds {kind}, which cannot be a feature")
        nested = [name for name, kind in X.dtypes.items() if kind == object and _holds_objects(X[name])]
        if nested:
            raise ValueError(f"column `{nested[0]}` holds objects, which cannot be a feature: make it numbers, text or categories")
        if not (_has_pyarrow() and hasattr(X, "__arrow_c_stream__")):
            return [(name, _column(X[name])) for name in X.columns]
        X = X.reset_index(drop=True)
    return X


def _has_pyarrow() -> bool:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def _holds_objects(column: Any) -> bool:
    return any(not (isinstance(value, (str, bool, int, float)) or value is None) for value in column.dropna())


def _column(column: Any) -> npt.NDArray[np.float64] | list[str | None]:
    """Numbers as float64, all else as text, as in Arrow."""
    kind = getattr(column.dtype, "kind", "O")
    name = type(column.dtype).__name__
    if name == "DatetimeTZDtype":
        column, kind = column.dt.tz_convert("UTC").dt.tz_localize(None), "M"
    if name == "CategoricalDtype":
        if getattr(column.cat.categories.dtype, "kind", "O") in "mMc":
            raise ValueError(f"column `{column.name}` has categories that are times: make them text, or install pyarrow")
        return [_text(value) for value in column.tolist()]
    if kind in "mM":
        times = column.to_numpy()
        seconds = times.astype(f"{times.dtype.kind}8[ns]").astype(np.float64) / 1e9
        return np.where(np.isnat(times), np.nan, seconds)
    there = [value for value in column.tolist() if not _is_missing(value)] if kind == "O" else []
    if kind in "biuf" or (there and all(isinstance(value, (bool, int, float)) for value in there)):
        return readable(column.to_numpy(dtype=np.float64, na_value=np.nan), np.float64)
    if any(not isinstance(value, str) for value in there):
        raise ValueError(f"column `{column.name}` holds {name} of several kinds: make it numbers, text or categories")
    return [_text(value) for value in column.tolist()]


def _text(value: Any) -> str | None:
    if _is_missing(value):
        return None
    return str(value).lower() if isinstance(value, (bool, np.bool_)) else str(value)

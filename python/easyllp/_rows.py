"""Rows as the compiled part takes them: a float32 array, a table by Arrow's PyCapsules, or a list of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def is_table(X: Any) -> bool:
    """Whether rows come with named columns that may be of different kinds. Without names that are text they are an array."""
    if isinstance(X, np.ndarray) or not (hasattr(X, "__arrow_c_stream__") or _is_pandas(X)):
        return False
    return any(isinstance(name, str) for name in _names(X))


def _names(X: Any) -> list[Any]:
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def _is_pandas(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "iloc")


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
    """A table that the compiled part reads. What Arrow has is read where it lies; pandas without PyArrow is read by columns."""
    column_names(X)
    if _is_pandas(X):
        for name, kind in X.dtypes.items():
            if getattr(kind, "kind", "O") == "c":
                raise ValueError(f"column `{name}` holds {kind}, which cannot be a feature")
        nested = [name for name, kind in X.dtypes.items() if kind == object and _holds_objects(X[name])]
        if nested:
            raise ValueError(f"column `{nested[0]}` holds objects, which cannot be a feature: make it numbers, text or categories")
        if not _has_pyarrow():
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
    """Numbers as float64, all else as text."""
    kind = column.dtype.kind if hasattr(column.dtype, "kind") else "O"
    is_category = type(column.dtype).__name__ == "CategoricalDtype"
    if not is_category and kind in "biuf":
        return np.ascontiguousarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if not is_category and kind in "mM":
        times = column.to_numpy()
        seconds = times.astype(times.dtype.str[:3] + "[ns]").astype(np.float64) / 1e9
        return np.where(np.isnat(times), np.nan, seconds)
    return [None if value is None or value != value else str(value) for value in column.tolist()]

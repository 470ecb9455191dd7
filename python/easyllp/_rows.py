"""Rows as the compiled part takes them: a float32 array, a table by Arrow's PyCapsules, or a list of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def is_table(X: Any) -> bool:
    """Whether rows come with named columns that may be of different kinds."""
    return not isinstance(X, np.ndarray) and (hasattr(X, "__arrow_c_stream__") or _is_pandas(X))


def _is_pandas(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "iloc")


def column_names(X: Any) -> list[str]:
    """The names of a table's columns."""
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
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
        return np.ascontiguousarray(column.to_numpy().astype("int64").astype(np.float64))
    return [None if value is None or value != value else str(value) for value in column.tolist()]

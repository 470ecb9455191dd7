"""Two small public data sets with row labels, included in the package for examples and tests.

Both are from the UCI Machine Learning Repository under CC BY 4.0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from easyllp import _easyllp


class Part(NamedTuple):
    """Rows and their labels.

    Attributes
    ----------
    X : ndarray or pandas DataFrame
    y : ndarray of int
        Classes, counted from 0.
    """

    X: Any
    y: npt.NDArray[np.int64]


def adult() -> tuple[Part, Part]:
    """48,842 people of the 1994 census (Becker & Kohavi 1996), and whether each earns over $50,000.

    Returns
    -------
    train, test : Part
        32,561 and 16,281 rows; `X` is a pandas DataFrame of six columns of numbers and eight categorical ones if pandas is installed,
        else a float32 array of the numbers, standardised, and of one column for each category.
    """
    return _parts("adult")


def optdigits() -> tuple[Part, Part]:
    """5,620 handwritten digits of 8 × 8 pixels (Alpaydin & Kaynak 1998).

    Returns
    -------
    train, test : Part
        3,823 and 1,797 rows; `X` is a float32 array of 64 columns from 0 to 1.

    Examples
    --------
    >>> train, test = optdigits()
    >>> train.X.shape, test.X.shape
    ((3823, 64), (1797, 64))
    """
    return _parts("optdigits")


def _parts(name: str) -> tuple[Part, Part]:
    train, test, _ = _easyllp.dataset(name)
    both = [columns for columns, _ in (train, test)]
    if name == "optdigits":
        features = [np.ascontiguousarray(columns["pixels"] / np.float32(16)) for columns in both]
    else:
        features = _frames(both)
    (_, train_y), (_, test_y) = train, test
    return Part(features[0], train_y.astype(np.int64)), Part(features[1], test_y.astype(np.int64))


def _frames(parts: list[dict[str, Any]]) -> list[Any]:
    """Tables of pandas if it is there, else arrays in which each category is a column."""
    values = {
        name: sorted({value for part in parts for value in part[name][0]})
        for name, column in parts[0].items()
        if isinstance(column, tuple)
    }
    try:
        import pandas as pd
    except ImportError:
        return [_array(part, values, parts[0]) for part in parts]

    def column(name: str, of_part: Any) -> Any:
        if name not in values:
            return of_part
        dictionary, codes = of_part
        kind = pd.CategoricalDtype(values[name])
        return pd.Categorical(np.asarray(dictionary, dtype=object)[codes], dtype=kind)

    return [pd.DataFrame({name: column(name, of_part) for name, of_part in part.items()}) for part in parts]


def _array(part: dict[str, Any], values: dict[str, list[str]], train: dict[str, Any]) -> npt.NDArray[np.float32]:
    columns: list[npt.NDArray[Any]] = []
    for name, of_part in part.items():
        if name in values:
            dictionary, codes = of_part
            text = np.asarray(dictionary, dtype=object)[codes]
            columns.extend(text == value for value in values[name])
        else:
            columns.append((of_part - train[name].mean()) / train[name].std())
    return np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.float32)

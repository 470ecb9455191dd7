"""Models in files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from easyllp import _easyllp
from easyllp._classifier import LLPClassifier


def save(model: LLPClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, which the program `easyllp` reads, too.

    Parameters
    ----------
    model : LLPClassifier
        The model.
    path : path-like
        Where to write it; see `LLPClassifier.save`.
    """
    model.save(path)


def load(path: str | os.PathLike[str]) -> LLPClassifier:
    """Read a model that `LLPClassifier.save` or the program `easyllp train` wrote.

    A file has the names of classes, and of columns in their alphabetical order. So classes whose names read as numbers or truth values are
    such again, those of a report of one count are 0 and 1 (the class that was counted), and a table is read by the names of its
    columns, wherever they stand.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    LLPClassifier
        Fitted; it has the method, model and loss that it was trained with, and the usual values of all else.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from easyllp import LLPClassifier, load
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]], dtype=np.float32)
    >>> model = LLPClassifier(l2=0.1, holdout=0).fit(X, ["no", "no", "yes", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.safetensors"))
    ...     again = load(os.path.join(folder, "model.safetensors"))
    >>> again.predict([[3.0]]).tolist()
    ['yes']
    """
    model = _easyllp.Model.load(os.fspath(path))
    read = LLPClassifier(model.method, model.name, loss=model.loss)
    read._adopt(model, _classes(model.classes))
    read._is_by_name = model.width is None
    if model.width is None:
        read.feature_names_in_ = np.asarray(model.columns, dtype=object)
        read.n_features_in_ = len(model.columns)
    else:
        read.n_features_in_ = model.width
    return read


def _classes(names: list[str]) -> npt.NDArray[Any]:
    """Classes of these names, as what they were before they were text."""
    if len(names) == 2 and names[0] == "rest":
        return np.arange(2)
    for kind in (int, float):
        try:
            numbers = [kind(name) for name in names]
        except ValueError:
            continue
        if [str(number) for number in numbers] == names:
            return np.asarray(numbers)
    return np.asarray([name == "True" for name in names] if names == ["False", "True"] else names)

"""Models in files."""

from __future__ import annotations

import os

import numpy as np

from easyllp import _easyllp
from easyllp._classes import from_names
from easyllp._classifier import LLPClassifier
from easyllp._settings import keywords


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

    Classes keep their type: text, numbers or truth values. Those of a report with one count are 0 and 1, where 1 is the counted class.
    Columns in a file are in alphabetical order; columns of a table are found by name, in any order.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    LLPClassifier
        A fitted model with its training settings, and defaults for settings that are not stored, such as `n_jobs`.

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
    if model.config is not None:
        read.set_params(**keywords(*model.config))
    read._adopt(model, from_names(model.classes, model.class_kind))
    read._is_by_name = model.width is None
    if model.width is None:
        read.feature_names_in_ = np.asarray(model.columns, dtype=object)
        read.n_features_in_ = len(model.columns)
    else:
        read.n_features_in_ = model.width
    return read

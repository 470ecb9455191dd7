"""Classes: their order, their names in files, and matching columns by name."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from easyllp._bags import Bags

#: What classes can be, as model files call it. A truth value is a whole number to Python, and so comes first.
_KINDS: dict[str, tuple[type, ...]] = {
    "boolean": (bool, np.bool_),
    "integer": (int, np.integer),
    "float": (float, np.floating),
    "text": (str,),
}


def class_kind(classes: Iterable[Any]) -> str:
    """What classes are: text, integer, float or boolean."""
    classes = list(classes)
    kinds = {next((kind for kind, types in _KINDS.items() if isinstance(value, types)), None) for value in classes}
    if len(kinds) != 1 or None in kinds:
        raise ValueError(
            f"the classes {shown(classes)} must all be text, whole numbers, numbers or truth values: rename them"
        )
    return str(kinds.pop())


def names_of(classes: Iterable[Any]) -> tuple[list[str], str]:
    """Classes as stored in a file: names, and the type of the values."""
    values = list(classes)
    kind = class_kind(values)
    plain = {"boolean": bool, "integer": int, "float": float, "text": str}[kind]
    return [str(plain(value)) for value in values], kind


def counted(name: str) -> tuple[list[str], str]:
    """The same for a report of one count: 1 is what was counted under this name, and 0 all else."""
    return [f"not {name}", name], "counted"


def from_names(names: Sequence[str], kind: str) -> npt.NDArray[Any]:
    """The classes that a file has names for."""
    if kind == "counted":
        return np.arange(2)
    if kind == "boolean":
        return np.asarray([name == "True" for name in names])
    if kind in ("integer", "float"):
        return np.asarray([int(name) if kind == "integer" else float(name) for name in names])
    return class_array(names)


def class_array(classes: Iterable[Any]) -> npt.NDArray[Any]:
    """An array of classes. NumPy's text ends where its last zero characters begin: then they are objects."""
    values = list(classes)
    array = np.asarray(values)
    return array if array.tolist() == values else np.asarray(values, dtype=object)


def in_class_order(bags: Bags) -> tuple[Bags, npt.NDArray[Any]]:
    """Bags with their counts in the order of `classes_`, which is sorted, and the classes: by name, or 0, 1, …"""
    if bags.columns is None or bags.counts.ndim == 1:
        return bags, np.arange(bags.n_classes)
    names = _distinct(bags.columns)
    class_kind(names)
    order = sorted(range(len(names)), key=lambda place: names[place])
    ordered = replace(bags, counts=bags.counts[:, order], columns=[names[place] for place in order])
    return ordered, class_array(ordered.columns or [])


def by_class(bags: Bags, classes: Sequence[Any] | npt.NDArray[Any]) -> Bags:
    """Bags with their counts in the order of these classes, by name; counts without names are in that order."""
    wanted = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    if len(wanted) != bags.n_classes:
        raise ValueError(f"the bags count {bags.n_classes} classes, but there are {len(wanted)}: {shown(wanted)}")
    if bags.columns is None:
        return bags
    names = _distinct(bags.columns)
    if bags.counts.ndim == 1:
        if names[0] in wanted and wanted.index(names[0]) == 0 and not _is_zero_one(wanted):
            return replace(bags, counts=bags.sizes - bags.counts)
        if names[0] in wanted or _is_zero_one(wanted):
            return bags
    elif set(names) == set(wanted):
        order = [names.index(name) for name in wanted]
        return replace(bags, counts=bags.counts[:, order], columns=wanted)
    raise ValueError(
        f"the bags count the classes {shown(names)}, but probabilities are of {shown(wanted)}: "
        "rename the columns of counts to the classes that they count"
    )


def check_order(bags: Bags) -> None:
    """Refuse counts with names that probabilities without names cannot be matched with.

    Both orders that probabilities may have, that of `classes_` and that of the columns of counts, must be the same.
    """
    if bags.columns is not None and bags.counts.ndim == 2:
        ordered = in_class_order(bags)[1].tolist()
        if ordered != list(bags.columns):
            raise ValueError(
                f"counts have the columns {shown(list(bags.columns))}, which are not in sorted order, and probabilities have no "
                "names: say which class each column of probabilities is, such as classes=model.classes_"
            )


def check_prior(prior: Any, bags: Bags) -> None:
    """Refuse shares in an order that may be that of the classes or that of the columns of counts."""
    if prior is not None and np.ndim(prior) == 1 and bags.columns is not None and bags.counts.ndim == 2:
        if in_class_order(bags)[1].tolist() != list(bags.columns):
            raise ValueError(
                f"counts have the columns {shown(list(bags.columns))}, which are not in sorted order: sort them, or give the prior as a "
                "dict by class"
            )


def prior_of(prior: Any, classes: npt.NDArray[Any]) -> Any:
    """A prior with its shares in the order of the classes."""
    if not isinstance(prior, Mapping):
        return prior
    wanted = classes.tolist()
    if set(prior) != set(wanted):
        raise ValueError(f"prior has shares of {shown(list(prior))}, but the classes are {shown(wanted)}")
    return [prior[name] for name in wanted]


def shown(names: Sequence[Any], most: int = 12) -> str:
    """Names for a message."""
    some = ", ".join(repr(name) for name in names[:most])
    return some if len(names) <= most else f"{some}, … and {len(names) - most} more"


def _distinct(columns: Sequence[Hashable]) -> list[Any]:
    names = list(columns)
    if len(set(names)) < len(names):
        raise ValueError("duplicate column among the counts: columns name the classes")
    return names


def _is_zero_one(classes: list[Any]) -> bool:
    return not isinstance(classes[0], str) and classes == [0, 1]

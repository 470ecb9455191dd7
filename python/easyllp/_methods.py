"""The methods and their parameters, as the library describes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, overload

from easyllp import _easyllp


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method, for `method_params`.

    Attributes
    ----------
    about : str
        What it does.
    expected : str
        The valid values, such as "a number above 0".
    default : float, str, list or None
        None if it is unset by default.
    """

    about: str
    expected: str
    default: Any


@dataclass(frozen=True)
class Method:
    """A method of learning from bags.

    Attributes
    ----------
    name : str
    summary : str
        What it does.
    assumes : str
        The assumption on how bags were made.
    supports : str
        The supported models and losses.
    classes : str
        How it supports more than two classes.
    cost : str
        The time per row and epoch in addition to the model, with k rows per bag and C classes.
    reference : str
        Where it comes from.
    parameters : dict of str to Parameter
    """

    name: str
    summary: str
    assumes: str
    supports: str
    classes: str
    cost: str
    reference: str
    parameters: dict[str, Parameter]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.summary}"]
        facts = ("assumes", "supports", "classes", "cost", "reference")
        lines += [f"  {fact:9}  {getattr(self, fact)}" for fact in facts]
        for name, parameter in self.parameters.items():
            default = "unset" if parameter.default is None else parameter.default
            lines += [f"  parameter {name} (default: {default})", f"    {parameter.about} Expected: {parameter.expected}."]
        return "\n".join(lines)


@overload
def methods(name: str) -> Method: ...
@overload
def methods(name: None = None) -> list[Method]: ...
def methods(name: str | None = None) -> list[Method] | Method:
    """Describe the methods of `LLPClassifier`, or one of them.

    Parameters
    ----------
    name : str, optional
        The name of a method.

    Returns
    -------
    list of Method, or Method

    Examples
    --------
    >>> import easyllp
    >>> [method.name for method in easyllp.methods()][:3]
    ['auto', 'easyllp', 'easyllp-sgd']
    >>> easyllp.methods("label-generation").parameters["epsilon"].expected
    'a number of at least 0'
    """
    found = {described["name"]: _method(described) for described in json.loads(_easyllp.methods())}
    if name is None:
        return list(found.values())
    if name not in found:
        raise ValueError(f"unknown method `{name}`: choose one of {', '.join(found)}")
    return found[name]


def _method(described: dict[str, Any]) -> Method:
    parameters = {
        parameter["name"]: Parameter(parameter["about"], parameter["expected"], _value(parameter["default"]))
        for parameter in described["parameters"]
    }
    return Method(**{**described, "parameters": parameters})


def _value(default: str | None) -> Any:
    """A default as `method_params` takes it: a number, or a word."""
    if default is None:
        return None
    try:
        return json.loads(default)
    except ValueError:
        return default

"""Settings in the form of the compiled part."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from easyllp import _easyllp

#: Row indices and counts have 32 bits.
MOST = 2**32 - 1

#: The maximum number of threads, if there are not more cores.
MOST_THREADS = 64


def is_whole(number: Any) -> bool:
    """Whether it is a whole number; unlike in Python, truth values are not."""
    return isinstance(number, (int, np.integer)) and not isinstance(number, (bool, np.bool_))


def whole_number(name: str, number: Any, least: int, most: int = MOST) -> int:
    """A whole number, if it is one in this range."""
    if not is_whole(number) or number < least:
        raise ValueError(f"{name} is {number!r}: it must be a whole number of at least {least}")
    if number > most:
        raise ValueError(f"{name} is {number!r}: it must be at most {most}")
    return int(number)


def real_number(name: str, value: Any, least: float, expected: str, *, below: float = math.inf, is_open: bool = False) -> float:
    """A number, if it is one from `least`, or with `is_open` from above it, to below another."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}: it must be {expected}")
    if not least <= value < below or (is_open and value == least):
        raise ValueError(f"{name} is {value}: it must be {expected}")
    return float(value)


def word(name: str, value: Any, *choices: str) -> str:
    """Text, if it is one of the choices, where there are some."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}: it must be text")
    if choices and value not in choices:
        raise ValueError(f"unknown {name} `{value}`: choose one of {', '.join(choices)}")
    return value


def method_settings(method: Any, parameters: Any) -> dict[str, Any]:
    """A method's name and its parameters, which may be part of the name."""
    name, in_words = _easyllp.method_in_words(word("method", method))
    if parameters is not None and not isinstance(parameters, Mapping):
        raise TypeError(f"method_params is {parameters!r}: it must be a dict of parameters by name")
    given = {key: value for key, value in (parameters or {}).items() if value is not None}
    settings = json.loads(in_words)
    if "name" in settings | given:
        raise ValueError(f"method {name} has no parameter `name`")
    twice = settings.keys() & given.keys()
    if twice:
        raise ValueError(f"parameter {min(twice)!r} is set by method={method!r} and by method_params: set it once")
    return {"name": name, **settings, **given}


def fit_config(estimator: Any, method: dict[str, Any], seed: int) -> str:
    """The settings of an estimator whose method has these, as JSON that the compiled part takes."""

    def optional(name: str, check: Any, *rest: Any, **options: Any) -> Any:
        value = getattr(estimator, name)
        return None if value is None else check(name, value, *rest, **options)

    is_auto = isinstance(estimator.l2, str) and estimator.l2 == "auto"
    settings = {
        "method": _plain(method),
        "model": word("model", estimator.model),
        "loss": optional("loss", word, "logistic", "softmax", "squared", "brier"),
        "optimizer": {
            "l2": "auto" if is_auto else optional("l2", real_number, 0.0, '"auto" or a number of at least 0'),
            "epochs": optional("epochs", whole_number, 1),
            "lr": optional("lr", real_number, 0.0, "a number above 0", is_open=True),
            "batch_size": optional("batch_size", whole_number, 1),
        },
        "validation": {
            "share": real_number("holdout", estimator.holdout, 0.0, "a number from 0 to below 1", below=1.0),
            "metric": word("stop_by", estimator.stop_by, "brier", "error"),
            "patience": whole_number("patience", estimator.patience, 1),
            "smoothing": whole_number("smoothing", estimator.smoothing, 1),
        },
        "seed": seed,
    }
    return json.dumps(settings, default=repr)


def keywords(config: str, method: str) -> dict[str, Any]:
    """The same settings as keywords of an estimator, with the method in words."""
    settings = json.loads(config)
    validation = settings["validation"]
    return {
        "method": method,
        "holdout": validation["share"],
        "stop_by": validation["metric"],
        "patience": validation["patience"],
        "smoothing": validation["smoothing"],
        "random_state": settings["seed"],
        **settings["optimizer"],
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it: arrays are lists, and a number that is not finite is text, which no parameter takes for a number."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def checked_seed(seed: Any, name: str = "seed") -> int:
    """Check a seed."""
    if not is_whole(seed) or not 0 <= seed < 2**64:
        raise ValueError(f"{name} is {seed!r}: it must be a whole number from 0 to below 2^64")
    return int(seed)


def seed_of(random_state: Any) -> int:
    """The seed: a number, or one drawn from a RandomState."""
    if random_state is None or random_state is np.random or isinstance(random_state, np.random.RandomState):
        from sklearn.utils import check_random_state

        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    return checked_seed(random_state, "random_state")


def image_shape(image: Any) -> str | None:
    """The shape of images in one word."""
    if image is None or isinstance(image, str):
        return image
    if not (isinstance(image, (tuple, list)) and len(image) == 3):
        raise TypeError(f'image is {image!r}: it must be channels, height and width, such as "1x28x28" or (1, 28, 28)')
    return "x".join(str(whole_number("a side of image", side, 1)) for side in image)


def n_threads(n_jobs: int | None) -> int | None:
    """How many threads `n_jobs` asks for; None is one per core."""
    if n_jobs is None:
        return None
    if not is_whole(n_jobs) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}: it must be a whole number of at least 1, or -1 for one per core, -2 for one less, …")
    if n_jobs == -1:
        return None
    n_cores = os.cpu_count() or 1
    return min(int(n_jobs), max(MOST_THREADS, n_cores)) if n_jobs > 0 else max(1, n_cores + 1 + int(n_jobs))

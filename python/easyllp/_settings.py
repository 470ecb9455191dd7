"""Settings as the compiled part takes them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

#: Parameters that are passed on as they are.
SETTINGS = (
    "method",
    "model",
    "loss",
    "l2",
    "epochs",
    "lr",
    "batch_size",
    "holdout",
    "stop_by",
    "patience",
    "smoothing",
    "bag_weights",
    "targets",
    "batches",
    "rebag",
    "domain",
    "steps",
    "iterate",
    "epsilon",
    "distance",
    "ridge",
    "smoothness",
    "rounds",
)


#: Those of them that are counts, of at least 1.
COUNTS = ("epochs", "batch_size", "patience", "smoothing", "rebag", "rounds")

#: Rows are counted in 32 bits, and so is all that they are counted by.
MOST = 2**32 - 1

#: More threads than this, or than there are cores, only wait for each other.
MOST_THREADS = 64


def is_whole(number: Any) -> bool:
    """Whether it is a whole number, which truth values are not, though Python takes them for such."""
    return isinstance(number, (int, np.integer)) and not isinstance(number, (bool, np.bool_))


def whole_number(name: str, number: Any, least: int, most: int = MOST) -> int:
    """A whole number, if it is one in this range."""
    if not is_whole(number) or number < least:
        raise ValueError(f"{name} is {number!r}: it must be a whole number of at least {least}")
    if number > most:
        raise ValueError(f"{name} is {number!r}: it must be at most {most}")
    return int(number)


def checked_seed(seed: Any, name: str = "seed") -> int:
    """A seed, if it is one."""
    if not is_whole(seed) or not 0 <= seed < 2**64:
        raise ValueError(f"{name} is {seed!r}: it must be a whole number from 0 to below 2^64")
    return int(seed)


def seed_of(random_state: Any) -> int:
    """The seed that a number is, or that is drawn from what scikit-learn takes otherwise."""
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
    """How many threads `n_jobs` asks for; None is one a core."""
    if n_jobs is None:
        return None
    if not is_whole(n_jobs) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}: it must be a whole number of at least 1, or -1 for one a core, -2 for one less, …")
    if n_jobs == -1:
        return None
    n_cores = os.cpu_count() or 1
    return min(int(n_jobs), max(MOST_THREADS, n_cores)) if n_jobs > 0 else max(1, n_cores + 1 + int(n_jobs))

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


def checked_seed(seed: Any, name: str = "seed") -> int:
    """A seed, if it is one."""
    if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise ValueError(f"{name} is {seed!r}: it must be a whole number from 0 to below 2^64")
    return int(seed)


def seed_of(random_state: Any) -> int:
    """The seed that a number is, or that is drawn from what scikit-learn takes otherwise."""
    if isinstance(random_state, (int, np.integer)):
        return checked_seed(random_state, "random_state")
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def image_shape(image: Any) -> str | None:
    """The shape of images in one word."""
    if image is None or isinstance(image, str):
        return image
    if not (isinstance(image, (tuple, list)) and len(image) == 3):
        raise TypeError(f'image is {image!r}: it must be channels, height and width, such as "1x28x28" or (1, 28, 28)')
    return "x".join(str(int(side)) for side in image)


def checked_count(name: str, count: Any) -> int:
    """A count, if it is one."""
    if not isinstance(count, (int, np.integer)) or not 0 <= count < 2**32:
        raise ValueError(f"{name} is {count!r}: it must be a whole number of at least 0")
    return int(count)


def n_threads(n_jobs: int | None) -> int | None:
    """How many threads `n_jobs` asks for; None is one a core."""
    if n_jobs is None or n_jobs == -1:
        return None
    if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}: it must be a whole number of at least 1, or -1 for one a core, -2 for one less, …")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))

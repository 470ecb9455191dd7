"""What tests share: small tasks whose answer is known."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import pytest


@pytest.fixture
def task() -> tuple[np.ndarray, np.ndarray]:
    """Four hundred rows of three features, and labels that a line through the first two separates nearly always."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = (X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=400) > 0).astype(int)
    return X, y


@pytest.fixture(scope="session")
def program() -> str:
    """The program `easyllp`, where it has been built."""
    root = pathlib.Path(__file__).resolve().parents[2]
    candidates = [os.environ.get("EASYLLP"), root / "target/debug/easyllp", root / "target/release/easyllp"]
    for candidate in candidates:
        if candidate is not None and pathlib.Path(candidate).exists():
            return str(candidate)
    pytest.skip("the program has not been built: cargo build")

"""Do bags look random? Warnings and withheld metrics if they do not."""

from __future__ import annotations

import json
import warnings
from typing import Any

from easyllp import _easyllp
from easyllp._bags import Bags
from easyllp._targets import counts_of


class NotRandomWarning(UserWarning):
    """The bags do not look random, so metrics estimated from them are biased."""


class WithheldError(KeyError, ValueError):
    """A metric is withheld: the bags that it would be estimated from do not look random.

    It is a `KeyError`, so that an `Evaluation` without metrics is an empty mapping, and a `ValueError` elsewhere.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""  # KeyError would put it in quotes


class TrainingBagsWarning(UserWarning):
    """A model is evaluated on its training bags: the metrics are too good."""


def randomness(given: Bags, noise: tuple[str, list[float]] | None = None) -> dict[str, Any]:
    """Test bags by the one rule: verdict, ratio, p_value, is_rejected, and the result in words."""
    found: dict[str, Any] = json.loads(_easyllp.diagnose(given.of_row, counts_of(given), noise, None))["randomness"]
    return found


def refuse_unless_random(given: Bags, *, force: bool, stacklevel: int) -> None:
    """Refuse to estimate a single number from bags that do not look random; with `force`, warn."""
    found = randomness(given)
    if found["is_rejected"] and not force:
        raise WithheldError(f"{found['words']} and are withheld; easyllp.evaluate and easyllp.bag_metric show them with force=True")
    if found["verdict"] != "plausible":
        warnings.warn(found["words"], NotRandomWarning, stacklevel=stacklevel + 1)

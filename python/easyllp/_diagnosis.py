"""Test whether bags are random, and how much information they hold."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from easyllp import _easyllp
from easyllp._bags import eager, from_proportions
from easyllp._evaluation import Estimate, _estimate, _sentence, declared_noise
from easyllp._reports import from_report
from easyllp._rows import is_sparse, is_table, readable, sparse, table
from easyllp._targets import counts_of

@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`.

    Attributes
    ----------
    verdict : {"plausible", "not_random", "balanced"}
        Whether counts vary from bag to bag as they do by chance, more, or less. If more, metrics estimated from the bags
        are biased, and withheld by `evaluate`.
    ratio : float
        The variance of counts between bags, divided by its expectation for random bags.
    p_value : float
        The probability that random bags vary as much, or as little if the ratio is below 1.
    prior : list of Estimate
        The share of each class.
    equivalent_rows : float
        The approximate number of labelled rows with the same information.
    uneven : list of dict
        Columns that differ between bags by more than chance, the largest ratio first: column (its name, or
        its index in an array), ratio and p_value, the latter corrected for the number of columns.
    """

    verdict: str
    ratio: float
    p_value: float
    prior: list[Estimate]
    equivalent_rows: float
    uneven: list[dict[str, Any]]
    _words: str = field(default="", repr=False, compare=False)

    def __str__(self) -> str:
        text = _sentence(self._words)
        if self.verdict == "not_random":
            text += " Use random bags if you can."
        if self.uneven:
            names = list(dict.fromkeys(str(found["column"]) for found in self.uneven))
            more = "" if len(names) <= 5 else f" and {len(names) - 5} more"
            text += f"\nColumns that differ from bag to bag: {', '.join(names[:5])}{more}."
        return f"{text}\nThe bags hold about as much information as {self.equivalent_rows:.0f} labelled rows."


def diagnose(
    y: Any = None,
    bags: Any = None,
    *,
    X: Any = None,
    counts: Any = None,
    noise: tuple[str, Any] | None = None,
) -> Diagnosis:
    """Check bags before training.

    Most methods require random bags: rows grouped regardless of their labels. Counts are compared with random permutations of the same
    labels, and columns of `X` are tested for differences between bags. Bags are not random if counts vary more than 1.1 times as much
    as by chance and p < 0.01; `evaluate` and `LLPClassifier.fit` use the same rule.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or (n_rows, n_classes)
        Each row's bag proportion.
    bags : array-like of shape (n_rows,)
        The bag id of each row.
    X : array-like or table, optional
        Features of the rows.
    counts, noise
        As in `evaluate`.

    Examples
    --------
    >>> import numpy as np
    >>> from easyllp import diagnose, make_bags
    >>> labels = np.arange(3000) % 3 == 0
    >>> bags, proportions = make_bags(labels, size=20)
    >>> diagnose(proportions, bags).verdict
    'plausible'
    """
    if bags is None:
        raise ValueError("bags, the bag id of each row, are required")
    if (y is None) == (counts is None):
        raise ValueError("either y, each row's bag proportion, or counts by bag are required")
    given = from_proportions(y, bags) if counts is None else from_report(bags, counts)
    X = eager(X)
    if X is None:
        features = None
    elif is_table(X):
        features = table(X)
    elif is_sparse(X):
        features = sparse(X)
    else:
        features = readable(X, np.float32)
    found = json.loads(
        _easyllp.diagnose(
            given.of_row, counts_of(given), declared_noise(noise, given.names), features
        )
    )
    tested = found["randomness"]
    return Diagnosis(
        verdict=tested["verdict"],
        ratio=tested["ratio"],
        p_value=tested["p_value"],
        prior=[_estimate(estimate) for estimate in found["prior"]],
        equivalent_rows=found["equivalent_rows"],
        uneven=found["uneven"],
        _words=tested["words"],
    )

"""Learn a model of individual rows when only aggregate labels are known.

Rows come in bags, and each bag reports how many of its rows are positive, or how many are in each class. From these counts
`LLPClassifier` trains a model of single rows, and `evaluate` estimates its metrics without row labels.

>>> import easyllp
>>> train, test = easyllp.datasets.adult()
>>> bags, proportions = easyllp.make_bags(train.y, size=8)  # of eight people each, only a count is known
>>> model = easyllp.LLPClassifier().fit(train.X, proportions, bags=bags)
>>> round(model.score(test.X, test.y), 2)
0.85
"""

from __future__ import annotations

from easyllp import datasets
from easyllp._classifier import LLPClassifier, UnfamiliarValuesWarning
from easyllp._diagnosis import Diagnosis, diagnose
from easyllp._evaluation import Estimate, Evaluation, bag_metric, bag_scorer, evaluate
from easyllp._easyllp import __version__
from easyllp._files import load, save
from easyllp._methods import Method, Parameter, methods
from easyllp._randomness import NotRandomWarning, TrainingBagsWarning, WithheldError
from easyllp._targets import make_bags, soft_targets

__all__ = [
    "Diagnosis",
    "Estimate",
    "Evaluation",
    "LLPClassifier",
    "Method",
    "NotRandomWarning",
    "Parameter",
    "TrainingBagsWarning",
    "UnfamiliarValuesWarning",
    "WithheldError",
    "__version__",
    "bag_metric",
    "bag_scorer",
    "datasets",
    "diagnose",
    "evaluate",
    "load",
    "make_bags",
    "methods",
    "save",
    "soft_targets",
]

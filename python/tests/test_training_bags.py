"""A model that is evaluated on its own training bags."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from easyllp import LLPClassifier, TrainingBagsWarning, load, make_bags


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2400, 4)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=2400) > 0).astype(int)
    bags, proportions = make_bags(y, size=8)
    known = bags < 200
    model = LLPClassifier(l2=0.1, holdout=0).fit(X[known], proportions[known], bags=bags[known])
    return model, X, proportions, bags, known


def evaluated(trained, which, method="evaluate"):
    model, X, proportions, bags, _ = trained
    return getattr(model, method)(X[which], proportions[which], bags=bags[which])


@pytest.mark.parametrize("method", ["evaluate", "score"])
def test_training_bags_are_noticed(trained, method, tmp_path):
    model, _, _, bags, known = trained
    with pytest.warns(TrainingBagsWarning, match="was trained on these bags: metrics from training bags are too good"):
        evaluated(trained, known, method)
    with pytest.warns(TrainingBagsWarning, match="trained on these bags"):
        evaluated(trained, bags < 100, method)
    with pytest.warns(TrainingBagsWarning, match=r"some of these bags \(about 67 %\)"):
        evaluated(trained, bags >= 0, method)
    order = np.random.default_rng(1).permutation(np.flatnonzero(known))
    with pytest.warns(TrainingBagsWarning, match="trained on these bags"):
        evaluated(trained, order, method)
    model.save(tmp_path / "model")
    with pytest.warns(TrainingBagsWarning, match="trained on these bags"):
        evaluated((load(tmp_path / "model"), *trained[1:]), known, method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluated(trained, ~known, method)


def test_counts_are_reports_too(trained):
    model, X, proportions, bags, known = trained
    counts = {bag: round(8 * proportions[bags == bag][0]) for bag in range(300)}
    with pytest.warns(TrainingBagsWarning):
        found = model.evaluate(X[known], bags=bags[known], counts={bag: counts[bag] for bag in range(200)}, level=0.9)
    assert found.level == 0.9

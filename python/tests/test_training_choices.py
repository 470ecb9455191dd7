"""What settings and the form of rows decide without saying it: the optimizer, and whether columns are standardised."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from easyllp import LLPClassifier, datasets, make_bags


@pytest.fixture
def units(task):
    """The task with columns in units of their own, and bags."""
    X, y = task
    bags, proportions = make_bags(y, size=8)
    return X * np.array([1, 1000, 0.01], dtype=np.float32), proportions, bags


def test_a_scaled_array_gives_the_model_of_the_table(units):
    pd = pytest.importorskip("pandas")
    X, y, bags = units
    model = LLPClassifier(l2=0.1, holdout=0)
    table = pd.DataFrame(X.astype(np.float64), columns=["a", "b", "c"])
    of_table = model.fit(table, y, bags=bags).predict_proba(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = StandardScaler().fit_transform(X.astype(np.float64))
        of_scaled = model.fit(scaled, y, bags=bags).predict_proba(scaled)
    # Features are float32: a probability differs by a few units in the last place of one, 6e-8, times the few terms of a score.
    np.testing.assert_allclose(of_scaled, of_table, atol=2e-6)
    with pytest.warns(UserWarning, match="column 1 has a range of .*, column 2 of .*StandardScaler"):
        as_it_is = model.fit(X, y, bags=bags).predict_proba(X)
    assert np.abs(as_it_is - of_table).max() > 0.01


@pytest.mark.parametrize(("units", "differ"), [([1, 500], True), ([500, 1], True), ([1, 30], False), ([1, 1, 500, 500], True)])
def test_an_even_number_of_columns_is_compared_too(task, units, differ):
    X, y = task
    rows = X[:, np.arange(len(units)) % 3] * np.array(units, dtype=np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LLPClassifier(l2=0.1, holdout=0).fit(rows, y)
    assert ["their ranges differ" in str(one.message) for one in caught] == [True] * differ


def test_there_is_no_warning_where_columns_share_a_unit(task):
    X, y = task
    train, _ = datasets.optdigits()
    constant = np.column_stack([X, np.zeros(len(X)), np.full(len(X), 1e6)])
    indicators = np.column_stack([X, X > 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows, labels in [(X, y), (constant, y), (indicators, y), (train.X, train.y % 2)]:
            LLPClassifier(l2=0.1, holdout=0).fit(rows, labels)


@pytest.mark.parametrize(
    ("settings", "optimizer", "reason"),
    [
        ({}, "L-BFGS", "L-BFGS (a linear model is fitted to convergence)"),
        ({"lr": 0.01}, "Adam", "Adam (because `lr` is set); without `epochs`, `lr` and `batch_size` a linear model is fitted"),
        ({"batch_size": 64}, "Adam", "Adam (because `batch_size` is set); without"),
        ({"model": "mlp:4", "epochs": 2}, "Adam", "Adam (because the model is not linear)"),
        ({"method": "easyllp-sgd"}, "SGD", "SGD (because method easyllp-sgd"),
    ],
)
def test_the_optimizer_is_told(task, capfd, settings, optimizer, reason):
    X, y = task
    l2 = {"l2": 0.1} if settings.get("method") is None else {}
    model = LLPClassifier(**settings, **l2, holdout=0, verbose=1).fit(X, y)
    assert model.optimizer_ == optimizer
    assert f"optimizer: {reason}" in capfd.readouterr().err


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_column_that_names_the_bags_is_warned_of(library):
    pd, module = pytest.importorskip("pandas"), pytest.importorskip(library)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 400), "day": np.repeat([f"d{day}" for day in range(20)], 20)})
    counts = {day: int(rng.integers(5, 15)) for day in frame["day"].unique()}
    rows = {"pandas": lambda: frame, "polars": lambda: module.DataFrame(frame.to_dict("list")), "pyarrow": lambda: module.table(frame.to_dict("list"))}[library]()
    with pytest.warns(UserWarning, match="column 'day' names the bags: each of its values is one bag"):
        LLPClassifier(l2=0.1, holdout=0).fit_bags(rows, counts, frame["day"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LLPClassifier(l2=0.1, holdout=0).fit_bags(frame[["age"]], counts, frame["day"])
        # Bags of one row each: any column of distinct values is like that.
        LLPClassifier(l2=0.1, holdout=0).fit(frame[["age"]], rng.integers(0, 2, 400))


def test_a_metric_that_still_improves_is_noted(task, capfd):
    X, y = task
    bags, proportions = make_bags(y, size=4)
    model = LLPClassifier("count-likelihood", epochs=2, verbose=1).fit(X, proportions, bags=bags)
    note = "the last of 2 epochs was the best one: with more epochs or a higher learning rate the model may be better"
    assert model.notes_ == [note] and note in capfd.readouterr().err
    assert LLPClassifier("count-likelihood", lr=1.0, epochs=30).fit(X, proportions, bags=bags).notes_ == []

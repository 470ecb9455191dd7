"""Rows with values that a model was not trained on."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from easyllp import LLPClassifier, UnfamiliarValuesWarning, load

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, size=400).astype(float),
            "city": rng.choice(["Bern", "Oslo", "Wien"], size=400),
            "hours": rng.normal(40, 8, size=400).round(1),
        }
    )
    X.loc[::40, "hours"] = np.nan
    y = (X["age"] + 20 * (X["city"] == "Oslo") > 55).astype(int)
    return LLPClassifier(l2=0.01, holdout=0).fit(X, y), X


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_what_was_not_seen_is_told_once_a_call(trained, method, tmp_path):
    model, X = trained
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(model, method)(X)
        getattr(model, method)(X.iloc[::-3])
    new = X.copy()
    new["city"] = "Atlantis"
    new["age"] = new["age"] * 1e9
    model.save(tmp_path / "model")
    for some in (model, load(tmp_path / "model")):
        with pytest.warns(UnfamiliarValuesWarning) as said:
            getattr(some, method)(new)
        assert len(said) == 1
        text = str(said[0].message)
        assert "column `city`: 400 of 400 rows have values not seen in training, such as `Atlantis`" in text
        assert "column `age`: 400 of 400 rows are outside the training range of 18 to 79" in text and "hours" not in text
    new = X.copy()
    new.loc[5, "age"] = np.nan
    with pytest.warns(UnfamiliarValuesWarning, match="`age`: 1 of 400 rows have no value; in training all had one"):
        getattr(model, method)(new)


def test_numbers_are_not_taken_for_text(trained):
    model, X = trained
    with pytest.raises(ValueError, match="column `city` holds whole numbers, but the model was trained on text such as `Bern`"):
        model.predict(X.assign(city=np.arange(400)))
    with pytest.raises(ValueError, match="age"):
        model.predict(X.assign(age="old"))
    # A column without one value is not one of numbers.
    with pytest.warns(UnfamiliarValuesWarning, match="`city`: 400 of 400 rows have no value"):
        model.predict(X.assign(city=np.full(400, np.nan)))

"""Methods and their parameters: by name, in words and in a dict."""

from __future__ import annotations

import importlib.metadata
import inspect

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

import easyllp
from easyllp import LLPClassifier, bag_scorer, make_bags

SETTINGS = {"epochs": 3, "lr": 0.05, "holdout": 0}


def test_methods_are_described():
    found = easyllp.methods()
    assert found[0].name == "auto" and len({method.name for method in found}) == len(found)
    for method in found:
        assert easyllp.methods(method.name) == method
        assert method.summary and method.assumes and method.supports and method.classes and method.cost and method.reference
        assert str(method).startswith(f"{method.name}: {method.summary}")
        for name, parameter in method.parameters.items():
            assert parameter.about and parameter.expected and f"parameter {name} " in str(method)
    with pytest.raises(ValueError, match="unknown method `forest`: choose one of auto, "):
        easyllp.methods("forest")


def test_defaults_are_what_method_params_takes(task):
    X, y = task
    for method in easyllp.methods():
        by_convergence = method.name == "easyllp" or "mean-map" in method.name
        settings = {} if method.name == "easyllp-sgd" else {"l2": 0.1} if by_convergence else {"epochs": 1}
        defaults = {name: parameter.default for name, parameter in method.parameters.items()}
        models = [LLPClassifier(method.name, holdout=0, **settings, method_params=given).fit(X, y) for given in (None, {}, defaults)]
        assert len({model._model.to_bytes() for model in models}) == 1, method.name


def test_the_docstring_has_all_methods_and_parameters():
    text = " ".join(inspect.getdoc(LLPClassifier).split())
    for method in easyllp.methods():
        assert f"- {method.name}: {method.summary}" in text
        for name, parameter in method.parameters.items():
            default = "" if parameter.default is None else f", by default {parameter.default}"
            assert f"- {name} ({parameter.expected}{default}): {parameter.about}" in text, f"{method.name} {name}"


def test_words_and_a_dict_are_the_same(task):
    X, y = task
    bags, proportions = make_bags(y, size=4)
    in_words, in_dict, in_both = (
        LLPClassifier(method, **SETTINGS, method_params=parameters).fit(X, proportions, bags=bags)._model.to_bytes()
        for method, parameters in [
            ("easyllp:targets=fresh-surrogate,prior=0.5", None),
            ("easyllp", {"targets": "fresh-surrogate", "prior": np.float32(0.5)}),
            ("easyllp:targets=fresh-surrogate", {"prior": np.array([0.5, 0.5]), "rebag": None}),
        ]
    )
    assert in_words == in_dict == in_both
    assert in_words != LLPClassifier(**SETTINGS).fit(X, proportions, bags=bags)._model.to_bytes()


def test_a_prior_goes_by_class_with_labels(task):
    X, y = task
    names = np.where(y == 1, "yes", "no")
    settings = {**SETTINGS, "l2": 0.1, "epochs": None, "lr": None}
    by_class, by_share = (
        LLPClassifier(**settings, method_params={"prior": prior}).fit(X, names).coef_ for prior in ({"yes": 0.4, "no": 0.6}, 0.4)
    )
    np.testing.assert_array_equal(by_class, by_share)


def test_scikit_learn_sets_clones_and_searches_parameters(task):
    X, y = task
    bags, proportions = make_bags(y, size=4)
    model = LLPClassifier("label-generation", epochs=2, holdout=0)
    candidates = [{"epsilon": 0.1}, {"epsilon": 1.0}, None]
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(model, {"method_params": candidates}, scoring=bag_scorer("brier"), cv=GroupKFold(2), error_score="raise")
        search.fit(X, proportions, bags=bags, groups=bags)
    assert search.best_params_["method_params"] in candidates
    parameters = {"epsilon": 0.1}
    again = clone(model.set_params(method_params=parameters))
    assert again.method_params == parameters and again.fit(X, proportions, bags=bags).method_params == {"epsilon": 0.1}


def test_supervised_takes_row_labels(task):
    X, y = task
    model = LLPClassifier("supervised", l2=0.01).fit(X, y)
    np.testing.assert_allclose(model.coef_, LLPClassifier(l2=0.01).fit(X, y).coef_, rtol=1e-4)
    assert LLPClassifier("event-level", l2=0.01).fit(X, y)._model.method == "supervised"
    bags, proportions = make_bags(y, size=4)
    with pytest.raises(ValueError, match="method supervised requires row labels, found counts of bags"):
        LLPClassifier("supervised").fit(X, proportions, bags=bags)


def test_the_version_is_that_of_the_distribution():
    assert easyllp.__version__ == importlib.metadata.version("easyllp")

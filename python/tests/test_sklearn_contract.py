"""scikit-learn's own checks, in full: no failure is expected."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from easyllp import LLPClassifier


@parametrize_with_checks(
    [
        LLPClassifier(),
        LLPClassifier(l2=0.001, holdout=0),
        LLPClassifier(loss="squared"),
        LLPClassifier("count-likelihood", epochs=60, lr=0.05, batch_size=16, holdout=0),
        LLPClassifier(model="mlp:16", epochs=60, lr=0.02, batch_size=16, holdout=0),
    ]
)
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)

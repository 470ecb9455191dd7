"""Model selection without labels: the penalty of a linear model on Adult, chosen by bags of 64 with GridSearchCV.

    python model_selection.py [--out figure.svg]

Folds are made of whole bags (`GroupKFold`), and the scorer sees nothing but bags. Needs nothing but the package.
"""

import argparse

import numpy as np
import sklearn
from _figure import draw
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold

from easyllp import LLPClassifier, bag_scorer, datasets, make_bags

options = argparse.ArgumentParser()
options.add_argument("--out", help="draw the figure into this file, .svg or .png")
options = options.parse_args()

train, test = datasets.adult()
bags, proportions = make_bags(train.y, size=64)
penalties = np.logspace(-4, 1, 11)

sklearn.set_config(enable_metadata_routing=True)
search = GridSearchCV(LLPClassifier(holdout=0), {"l2": penalties}, scoring=bag_scorer("brier"), cv=GroupKFold(5))
search.fit(train.X, proportions, bags=bags, groups=bags)

# Labels of other rows, which the search has not seen: how much was lost by choosing without them?
models = [LLPClassifier(l2=l2, holdout=0).fit(train.X, proportions, bags=bags) for l2 in penalties]
predicted = [model.predict_proba(test.X) for model in models]
losses = [log_loss(test.y, p) for p in predicted]
chosen, best = search.best_index_, int(np.argmin(losses))
print(f"chosen by bags: l2 = {penalties[chosen]:.2g}, with a log loss of {losses[chosen]:.4f} on test labels")
print(f"the best of all: l2 = {penalties[best]:.2g}, with {losses[best]:.4f}: chosen is {losses[chosen] / losses[best] - 1:.2%} above")


def plot(axes):
    from_bags = -search.cv_results_["mean_test_score"]
    error = search.cv_results_["std_test_score"] / np.sqrt(5)
    axes.errorbar(penalties, from_bags, yerr=error, fmt="o-", label="from bags, in five folds")
    axes.plot(penalties, [brier_score_loss(test.y, p[:, 1]) for p in predicted], "s-", label="by labels of test rows")
    axes.axvline(penalties[chosen], color="0.6", linestyle=":", label="chosen")
    axes.set_xscale("log")


draw(options.out, plot, xlabel="l2", ylabel="Brier score", title="A penalty for Adult, from bags of 64")

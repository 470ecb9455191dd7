"""From counts of bags to a model of rows, and how good it is: census data (Adult) in bags of 32.

    python quickstart.py [--out figure.svg]

Who earns over 50K is known of no single person here, only how many of each 32 do. Needs nothing but the package.
"""

import argparse

import numpy as np
from _figure import draw

from easyllp import LLPClassifier, datasets, evaluate, make_bags

options = argparse.ArgumentParser()
options.add_argument("--out", help="draw the figure into this file, .svg or .png")
options = options.parse_args()

train, _ = datasets.adult()
bags, proportions = make_bags(train.y, size=32)

# A fifth of the bags is kept back to judge by.
kept = np.isin(bags, np.unique(bags)[::5])
rows, others = train.X[~kept], train.X[kept]

model = LLPClassifier().fit(rows, proportions[~kept], bags=bags[~kept])
from_bags = evaluate(model.predict_proba(others), proportions[kept], bags[kept], curves=True)
print(from_bags)

# Nobody has the labels of these rows in earnest: they show whether the estimates hold.
truth = evaluate(model.predict_proba(others), train.y[kept])
print(f"\nby labels: accuracy {truth['accuracy'].value:.4f}, AUC {truth['auc'].value:.4f}")


def plot(axes):
    names = list(from_bags)
    for place, name in enumerate(names):
        estimate = from_bags[name]
        label = "from bags, with 95 % intervals" if place == 0 else None
        axes.plot([estimate.low, estimate.high], [place, place], color="C0", label=label)
        axes.plot(estimate.value, place, "o", color="C0")
        axes.plot(truth[name].value, place, "|", color="C1", markersize=14, label=None if place else "by labels")
    axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    axes.invert_yaxis()


draw(options.out, plot, title="A model of Adult from bags of 32")

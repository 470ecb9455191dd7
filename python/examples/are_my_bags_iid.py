"""Are my bags random? What most methods assume, how to look at it, and what happens where it fails.

    python are_my_bags_iid.py [--out figure.svg]

Bags of Adult's rows are grouped at random, and by education, which is correlated with the label. Needs pandas.
"""

import argparse
import warnings

import numpy as np
from _figure import draw

from easyllp import LLPClassifier, NotRandomWarning, datasets, diagnose, evaluate, make_bags

options = argparse.ArgumentParser()
options.add_argument("--out", help="draw the figure into this file, .svg or .png")
options = options.parse_args()

train, test = datasets.adult()
features = train.X.drop(columns=["education", "education-num"])
SIZE = 32


def by_key(key):
    """Bags of rows that share a key as far as that goes: rows in its order, cut every so many."""
    order = np.lexsort((np.random.default_rng(1).random(len(key)), key))
    bags = np.empty(len(key), dtype=int)
    bags[order] = np.arange(len(key)) // SIZE
    sums, sizes = np.bincount(bags, weights=train.y), np.bincount(bags)
    return bags, (sums / sizes)[bags]


makings = {
    "at random": make_bags(train.y, size=SIZE),
    "by education": by_key(train.X["education-num"].to_numpy()),
}
warnings.simplefilter("ignore", NotRandomWarning)  # diagnose says the same
found = {}
for name, (bags, proportions) in makings.items():
    print(f"bags made {name}")
    print(diagnose(proportions, bags, X=features))
    kept = np.isin(bags, np.unique(bags)[::5])
    model = LLPClassifier().fit(features[~kept], proportions[~kept], bags=bags[~kept])
    estimates = evaluate(model.predict_proba(features[kept]), proportions[kept], bags[kept])
    truth = evaluate(model.predict_proba(features[kept]), train.y[kept])
    shown = "withheld, with force()" if estimates.is_withheld else "from bags"
    print(f"accuracy {shown} {estimates.force()['accuracy']}, by labels {truth['accuracy'].value:.4f}\n")
    found[name] = proportions[np.unique(bags, return_index=True)[1]]


def plot(axes):
    edges = np.linspace(0, 1, 34)
    for color, (name, of_bags) in enumerate(found.items()):
        axes.hist(of_bags, bins=edges, alpha=0.6, color=f"C{color}", label=f"bags made {name}")


draw(options.out, plot, xlabel="proportion of a bag", ylabel="bags", title=f"Proportions of bags of {SIZE}")

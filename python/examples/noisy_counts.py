"""How much noise can counts have? Census data (Adult) in bags of three sizes, with Laplace noise of several scales.

    python noisy_counts.py [--out figure.svg]

The noise is declared, so training and estimates allow for it. Needs nothing but the package.
"""

import argparse
import warnings

import numpy as np
from _figure import draw
from sklearn.metrics import roc_auc_score

from easyllp import LLPClassifier, NotRandomWarning, datasets, evaluate, make_bags

options = argparse.ArgumentParser()
options.add_argument("--out", help="draw the figure into this file, .svg or .png")
options = options.parse_args()

train, test = datasets.adult()
rng = np.random.default_rng(1)
scales = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]


def reported(y, size, scale):
    """Bags and the counts that a provider reports of them, with its noise."""
    bags, _ = make_bags(y, size=size)
    counts = np.bincount(bags, weights=y) + rng.laplace(scale=scale, size=bags.max() + 1)
    return bags, dict(enumerate(counts)), ("laplace", scale) if scale else None


# These bags are random. In this many tests at a level of 1 % a false alarm is likely, and would withhold the metrics.
warnings.simplefilter("ignore", NotRandomWarning)
aucs = {}
for size in (8, 32, 128):
    for scale in scales:
        bags, counts, noise = reported(train.y, size, scale)
        settings = {"method_params": {"bag_weights": "noise"}} if noise else {}
        model = LLPClassifier(l2=0.01, holdout=0, **settings).fit_bags(train.X, counts, bags, noise=noise)
        probabilities = model.predict_proba(test.X)
        aucs[size, scale] = roc_auc_score(test.y, probabilities[:, 1])
        test_bags, test_counts, noise = reported(test.y, size, scale)
        estimate = evaluate(probabilities, bags=test_bags, counts=test_counts, noise=noise, force=True)["brier"]
        truth = np.mean((probabilities[:, 1] - test.y) ** 2)
        print(f"bags of {size:3}, noise {scale:3.1f}: AUC {aucs[size, scale]:.3f}, Brier score {estimate}, by labels {truth:.4f}")


def plot(axes):
    for size in (8, 32, 128):
        axes.plot(scales, [aucs[size, scale] for scale in scales], "o-", label=f"bags of {size}")
    axes.set_ylim(None, 0.93)


draw(options.out, plot, xlabel="scale of the Laplace noise on each count", ylabel="AUC on test labels", title="Adult, from noisy counts")

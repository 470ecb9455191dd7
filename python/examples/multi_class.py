"""Several classes: ten digits, from bags that report how many of each digit they hold.

    python multi_class.py [--out figure.svg]

Counts have a column per class. Accuracy is estimated from the bags of other digits, with its interval, and compared with
labels. Needs nothing but the package.
"""

import argparse

from _figure import draw

from easyllp import LLPClassifier, datasets, evaluate, make_bags

options = argparse.ArgumentParser()
options.add_argument("--out", help="draw the figure into this file, .svg or .png")
options = options.parse_args()

train, test = datasets.optdigits()
sizes = [2, 4, 8, 16, 32]
found = []
for size in sizes:
    bags, proportions = make_bags(train.y, size=size)  # ten columns, one per digit
    model = LLPClassifier().fit(train.X, proportions, bags=bags)
    test_bags, test_proportions = make_bags(test.y, size=size)
    estimate = evaluate(model.predict_proba(test.X), test_proportions, test_bags)["accuracy"]
    truth = model.score(test.X, test.y)
    print(f"bags of {size:2}: accuracy {estimate} from bags, {truth:.3f} by labels")
    found.append((estimate, truth))


def plot(axes):
    from_bags = [estimate for estimate, _ in found]
    error = [[e.value - e.low for e in from_bags], [e.high - e.value for e in from_bags]]
    axes.errorbar(sizes, [e.value for e in from_bags], yerr=error, fmt="o", label="from bags, 95 % interval")
    axes.plot(sizes, [truth for _, truth in found], "s-", color="C1", label="by labels")
    axes.axhline(0.1, color="0.6", linestyle=":", label="chance")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, sizes)


draw(options.out, plot, xlabel="rows in a bag", ylabel="accuracy", title="Ten digits from counts of digits")

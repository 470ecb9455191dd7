"""Your own aggregate reports with pandas: a log of impressions, and a report of clicks by day and batch.

    python your_reports.py [--out figure.svg]

Rows have no label. The report has one line for each key, here of two columns, with noise that the provider says it adds.
Needs pandas.
"""

import argparse

import numpy as np
import pandas as pd
from _figure import draw

from easyllp import LLPClassifier, diagnose, evaluate

options = argparse.ArgumentParser()
options.add_argument("--out", help="draw the figure into this file, .svg or .png")
options = options.parse_args()

# A log such as yours: each impression has a day, a batch in which it was reported, and what is known of it.
draw_from = np.random.default_rng(1)
n_rows = 60_000
log = pd.DataFrame(
    {
        "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(draw_from.integers(30, size=n_rows), unit="D"),
        "batch": draw_from.integers(100, size=n_rows),
        "device": pd.Categorical(draw_from.choice(["phone", "tablet", "desktop"], p=[0.6, 0.1, 0.3], size=n_rows)),
        "age": draw_from.normal(40, 12, size=n_rows).round(),
        "seconds": draw_from.exponential(20, size=n_rows),
    }
)
log_odds = -3 + 1.2 * (log["device"] == "desktop") + 0.03 * log["seconds"] - 0.02 * (log["age"] - 40)
clicked = draw_from.random(n_rows) < 1 / (1 + np.exp(-log_odds))  # which nobody sees

# The report: clicks by day and batch, with Laplace noise of scale 1 on each.
keys = ["day", "batch"]
report = log.assign(clicks=clicked).groupby(keys)["clicks"].sum() + draw_from.laplace(scale=1, size=log.groupby(keys).ngroups)
print(report.round(2).head(), "\n")

# The keys of each row, which the report's index has, too; days and batches are keys, not features.
ids = log[keys]
features = log.drop(columns=keys)
noise = ("laplace", 1.0)
print(diagnose(bags=ids, counts=report, noise=noise, X=features), "\n")

# The last six days evaluate a model of the days before.
late = (log["day"] >= "2026-01-25").to_numpy()
early_report, late_report = report.loc[:"2026-01-24"], report.loc["2026-01-25":]
model = LLPClassifier(method_params={"bag_weights": "noise"}).fit_bags(features[~late], early_report, ids[~late], noise=noise)
probabilities = model.predict_proba(features[late])
found = evaluate(probabilities, bags=ids[late], counts=late_report, noise=noise, curves=True)
print(found)
print("\nin truth: accuracy", round((model.predict(features[late]) == clicked[late]).mean(), 4))


def plot(axes):
    groups = found.curves["calibration"]["groups"]
    predicted = [group["predicted"] for group in groups]
    observed = [group["observed"] for group in groups]
    low = [max(0.0, o.value - o.low) for o in observed]
    high = [max(0.0, o.high - o.value) for o in observed]
    axes.errorbar(predicted, [o.value for o in observed], yerr=[low, high], fmt="o", label="tenths of the rows, from noisy counts")
    most = max(predicted)
    axes.plot([0, most], [0, most], color="0.6", label="as predicted")


draw(options.out, plot, xlabel="predicted share of clicks", ylabel="share of clicks", title="Calibration, from the last six days' reports")

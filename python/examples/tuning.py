"""Tune methods, models and penalties by cross-validation over bags, with the program `easyllp tune`.

    python tuning.py [--out figure.svg]

Every trial is ranked by the Brier score of bags that it was not trained on, and compared with the best on the same bags. In the
end the settings go to `easyllp train`, and test labels say what was lost. Needs the program `easyllp` on the path, or in EASYLLP.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
from _figure import draw
from sklearn.metrics import log_loss

import easyllp

options = argparse.ArgumentParser()
options.add_argument("--out", help="draw the figure into this file, .svg or .png")
options = options.parse_args()

folder = pathlib.Path(tempfile.mkdtemp())


def run(*words):
    """Run the program in the folder, and give what it prints."""
    program = os.environ.get("EASYLLP", "easyllp")
    return subprocess.run([program, *words, "--quiet"], cwd=folder, check=True, capture_output=True, text=True).stdout


run("datasets", "export", "adult", "--part", "train", "--out", "train.csv")
run("bag", "--rows", "train.csv", "--label", "income", "--positive", ">50K", "--size", "64", "--out", "bags")
data = ["--rows", "bags/rows.parquet", "--reports", "bags/reports.parquet", "--key", "bag", "--count", ">50K"]
grid = ["--method", "easyllp", "--method", "mean-map", "--l2", "0.0001,0.001,0.01,0.1,1"]
print(run("tune", *data, *grid, "--out", "best.toml"))
trials = json.loads(run("tune", *data, *grid, "--out", "best.toml", "--json"))["trials"]  # all from the journal

run("train", "--config", "best.toml", "--out", "model.safetensors")
_, test = easyllp.datasets.adult()
model = easyllp.load(folder / "model.safetensors")
print(f"log loss on test labels: {log_loss(test.y, model.predict_proba(test.X)[:, 1]):.4f}")


def plot(axes):
    for color, method in enumerate(("easyllp", "mean-map")):
        of_method = sorted((t["config"]["optimizer"]["l2"], t["brier"]) for t in trials if t["config"]["method"]["name"] == method)
        penalties, found = zip(*of_method)
        error = [[e["value"] - e["low"] for e in found], [e["high"] - e["value"] for e in found]]
        axes.errorbar(np.array(penalties) * (1 + 0.1 * color), [e["value"] for e in found], yerr=error, fmt="o-", label=method)
    axes.set_xscale("log")


draw(options.out, plot, xlabel="l2", ylabel="Brier score, from bags", title="Trials of easyllp tune, Adult in bags of 64")

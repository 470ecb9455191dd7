"""Prints the table: llp-learn's DLLP and EM against the same method here, on the same rows and bags of Adult.

    compare.py FOLDER OUR_PYTHON PEER_PYTHON

Each training is a process of its own; the two sides take turns, and medians of three count. Seconds are those of `fit` alone.
"""

import json
import pathlib
import statistics
import subprocess
import sys

import numpy as np

from easyllp import datasets, make_bags

folder, our_python, peer_python = sys.argv[1:]
here = pathlib.Path(__file__).parent
sides = {"easyllp": (our_python, here / "ours.py"), "llp-learn": (peer_python, here / "peer.py")}
ROUNDS = 3


def one_hot(train, test):
    """Numbers standardised, categories a column each: what llp-learn can read, and here for both."""
    import pandas as pd

    both = pd.get_dummies(pd.concat([train, test]), dtype=np.float32)
    numbers = both.to_numpy(dtype=np.float32)
    mean, scale = numbers[: len(train)].mean(axis=0), numbers[: len(train)].std(axis=0)
    numbers = (numbers - mean) / np.where(scale > 0, scale, 1)
    return np.ascontiguousarray(numbers[: len(train)]), np.ascontiguousarray(numbers[len(train) :])


train, test = datasets.adult()
X, test_X = one_hot(train.X, test.X)
print("| method | k | | seconds | over easyllp | test AUC |\n|---|---|---|---|---|---|")
for size in (8, 32):
    bags, proportions = make_bags(train.y, size=size)
    of_bag = proportions[np.unique(bags, return_index=True)[1]]
    data = pathlib.Path(folder) / f"adult-{size}.npz"
    np.savez(data, X=X, test_X=test_X, test_y=test.y, bags=bags, proportions=proportions, of_bag=of_bag)
    for method in ("DLLP", "EM"):
        found = {side: [] for side in sides}
        for _ in range(ROUNDS):
            for side, (python, script) in sides.items():
                done = subprocess.run([python, script, data, method], capture_output=True, text=True, check=True)
                found[side].append(json.loads(done.stdout.splitlines()[-1]))
        seconds = {side: statistics.median(run["seconds"] for run in runs) for side, runs in found.items()}
        for side, runs in found.items():
            ratio = seconds[side] / seconds["easyllp"]
            auc = statistics.median(run["auc"] for run in runs)
            print(f"| {method} | {size} | {side} | {seconds[side]:.2f} | {ratio:.1f} | {auc:.3f} |", flush=True)

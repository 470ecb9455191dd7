"""The same trainings as `recipe.rs` from Python: `overhead.py PROGRAM` runs it and this alternately, and prints medians and their ratio.

PROGRAM is `target/release/recipe` (`cargo build --release -p easyllp-benches --features tables --bin recipe`).
"""

import collections
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from easyllp import LLPClassifier, make_bags

TURNS = 5
seconds = collections.defaultdict(lambda: {"Rust": [], "Python": []})
with tempfile.TemporaryDirectory() as folder:
    for _ in range(TURNS):
        told = subprocess.run([sys.argv[1], folder], capture_output=True, text=True, check=True).stdout
        for line in told.splitlines():
            name, took = line.split()
            seconds[name]["Rust"].append(float(took))
        pixels = np.fromfile(f"{folder}/pixels", dtype=np.float32).reshape(-1, 784)
        labels = np.fromfile(f"{folder}/labels", dtype=np.uint8)
        bags, proportions = make_bags(labels, size=64)
        for name, model in {
            "linear": LLPClassifier(l2=0.01, holdout=0),
            "mlp:256": LLPClassifier(model="mlp:256", epochs=3, holdout=0),
        }.items():
            for _ in range(5):
                begun = time.perf_counter()
                model.fit(pixels, proportions, bags=bags)
                seconds[name]["Python"].append(time.perf_counter() - begun)
print("| model | Rust | Python | ratio |\n|---|---|---|---|")
for name, of in seconds.items():
    rust, python = (statistics.median(of[side]) for side in ("Rust", "Python"))
    print(f"| {name} | {rust:.3f} s | {python:.3f} s | {python / rust:.3f} |")

"""Does `easyllp tune` find a good setting from bags alone? Adult in bags of 64: every setting of the space is trained on all
training bags and its log loss taken on the labelled test rows, which `tune` never sees.

    benches/tune_adult.py EASYLLP [SEED]      EASYLLP is the program

Prints the space with both figures, and how far the choice is from the best.
"""

import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

MODELS = ["linear", "embedding:8,mlp:32"]
METHODS = ["easyllp", "naive"]
PENALTIES = [0.3, 0.1, 0.03, 0.01, 0.003, 0.001]
NETWORK = ["--lr", 0.001, "--epochs", 5]


def main():
    easyllp = pathlib.Path(sys.argv[1]).resolve()
    seed = sys.argv[2] if len(sys.argv) > 2 else "1"
    with tempfile.TemporaryDirectory() as folder:
        def run(*arguments):
            return subprocess.run([easyllp, *map(str, arguments)], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout

        for part in ("train", "test"):
            run("datasets", "export", "adult", "--part", part, "--out", f"{part}.csv")
        run("bag", "--rows", "train.csv", "--label", "income", "--positive", ">50K", "--size", 64, "--seed", seed,
            "--format", "csv", "--out", "bags")
        # Each test row a bag of its own.
        run("bag", "--rows", "test.csv", "--label", "income", "--positive", ">50K", "--size", 1, "--format", "csv", "--out", "singles")
        data = ["--rows", "bags/rows.csv", "--reports", "bags/reports.csv", "--key", "bag", "--count", ">50K", "--seed", seed]
        models = [text for model in MODELS for text in ("--model", model)]
        space = [*models, "--method", ",".join(METHODS), "--l2", ",".join(map(str, PENALTIES)), "--loss", "logistic", *NETWORK]
        print(run("tune", *data, *space, "--out", "best.toml"), flush=True)
        losses = {}
        for model, method, l2 in itertools.product(MODELS, METHODS, PENALTIES):
            options = ["--model", model, "--method", method, "--l2", l2, *(NETWORK if model != "linear" else [])]
            losses[f"{method}, {model}, l2 {l2}"] = test_loss(run, data, options)
        for setting, loss in sorted(losses.items(), key=lambda item: item[1]):
            print(f"{loss:.4f}  {setting}")
        loss, best = test_loss(run, data, ["--config", "best.toml"]), min(losses.values())
        print(f"tune's choice has test log loss {loss:.4f}, {100 * (loss / best - 1):.2f} % above the best, {best:.4f}")


def test_loss(run, data, options):
    run("train", *data, *options, "--holdout", 0, "--out", "model")
    found = json.loads(run("evaluate", "--model", "model", "--rows", "singles/rows.csv", "--reports", "singles/reports.csv",
                           "--key", "bag", "--count", ">50K", "--json"))
    return next(figure["from_bags"]["value"] for figure in found["figures"] if figure["name"] == "log loss")


if __name__ == "__main__":
    main()

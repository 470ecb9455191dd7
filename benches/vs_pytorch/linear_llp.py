"""EasyLLP's soft targets for a linear model of MNIST, even against odd, in plain PyTorch: what `methods linear` is held against.

    python linear_llp.py [SEEDS]        after `easyllp datasets get mnist`

Prints, for each bag size, the test accuracy of the best epoch by test labels: mean and standard deviation over seeds of bags and training.
"""

import gzip
import os
import pathlib
import sys

import numpy as np
import torch

FOLDER = pathlib.Path(os.environ.get("EASYLLP_DATA", pathlib.Path.home() / ".cache" / "easyllp")) / "mnist"
SIZES, EPOCHS, BATCH, STEP = [2, 8, 32, 128, 512, 1024], 40, 256, 1e-3


def idx(name):
    data = gzip.decompress((FOLDER / f"{name}.gz").read_bytes())
    shape = [int.from_bytes(data[4 + 4 * axis : 8 + 4 * axis], "big") for axis in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def part(name):
    pixels = idx(f"{name}-images-idx3-ubyte").reshape(-1, 784).astype(np.float32) / 255
    return torch.from_numpy(pixels), idx(f"{name}-labels-idx1-ubyte") % 2


def best_accuracy(train, test, size, seed, epochs=EPOCHS):
    (rows, labels), (test_rows, test_labels) = train, test
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[: len(order) // size * size]
    shares = labels[order].reshape(-1, size).mean(1)
    prior = shares.mean()
    targets = torch.from_numpy(np.repeat(prior + size * (shares - prior), size).astype(np.float32))
    rows = rows[order]
    torch.manual_seed(seed)
    model = torch.nn.Linear(784, 1)
    adam = torch.optim.Adam(model.parameters(), lr=STEP)
    best = 0.0
    for _ in range(epochs):
        for batch in torch.randperm(len(rows)).split(BATCH):
            scores = model(rows[batch])[:, 0]
            loss = (torch.nn.functional.softplus(scores) - targets[batch] * scores).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        with torch.no_grad():
            said = model(test_rows)[:, 0].numpy() > 0
        best = max(best, float((said == test_labels).mean()))
    return best


def main():
    torch.set_num_threads(1)
    train, test = part("train"), part("t10k")
    seeds = range(1, 1 + int(sys.argv[1]) if len(sys.argv) > 1 else 6)
    for size in SIZES:
        found = [best_accuracy(train, test, size, seed) for seed in seeds]
        print(f"k = {size}: {np.mean(found):.4f} ± {np.std(found, ddof=min(1, len(found) - 1)):.4f}", flush=True)


if __name__ == "__main__":
    main()

"""A slice of `easyllp reproduce`'s grid of linear models on MNIST against the same models one by one in PyTorch, in one run.

    python linear_grid.py EASYLLP [ROUNDS]        after `easyllp datasets get mnist`; EASYLLP is the program

Alternately: the program trains 330 models (11 tasks, 30 replicas, bags of 32) for a few epochs in passes that they share; PyTorch trains one
model on each processor, one thread each. Both judge test accuracy after every epoch. Prints the medians of seconds that a model takes for an
epoch, and the total for the whole grid.
"""

import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from linear_llp import best_accuracy, part

EPOCHS, SIZE, REPLICAS, TASKS = 4, 32, 30, 11
MODELS_OF_GRID = 11 * 30 * (10 + 1)  # EasyLLP at ten bag sizes, and row labels
EPOCHS_OF_GRID = 40
SLICE = f"""experiment = "accuracy"
dataset = "mnist"
tasks = ["even-vs-odd", "one-vs-all"]
model = "linear"
methods = ["easyllp"]
bag-sizes = [{SIZE}]
replicas = {REPLICAS}
epochs = {EPOCHS}
held-out = 0.0
"""


def ours(program):
    with tempfile.TemporaryDirectory() as folder:
        experiment = pathlib.Path(folder) / "slice.toml"
        experiment.write_text(SLICE)
        started = time.perf_counter()
        subprocess.run([program, "reproduce", experiment, "--out", folder], check=True, capture_output=True)
        return (time.perf_counter() - started) / (REPLICAS * TASKS * EPOCHS)


def one_by_one(seed, barrier, seconds):
    import torch

    torch.set_num_threads(1)
    train, test = part("train"), part("t10k")
    barrier.wait()
    started = time.perf_counter()
    best_accuracy(train, test, SIZE, seed, EPOCHS)
    barrier.wait()
    if seed == 0:
        seconds.value = time.perf_counter() - started


def peers(n_processors):
    context = multiprocessing.get_context("spawn")
    barrier, seconds = context.Barrier(n_processors), context.Value("d", 0.0)
    workers = [context.Process(target=one_by_one, args=(seed, barrier, seconds)) for seed in range(n_processors)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return seconds.value / (n_processors * EPOCHS)


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    n_processors = len(os.sched_getaffinity(0))
    found = [(ours(program), peers(n_processors)) for _ in range(rounds)]
    of_us, of_peer = (statistics.median(side) for side in zip(*found))
    print("| | a model's epoch | the grid |\n|---|---|---|")
    for name, seconds in [("easyllp", of_us), ("PyTorch, one by one", of_peer)]:
        print(f"| {name} | {1e3 * seconds:.2f} ms | {seconds * MODELS_OF_GRID * EPOCHS_OF_GRID / 60:.1f} min |")
    print(f"\n{of_peer / of_us:.0f} times as fast on {n_processors} processors (the program's start and reading included)")


if __name__ == "__main__":
    main()

"""Both sides of `run.sh` in turn, medians of three, as a Markdown table; then the memory of `easyllp predict`."""

import json
import os
import pathlib
import statistics
import subprocess
import sys

ROUNDS = 3
ROWS = 10_000_000
CSV_ROWS = 1_000_000

programs, folder = map(pathlib.Path, sys.argv[1:3])
here = pathlib.Path(__file__).parent


def make(name, n_rows):
    path = folder / name
    if not path.exists():
        subprocess.run([programs / "criteo-log", str(n_rows), path], check=True)
    return path


def seconds(command, threads):
    """What one side says it took. Besides being told, it is held to so many cores: pandas reads on all there are."""
    env = dict(os.environ, RAYON_NUM_THREADS=str(threads), POLARS_MAX_THREADS=str(threads))
    cores = sorted(os.sched_getaffinity(0))[:threads]
    held = lambda: os.sched_setaffinity(0, cores)
    said = subprocess.run(
        list(map(str, command)), env=env, check=True, capture_output=True, text=True, preexec_fn=held
    ).stdout
    return json.loads(said)["seconds"]


def compare(what, ours, peers, n_rows, threads):
    """Medians of our side and of each peer, taken in turn; the fastest reference counts."""
    sides = {"easyllp": ours, **peers}
    seconds({**sides}["easyllp"], threads)  # the file is in memory from here on
    times = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, command in sides.items():
            times[name].append(seconds(command, threads))
    medians = {name: statistics.median(of_side) for name, of_side in times.items()}
    own = medians.pop("easyllp")
    best = min(medians, key=medians.get)
    print(
        f"| {what} | {threads} | {n_rows / own / 1e6:.2f} M rows/s | {best}: {n_rows / medians[best] / 1e6:.2f} M rows/s "
        f"| {own / medians[best]:.2f} |",
        flush=True,
    )


def peak_memory(command):
    child = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, command
    return usage.ru_maxrss / 1024**2


python = sys.executable
log, csv = make("log.parquet", ROWS), make("log.csv", CSV_ROWS)
print("| read | threads | easyllp | the fastest reference | time, ours ÷ peer |")
print("|---|---|---|---|---|")
for threads in (1, 2):
    peers = {
        f"Polars ({engine})": [python, here / "peer.py", "polars", log, engine] for engine in ("streaming", "in-memory")
    }
    compare("Parquet, 13 standardised + 26 hashed", [programs / "tables-ours", "encode", log], peers, ROWS, threads)
for threads in (1, 2):
    peers = {"pandas (C engine)": [python, here / "peer.py", "pandas", csv]}
    compare("CSV", [programs / "tables-ours", "read", csv], peers, CSV_ROWS, threads)

few = make("few.parquet", 100_000)
easyllp = programs / "easyllp"
bags, model = folder / "bags", folder / "model"
quiet = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
subprocess.run([easyllp, "bag", "--rows", few, "--label", "label", "--size", "64", "--out", bags], **quiet)
files = ["--rows", bags / "rows.parquet", "--reports", bags / "reports.parquet", "--key", "bag", "--count", "1"]
subprocess.run([easyllp, "train", *files, "--out", model, "--l2", "0.001"], **quiet)
peak = peak_memory([easyllp, "predict", "--model", model, "--rows", log, "--out", folder / "scores.parquet"])
print(f"\n`easyllp predict` on {ROWS:,} rows: {peak:.2f} GB resident at most")

"""Runs both sides of the comparison alternately, each in a process of its own, and prints a Markdown table; see run.sh.

First every way of PyTorch is tried for an epoch; those within a quarter of the best then take turns with ours. The table
has the best way, by its median.
"""

import json
import os
import subprocess
import sys
from statistics import median

from peer import WORKLOADS

OURS = ["W1", "W1b", "W2", "W3", "W4", "W5", "W6"]
ROUNDS, EPOCHS = int(os.environ.get("ROUNDS", 5)), int(os.environ.get("EPOCHS", 3))
THREADS = os.environ.get("THREADS", "1 2").split()


def peer(workload, threads, epochs, way):
    command = [sys.executable, "peer.py", workload, threads, str(epochs), way]
    environment = dict(os.environ, OMP_NUM_THREADS=threads)
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True, text=True, timeout=900)
    except subprocess.SubprocessError as error:
        print(f"{workload}, {way}: {error}", file=sys.stderr)
        return [float("inf")]
    return json.loads(result.stdout.splitlines()[-1])["ms"]


def ours(program, workload, threads, epochs):
    result = subprocess.run([program, workload, threads, str(epochs)], stdout=subprocess.PIPE, check=True, text=True)
    result = json.loads(result.stdout)
    return result["gflops"] if workload == "peak" else result["ms"]


def main():
    program, *workloads = sys.argv[1:]
    print("| workload | threads | ours, ms/epoch | PyTorch, ms/epoch | its best setting | ratio |")
    print("|---|---|---|---|---|---|")
    peaks = {threads: [] for threads in THREADS}
    for workload in workloads or OURS:
        for threads in THREADS:
            tried = {way: min(peer(workload, threads, 1, way)) for way in WORKLOADS[workload][0]}
            times = {way: [] for way, time in tried.items() if time <= 1.25 * min(tried.values())}
            of_ours = []
            for _ in range(ROUNDS):
                peaks[threads] += ours(program, "peak", threads, EPOCHS)
                of_ours += ours(program, workload, threads, EPOCHS)
                for way, so_far in times.items():
                    so_far += peer(workload, threads, EPOCHS, way)
            best = min(times, key=lambda way: median(times[way]))
            mine, theirs = median(of_ours), median(times[best])
            row = [workload, threads, f"{mine:.1f}", f"{theirs:.1f}", best, f"{mine / theirs:.2f}"]
            print(f"| {' | '.join(row)} |", flush=True)
    for threads, rates in peaks.items():
        print(f"\nMatrix product of 1024³ (the `gemm` crate, one per thread), {threads} thread(s): "
              f"median {median(rates):.0f}, best {max(rates):.0f} GFLOP/s")


if __name__ == "__main__":
    main()

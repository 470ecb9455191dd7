"""Time of one L-BFGS evaluation and peak memory, against scikit-learn's LogisticRegression on the same CSR matrix with row labels.

`python sparse_linear.py target/release/sparse-linear hashed|text [ROWS]`: `hashed` is 13 numbers and 26 columns of 65,536 buckets a row (1,000,000 rows
by default), which easyllp has as numbers and codes; `text` is 100,000 columns with about 100 numbers per row (8,000 rows by default), the same CSR matrix
for both. Both fit the same labels with the same weak penalty, each in a process of its own. What is done once is left out: a time is the
difference of two fits with many and with few iterations, over the difference of iterations (easyllp, each of which has one evaluation or more, and the
optimiser's own work) or of evaluations (LogisticRegression); the fastest of three fits each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

N_NUMBERS, N_FIELDS, N_BUCKETS = 13, 26, 65_536
ITERATIONS = {"hashed": (4, 24), "text": (10, 110)}
REPEATS = 3


def hashed(n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers, codes and labels. Frequencies of codes fall off as place^-a, a from 0 in the first column to 1.1 in the last."""
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(n_rows, N_NUMBERS)).astype(np.float32)
    scores = -1.5 + numbers @ rng.normal(0, 0.2, N_NUMBERS)
    codes = np.empty((n_rows, N_FIELDS), dtype=np.int32)
    for field in range(N_FIELDS):
        power = 1 - 1.1 * field / (N_FIELDS - 1)
        uniform = rng.random(n_rows)
        places = (1 + uniform * (N_BUCKETS**power - 1)) ** (1 / power) if abs(power) > 1e-9 else N_BUCKETS**uniform
        codes[:, field] = np.minimum(places.astype(np.int32) - 1, N_BUCKETS - 1)
        scores += rng.normal(0, 0.2, N_BUCKETS)[codes[:, field]]
    return numbers, codes, (rng.random(n_rows) < 1 / (1 + np.exp(-scores))).astype(int)


def as_matrix(numbers: np.ndarray, codes: np.ndarray) -> scipy.sparse.csr_array:
    n_rows = len(numbers)
    columns = np.concatenate(
        [np.tile(np.arange(N_NUMBERS, dtype=np.int32), (n_rows, 1)), N_NUMBERS + codes + N_BUCKETS * np.arange(N_FIELDS, dtype=np.int32)], axis=1
    )
    values = np.concatenate([numbers, np.ones_like(codes, dtype=np.float32)], axis=1)
    starts = np.arange(0, columns.size + 1, N_NUMBERS + N_FIELDS, dtype=np.int64 if columns.size >= 2**31 else np.int32)
    return scipy.sparse.csr_array((values.ravel(), columns.ravel(), starts), shape=(n_rows, N_NUMBERS + N_FIELDS * N_BUCKETS))


def text(n_rows: int) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    rng = np.random.default_rng(1)
    n_columns, length = 100_000, 100
    columns = ((n_columns ** rng.random((n_rows, length))).astype(np.int32) - 1).ravel()
    values = (rng.random(n_rows * length) + 0.1).astype(np.float32) / 10
    X = scipy.sparse.csr_array((values, columns, np.arange(0, len(values) + 1, length, dtype=np.int32)), shape=(n_rows, n_columns))
    X.sum_duplicates()
    scores = X @ rng.normal(0, 3, n_columns)
    return X, (scores + rng.normal(size=n_rows) > np.median(scores)).astype(int)


def penalty(n_rows: int) -> float:
    """The same for both: weak, so that no fit converges within the iterations that are timed."""
    return 1e-3 / n_rows


def ours(program: str, workload: str, n_rows: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        parts: dict[str, np.ndarray]
        if workload == "hashed":
            numbers, codes, y = hashed(n_rows)
            parts = {"values": numbers, "columns": codes, "shape": np.array([N_NUMBERS, N_FIELDS, N_BUCKETS])}
        else:
            X, y = text(n_rows)
            parts = {"values": X.data, "columns": X.indices, "starts": X.indptr.astype("<u8"), "shape": np.array([X.shape[1]])}
        for name, part in (parts | {"labels": y}).items():
            kind = {"values": "<f4", "starts": "<u8"}.get(name, "<u4")
            part.astype(kind).tofile(Path(folder) / name)
        ran = subprocess.run([program, folder, str(penalty(n_rows)), *map(str, ITERATIONS[workload] * REPEATS)], capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def peer(workload: str, n_rows: int) -> dict[str, Any]:
    import resource
    import warnings

    from sklearn.linear_model import LogisticRegression, _linear_loss

    X, y = text(n_rows) if workload == "text" else (lambda n, c, y: (as_matrix(n, c), y))(*hashed(n_rows))
    warnings.simplefilter("ignore")
    evaluations = 0
    original = _linear_loss.LinearModelLoss.loss_gradient

    def counted(self, *args, **kwargs):
        nonlocal evaluations
        evaluations += 1
        return original(self, *args, **kwargs)

    _linear_loss.LinearModelLoss.loss_gradient = counted
    found = []
    for n_iterations in ITERATIONS[workload] * REPEATS:
        evaluations, started = 0, time.perf_counter()
        LogisticRegression(C=1 / (penalty(n_rows) * n_rows), max_iter=n_iterations, tol=1e-12, solver="lbfgs").fit(X, y)
        found.append((time.perf_counter() - started, evaluations))
    return {"found": found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


def main() -> None:
    program, workload = sys.argv[1:3]
    n_rows = int(sys.argv[3]) if len(sys.argv) > 3 else {"hashed": 1_000_000, "text": 8_000}[workload]
    if program == "peer":
        print(json.dumps(peer(workload, n_rows)))
        return
    ran = subprocess.run([sys.executable, __file__, "peer", workload, str(n_rows)], capture_output=True, text=True, check=True)
    times = {}
    print(f"{workload}, {n_rows:,} rows\n\n| | ms an evaluation | evaluations | whole fit, s | peak, GB |\n|---|---|---|---|---|")
    for who, told in {"LogisticRegression": json.loads(ran.stdout), "easyllp": ours(program, workload, n_rows)}.items():
        (few_time, few), (many_time, many) = (min(tuple(fit) for fit in told["found"][first::2]) for first in (0, 1))
        times[who] = (many_time - few_time) / (many - few)
        print(f"| {who} | {1e3 * times[who]:.1f} | {many} | {many_time:.2f} | {told['peak'] / 1e6:.2f} |")
    print(f"\n{times['easyllp'] / times['LogisticRegression']:.2f} times LogisticRegression's time")


if __name__ == "__main__":
    main()

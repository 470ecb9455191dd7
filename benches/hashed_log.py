"""Writes a synthetic click log with 13 numbers and 26 columns of text that are all hashed, and a report of clicks for each bag of 64 rows.

`python hashed_log.py ROWS FOLDER` writes FOLDER/rows.parquet and FOLDER/reports.csv. Text columns have up to 200,000 distinct values each: in
the first all are as frequent, in the last few make up most rows. Clicks depend on numbers and texts alike.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_NUMBERS, N_TEXTS, N_VALUES, BAG, AT_ONCE = 13, 26, 200_000, 64, 250_000


def ranks(rng: np.random.Generator, n_rows: int, column: int) -> np.ndarray:
    """Places of values, whose frequencies fall off as place^-a with a from 0 in the first column to 1.1 in the last."""
    exponent = 1.1 * column / (N_TEXTS - 1)
    uniform = rng.random(n_rows)
    if abs(1 - exponent) < 1e-9:
        places = N_VALUES**uniform
    else:
        power = 1 - exponent
        places = (1 + uniform * (N_VALUES**power - 1)) ** (1 / power)
    return np.minimum(places.astype(np.int32) - 1, N_VALUES - 1)


def main() -> None:
    n_rows, folder = int(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    of_numbers = rng.normal(0, 0.2, N_NUMBERS)
    of_texts = [rng.normal(0, 0.2, N_VALUES) for _ in range(N_TEXTS)]
    values = [pa.array([f"{(place * 32 + column) * 0x9E3779B1 % 2**32:08x}" for place in range(N_VALUES)]) for column in range(N_TEXTS)]
    bags = rng.permutation(n_rows) // BAG
    clicks = np.zeros(bags.max() + 1, dtype=np.int64)
    writer = None
    for start in range(0, n_rows, AT_ONCE):
        stop = min(start + AT_ONCE, n_rows)
        scores = np.full(stop - start, -1.5)
        columns: dict[str, pa.Array] = {"bag": pa.array(bags[start:stop].astype(np.int32))}
        for column in range(N_NUMBERS):
            numbers = rng.normal(size=stop - start)
            scores += of_numbers[column] * numbers
            columns[f"i{column + 1}"] = pa.array(numbers.astype(np.float32))
        for column in range(N_TEXTS):
            places = ranks(rng, stop - start, column)
            scores += of_texts[column][places]
            columns[f"c{column + 1}"] = pa.DictionaryArray.from_arrays(pa.array(places), values[column])
        is_click = rng.random(stop - start) < 1 / (1 + np.exp(-scores))
        clicks += np.bincount(bags[start:stop][is_click], minlength=len(clicks))
        columns["click"] = pa.array(is_click.astype(np.int8))
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(folder / "rows.parquet", table.schema, compression="zstd")
        writer.write_table(table)
    if writer is not None:
        writer.close()
    with open(folder / "reports.csv", "w") as report:
        report.write("bag,clicks\n")
        report.writelines(f"{bag},{count}\n" for bag, count in enumerate(clicks))


if __name__ == "__main__":
    main()

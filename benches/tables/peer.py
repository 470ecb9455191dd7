"""The peers of `tables/ours.rs`: seconds to turn a log into features, as one line of JSON.

    peer.py polars FILE    scan_parquet, a hash of the categorical columns into buckets, the numeric columns standardised
    peer.py pandas FILE    read_csv with the C engine

Threads are Polars' own: POLARS_MAX_THREADS. Both of its engines are tried, the faster one counts.
"""

import json
import sys
import time

BUCKETS = 1 << 16


def with_polars(path, engine):
    import polars as pl

    log = pl.scan_parquet(path)
    names = [name for name in log.collect_schema().names() if name != "label"]
    numbers = [pl.col(name) for name in names if name.startswith("i")]
    categories = [pl.col(name) for name in names if name.startswith("c")]
    start = time.perf_counter()
    features = log.select(
        [((number - number.mean()) / number.std()).fill_null(0.0).cast(pl.Float32) for number in numbers]
        + [(category.hash() % BUCKETS).cast(pl.UInt32) for category in categories]
    ).collect(engine=engine)
    seconds = time.perf_counter() - start
    return {"peer": f"polars {pl.__version__} ({engine})", "rows": features.height, "seconds": seconds}


def with_pandas(path):
    import pandas as pd

    start = time.perf_counter()
    table = pd.read_csv(path, engine="c")
    seconds = time.perf_counter() - start
    return {"peer": f"pandas {pd.__version__} (C engine)", "rows": len(table), "seconds": seconds}


def main():
    _, peer, path = sys.argv[:3]
    if peer == "polars":
        print(json.dumps(with_polars(path, sys.argv[3])))
    else:
        print(json.dumps(with_pandas(path)))


if __name__ == "__main__":
    main()

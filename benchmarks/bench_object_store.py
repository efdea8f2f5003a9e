"""The same step with its tables in an object store and on the disk; requests by step.

The store is moto's S3 server on this machine: it shares the cores, so that its own work is part of what is measured. Both
run in one warm session, turn by turn; what counts is the median of the ratios. Goals: at most 1.3, and 25 requests.

    python benchmarks/bench_object_store.py [ROUNDS]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_step import QUERIES, WARM, by_engine, prepared, timed
from spark_jobs.session.session import session
from tests.object_store.store import KEYS, server, use

SIZES = (1_000, 10_000, 200_000)
GOAL, REQUESTS = 1.3, 25


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    os.environ.update(KEYS)
    spark = session()
    print(f"one new part, median of {rounds} rounds\n{'rows':>9} {'store':>8} {'disk':>8} {'ratio':>6} {'requests':>9}")
    with server() as s3, tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            lake = use(s3, s3.make_bucket(f"bench-{size}"))
            at, parts = Path(folder) / str(size), WARM + rounds
            there = prepared(spark, at / "store", QUERIES["aggregated"], parts, size, f"{lake.url}/warehouse")
            here = prepared(spark, at / "disk", QUERIES["aggregated"], parts, size)
            store, disk, asked = [], [], []
            for part in range(parts):
                s3.forget()
                store.append(timed(partial(by_engine, there, part)))
                asked.append(len(s3.requests()))
                disk.append(timed(partial(by_engine, here, part)))
            ratio = statistics.median(a / b for a, b in zip(store[WARM:], disk[WARM:], strict=True))
            times = f"{statistics.median(store[WARM:]):7.2f}s {statistics.median(disk[WARM:]):7.2f}s"
            print(f"{size:9,} {times} {ratio:6.2f} {statistics.median(asked[WARM:]):9.0f}", flush=True)
    print(f"goals: {GOAL} and {REQUESTS}")


if __name__ == "__main__":
    main()

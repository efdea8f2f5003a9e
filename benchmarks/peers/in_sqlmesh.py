"""A session of SQLMesh, or with FIRST STOP one run: reads hours from each line, computes them, answers with the seconds.

`FIRST STOP VIEW ...` restates these views instead, which is how late rows are repaired. Runs in SQLMesh's environment.
"""

import os
import sys
import time
from datetime import UTC, datetime, timedelta

from sqlmesh import Context

BEGIN = datetime(2026, 10, 3, tzinfo=UTC)


def computed(context: Context, first: int, stop: int, views: list[str]) -> None:
    spark = context.engine_adapter.spark
    spark.sql(f"CREATE TABLE IF NOT EXISTS default.rows_in USING parquet LOCATION '{os.environ['LANDING']}'")
    spark.sql("REFRESH TABLE default.rows_in")  # a long session keeps the list of files otherwise
    start, end = (f"{BEGIN + timedelta(hours=hour):%Y-%m-%d %H:%M:%S}" for hour in (first, stop))
    last = f"{BEGIN + timedelta(hours=stop, microseconds=-1):%Y-%m-%d %H:%M:%S.%f}"
    if views:
        names = [f"lake.{view}" for view in views]
        context.plan(restate_models=names, start=start, end=last, execution_time=end, auto_apply=True, no_prompts=True)
    elif context.state_reader.get_environment("prod") is None:
        context.plan(execution_time=end, auto_apply=True, no_prompts=True)
    else:
        context.run(start=start, end=last, execution_time=end, ignore_cron=True)


if len(sys.argv) > 1:
    computed(Context(paths=["."]), int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
else:
    kept = Context(paths=["."])
    for line in sys.stdin:
        words = line.split()
        began = time.perf_counter()
        computed(kept, int(words[0]), int(words[1]), words[2:])
        print(f"SECONDS {time.perf_counter() - began}", flush=True)

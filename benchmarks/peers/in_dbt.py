"""A session of dbt: reads `FIRST STOP` hours from each line, computes them, and answers with the seconds. Runs in dbt's environment."""

import sys
import time
from datetime import UTC, datetime, timedelta

from dbt.cli.main import dbtRunner

BEGIN = datetime(2026, 10, 3, tzinfo=UTC)

runner = dbtRunner()
for line in sys.stdin:
    first, stop = (f"{BEGIN + timedelta(hours=int(word)):%Y-%m-%d %H:%M:%S}" for word in line.split()[:2])
    words = ["run", "--profiles-dir", ".", "--quiet", "--event-time-start", first, "--event-time-end", stop]
    words += [word for view in line.split()[2:] for word in ("--select", view)]
    began = time.perf_counter()
    done = runner.invoke(words)
    if not done.success:
        sys.exit(f"dbt failed: {done.exception or done.result}")
    print(f"SECONDS {time.perf_counter() - began}", flush=True)

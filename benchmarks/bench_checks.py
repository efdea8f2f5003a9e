"""What five common expectations cost: a step of 1,000,000 rows with them against the same step without.

Both views run in one warm session on the same source, turn by turn; what counts is the median of the ratios.
Goal: at most 1.5. `--great-expectations` also measures the same five by Great Expectations' own Spark engine.

    python benchmarks/bench_checks.py [ROUNDS] [--great-expectations]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from bench_step import rows, timed
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from partwise import storage
from partwise.definitions import View, load
from partwise.ledger.open import open_ledger
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts
from partwise.storage import schema as schemas
from spark_jobs.engine import Engine
from spark_jobs.session.session import session
from spark_jobs.step import read
from spark_jobs.step.run_step import run_step
from spark_jobs.step.stage import stage

GOAL = 1.5
SIZE = 1_000_000
WARM = 2
QUERY = "SELECT t, g, x + y AS z, CASE WHEN x > 0.5 THEN 'high' ELSE 'low' END AS k, concat('n', g) AS name FROM m[j]"
DEFINITIONS = f"""
source: m
part: 1 minute
time: t
columns: {{t: timestamp, g: bigint, x: double, y: double}}
files: landing/*.csv
---
view: plain
part: 1 minute
update: {QUERY}
---
view: checked
part: 1 minute
update: {QUERY}
checks:
  - expect_column_values_to_not_be_null: {{column: g}}
  - expect_column_values_to_be_between: {{column: z, min_value: 0, max_value: 2}}
  - expect_column_values_to_be_in_set: {{column: k, value_set: [high, low]}}
  - expect_column_values_to_match_regex: {{column: name, regex: "^n[0-9]+$"}}
  - expect_table_row_count_to_be_between: {{min_value: 1}}
"""


def prepared(spark: SparkSession, at: Path, parts: int) -> Engine:
    (at / "view_defs").mkdir(parents=True)
    (at / "view_defs" / "all.yaml").write_text(DEFINITIONS)
    definitions = load(str(at / "view_defs"))
    assert definitions.ok, [str(p) for p in definitions.problems]
    ledger = open_ledger(f"sqlite:///{at / 'ledger.db'}", 0.0)
    ledger.define(definitions.graph(), 0.0)
    engine = Engine(spark, ledger, definitions, str(at / "warehouse"))
    with engine.leased("m") as held:
        handle = storage.create(engine.path("m", 0), schemas.of(dict(definitions.usable["m"].columns)))  # type: ignore[union-attr]
        ledger.adopt(held, [(0, None)], engine.now())
        files = stage(rows(spark, parts, SIZE).repartitionByRange(parts, F.col("part")), handle, "all")  # type: ignore[attr-defined]
        mark = definitions.graph()["m"].fingerprint
        entry = Entry("m", 0, mark, None, None, {p: Content(SIZE, f"{SIZE}:{p}") for p in range(parts)})
        version = storage.commit(handle, files, (), {"kind": "ingest", "entry": entry.to_json()})
        ledger.commit(held, entry, version, engine.now(), keep=True)
    return engine


def step(engine: Engine, view: str, part: int) -> None:
    report = run_step(engine, view, Parts.single(part))
    assert report is not None
    assert (report.changed.count, report.failed) == (1, {})


def great_expectations(engine: Engine) -> float:
    """Seconds for the five on one part by Great Expectations' Spark engine, warm, its import aside."""
    from spark_jobs.checks.expectations import great_expectations

    gx, kinds = great_expectations()
    view = engine.definition("checked")
    assert isinstance(view, View)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_spark(name="s", persist=False).add_dataframe_asset(name="rows")
    batches = asset.add_batch_definition_whole_dataframe("all")
    suite = gx.ExpectationSuite(name="five", expectations=[kinds[c.name](**c.arguments) for c in view.checks])
    handle = engine.open("checked", engine.ledger.current("checked"))
    assert handle is not None
    times = []
    for part in range(3):
        frame = read.parts(engine.spark, handle, Parts.single(part))
        times.append(timed(lambda: batches.get_batch({"dataframe": frame}).validate(suite)))  # noqa: B023
    return min(times)


def main() -> None:
    given = [a for a in sys.argv[1:] if a.isdigit()]
    rounds = int(given[0]) if given else 5
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        engine = prepared(spark, Path(folder) / "w", WARM + rounds)
        times: dict[str, list[float]] = {"plain": [], "checked": []}
        for part in range(WARM + rounds):
            for view in ("plain", "checked") if part % 2 else ("checked", "plain"):
                times[view].append(timed(lambda: step(engine, view, part)))  # noqa: B023
        plain, checked = times["plain"][WARM:], times["checked"][WARM:]
        ratio = statistics.median(b / a for a, b in zip(plain, checked, strict=True))
        print(f"one new part of {SIZE:,} rows, median of {rounds} rounds")
        print(f"without checks {statistics.median(plain):.2f} s, with five {statistics.median(checked):.2f} s")
        print(f"ratio {ratio:.2f} (goal {GOAL})")
        if "--great-expectations" in sys.argv:
            extra = great_expectations(engine)
            print(f"the same five by Great Expectations' Spark engine: {extra:.2f} s on top of the step")


if __name__ == "__main__":
    main()

"""Partwise, dbt and SQLMesh with the same views over the same files. Each is told, in its own way, to compute an hour.

Every side knows: how its project looks, its ordinary command for some hours, and what its tables show. A session (one process
that stays) runs `in_dbt.py`, `in_sqlmesh.py` or `in_partwise.py` with the interpreter of that side.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
from landed import hour_of, rows_of

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".peers"
#: Pinned, so that figures can be compared. dbt-core 1.12 needs a package that no registry has.
PACKAGES = {
    "dbt": ("dbt-spark[session]==1.11.0", "dbt-core==1.11.16", "pyspark==3.5.9", "setuptools<81"),
    "sqlmesh": ("sqlmesh==0.236.4", "pyspark==3.5.9", "setuptools<81"),
}
#: Views of the late story read each other, or several hours.
LATE = ("rolling", "running", "total_of", "rows_of", "diamond")


def make_environments() -> None:
    for name, packages in PACKAGES.items():
        at, uv = ENVIRONMENTS / name, [sys.executable, "-m", "uv"]
        if not (at / "done").exists():
            shutil.rmtree(at, ignore_errors=True)
            subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(at)], check=True)
            subprocess.run(
                [*uv, "pip", "install", "--quiet", "--python", str(at / "bin/python"), *packages], check=True
            )
            (at / "done").touch()


@dataclass
class Side(ABC):
    folder: Path
    views: tuple[str, ...]
    name = ""

    @property
    def landing(self) -> Path:
        return self.folder.parent / "landing"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "LANDING": str(self.landing),
            "DO_NOT_TRACK": "1",
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    @abstractmethod
    def make(self) -> None:
        """Writes the project."""

    @abstractmethod
    def command(self, hours: range) -> list[str]:
        """The ordinary command that computes these hours, which have just come."""

    @abstractmethod
    def session(self) -> list[str]:
        """A process that reads hours, a line each, and answers with the seconds that computing them took."""

    @abstractmethod
    def shown(self, view: str, hours: range) -> set[tuple[datetime, int, int]]:
        """(hour, key, total) as a view shows them."""

    def run(self, hours: range) -> None:
        done = subprocess.run(
            self.command(hours), cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{self.name}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}")


class InFiles(Side):
    """A side whose tables are plain files: what lies in their folders is what they show."""

    @abstractmethod
    def table(self, view: str) -> str:
        """DuckDB's way to the rows (hour, k, total) of a view."""

    def shown(self, view: str, hours: range) -> set[tuple[datetime, int, int]]:
        with duckdb.connect() as on:
            on.execute("SET TimeZone = 'UTC'")
            return rows_of(on, self.table(view), hours)


class Dbt(InFiles):
    name = "dbt"
    _MODEL = (
        "{{{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='hour', batch_size='hour', "
        "begin='2026-10-03', file_format='parquet', partition_by=['hour'], lookback=0) }}}}\n{query}\n"
    )
    _START = "TIMESTAMP'{{ (model.batch.event_time_start if model.batch else execution_start).strftime('%Y-%m-%d %H:%M:%S') }}'"
    _HOUR = "date_trunc('hour', at)"

    def make(self) -> None:
        models = self.folder / "models"
        models.mkdir(parents=True)
        (self.folder / "dbt_project.yml").write_text(
            'name: peers\nversion: "1.0"\nprofile: peers\nmodel-paths: [models]\non-run-start:\n'
            "  - \"create table if not exists rows_in using parquet location '{{ env_var('LANDING') }}'\"\n"
            '  - "refresh table rows_in"\n'
        )
        conf = "".join(f"        {key}: {value!r}\n" for key, value in _conf(self.folder).items())
        (self.folder / "profiles.yml").write_text(
            "peers:\n  target: dev\n  outputs:\n    dev:\n      type: spark\n      method: session\n      schema: default\n"
            f"      host: NA\n      threads: 2\n      server_side_parameters:\n{conf}"
        )
        (models / "sources.yml").write_text(
            "version: 2\nsources:\n  - name: raw\n    schema: default\n    tables:\n      - name: rows_in\n"
            "        config: {event_time: at}\n"
        )
        for view in self.views:
            (models / f"{view}.sql").write_text(self._MODEL.format(query=self._query(view)))

    def _query(self, view: str) -> str:
        source, hour, start = "{{ source('raw', 'rows_in') }}", self._HOUR, self._START
        unfiltered = "{{ source('raw', 'rows_in').render() }}"
        if view == "rolling":
            return (
                f"SELECT k, SUM(x) AS total, {start} AS hour FROM {unfiltered} "
                f"WHERE at >= {start} - INTERVAL 2 HOURS AND at < {start} + INTERVAL 1 HOUR GROUP BY k"
            )
        if view == "running":
            return (
                f"SELECT k, SUM(total) AS total, {start} AS hour FROM (SELECT k, x AS total FROM {source}"
                f"{{% if is_incremental() %}} UNION ALL SELECT k, total FROM {{{{ this }}}} WHERE hour = {start} - INTERVAL 1 HOUR"
                "{% endif %}) GROUP BY k"
            )
        if view == "diamond":
            return (
                "SELECT a.k, a.total + b.n AS total, a.hour FROM {{ ref('total_of') }} a "
                "JOIN {{ ref('rows_of') }} b ON b.k = a.k AND b.hour = a.hour"
            )
        what = {"total_of": "SUM(x) AS total", "rows_of": "COUNT(*) AS n"}.get(view) or f"SUM(x + {view[1:]}) AS total"
        return f"SELECT k, {what}, {hour} AS hour FROM {source} GROUP BY k, {hour}"

    def words(self, hours: range) -> list[str]:
        first, last = hour_of(hours.start), hour_of(hours.stop)
        return [
            *("run", "--profiles-dir", ".", "--quiet"),
            *("--event-time-start", f"{first:%Y-%m-%d %H:%M:%S}", "--event-time-end", f"{last:%Y-%m-%d %H:%M:%S}"),
        ]

    def command(self, hours: range) -> list[str]:
        return [str(ENVIRONMENTS / "dbt/bin/dbt"), *self.words(hours)]

    def session(self) -> list[str]:
        return [str(ENVIRONMENTS / "dbt/bin/python"), str(Path(__file__).with_name("in_dbt.py"))]

    def table(self, view: str) -> str:
        return f"SELECT * FROM read_parquet('{self.folder}/warehouse/{view}/**/*.parquet', hive_partitioning = true)"


class SqlMesh(InFiles):
    name = "SQLMesh"

    def make(self) -> None:
        models = self.folder / "models"
        models.mkdir(parents=True)
        conf = "".join(f"        {key}: {value!r}\n" for key, value in _conf(self.folder).items())
        (self.folder / "config.yaml").write_text(
            f"gateways:\n  spark:\n    connection:\n      type: spark\n      config:\n{conf}"
            f"    state_connection:\n      type: duckdb\n      database: {self.folder}/state.db\n"
            "default_gateway: spark\nmodel_defaults:\n  dialect: spark\n  start: 2026-10-03\n"
        )
        (self.folder / "external_models.yaml").write_text(
            "- name: default.rows_in\n  columns:\n    at: timestamp\n    k: bigint\n    x: bigint\n"
        )
        for view in self.views:
            one = ", batch_size 1" if view in ("rolling", "running") else ""
            columns = ", columns (k bigint, total bigint, hour timestamp)" if view == "running" else ""
            (models / f"{view}.sql").write_text(
                f"MODEL (name lake.{view}, kind INCREMENTAL_BY_TIME_RANGE (time_column hour{one}), cron '@hourly', "
                f"storage_format parquet, partitioned_by (hour){columns});\n{self._query(view)}\n"
            )

    @staticmethod
    def _query(view: str) -> str:
        of_hours = "WHERE at BETWEEN @start_dt AND @end_dt"
        if view == "rolling":
            return (
                "SELECT k, SUM(x) AS total, @start_dt AS hour FROM default.rows_in "
                "WHERE at BETWEEN @start_dt - INTERVAL 2 HOURS AND @end_dt GROUP BY k"
            )
        if view == "running":
            return (
                f"SELECT k, SUM(total) AS total, @start_dt AS hour FROM (SELECT k, x AS total FROM default.rows_in {of_hours} "
                "UNION ALL SELECT k, total FROM lake.running WHERE hour = @start_dt - INTERVAL 1 HOUR) GROUP BY k"
            )
        if view == "diamond":
            return (
                "SELECT a.k, a.total + b.n AS total, a.hour FROM lake.total_of a JOIN lake.rows_of b "
                "ON b.k = a.k AND b.hour = a.hour WHERE a.hour BETWEEN @start_dt AND @end_dt"
            )
        what = {"total_of": "SUM(x) AS total", "rows_of": "COUNT(*) AS n"}.get(view) or f"SUM(x + {view[1:]}) AS total"
        hour = "date_trunc('hour', at)"
        return f"SELECT k, {what}, {hour} AS hour FROM default.rows_in {of_hours} GROUP BY k, {hour}"

    def command(self, hours: range) -> list[str]:
        return [*self.session(), str(hours.start), str(hours.stop)]

    def session(self) -> list[str]:
        return [str(ENVIRONMENTS / "sqlmesh/bin/python"), str(Path(__file__).with_name("in_sqlmesh.py"))]

    def table(self, view: str) -> str:
        files = f"{self.folder}/warehouse/sqlmesh__lake.db/lake__{view}__*/**/*.parquet"
        return f"SELECT * FROM read_parquet('{files}', hive_partitioning = true)"


class Partwise(Side):
    name = "Partwise"

    def make(self) -> None:
        (self.folder / "view_defs").mkdir(parents=True)
        (self.folder / "partwise.yaml").write_text("spark: {keep: 0}\n")
        source = (
            "source: rows_in\npart: 1 hour\ntime: at\ncolumns: {at: timestamp, k: bigint, x: bigint}\n"
            f"files: {self.landing}/*.parquet\nclose: {{marker: '{self.landing.with_name('closed')}/{{part}}.done'}}\n"
        )
        views = [f"view: {view}\npart: 1 hour\n{self._query(view)}\n" for view in self.views]
        (self.folder / "view_defs/all.yaml").write_text("---\n".join([source, *views]))

    @staticmethod
    def _query(view: str) -> str:
        if view == "rolling":
            return "update: SELECT k, SUM(x) AS total FROM rows_in[j-2..j] GROUP BY k"
        if view == "running":
            return (
                "initialize: SELECT k, SUM(x) AS total FROM rows_in[i] GROUP BY k\n"
                "update: SELECT k, SUM(total) AS total FROM (SELECT k, x AS total FROM rows_in[j] "
                "UNION ALL SELECT k, total FROM running[j-1]) GROUP BY k"
            )
        if view == "diamond":
            return "update: SELECT a.k, a.total + b.n AS total FROM total_of[j] a JOIN rows_of[j] b ON b.k = a.k"
        what = {"total_of": "SUM(x) AS total", "rows_of": "COUNT(*) AS n"}.get(view) or f"SUM(x + {view[1:]}) AS total"
        return f"update: SELECT k, {what} FROM rows_in[j] GROUP BY k"

    def keep(self, length: str) -> None:
        """A driver in the background, for commands that follow each other."""
        (self.folder / "partwise.yaml").write_text(f"spark: {{keep: {length}}}\n")

    def command(self, hours: range) -> list[str]:
        return [sys.executable, "-m", "partwise.cli", "run", "--json"]

    def session(self) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name("in_partwise.py"))]

    def shown(self, view: str, hours: range) -> set[tuple[datetime, int, int]]:
        import partwise

        first, last = hour_of(hours.start), hour_of(hours.stop - 1)
        span = f"PART_TIMESTAMP BETWEEN '{first:%Y-%m-%d %H:%M:%S+00}' AND '{last:%Y-%m-%d %H:%M:%S+00}'"
        rows = partwise.open(self.folder).query(
            f"SELECT epoch_us(PART_TIMESTAMP) AS us, k, total FROM {view} WHERE {span}"
        )
        start = hour_of(0)
        zero = int(start.timestamp() * 1e6)
        return {
            (start + timedelta(microseconds=row["us"] - zero), row["k"], int(row["total"])) for row in rows.to_pylist()
        }


def _conf(folder: Path) -> dict[str, str]:
    return {
        "spark.master": "local[2]",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }

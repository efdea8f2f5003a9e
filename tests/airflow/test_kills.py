"""The whole product loses its parts one after the other, and no data: driver, scheduler, api-server, triggerer, an event.

One product for all of them, about ten minutes in all on two cores: `pytest -m slow tests/airflow -s` shows how long
each recovery took.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from partwise.serve.child import free_port
from tests.airflow.product import Product

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    found = Product(tmp_path_factory.mktemp("kills"), [free_port() for _ in range(3)])
    found.land("first", ("00", "x", 1), ("01", "x", 2), ("02", "x", 3))
    found.start()
    try:
        found.wait("the first parts of b", lambda: found.has("b", "01"), 600)
        yield found
    finally:
        found.stop()


def deliver(product: Product, minute: int) -> None:
    """Rows for a minute, and one of the next, which closes it."""
    product.land(f"m{minute:02d}", (f"{minute:02d}", "y", minute), (f"{minute + 1:02d}", "x", 1))


def test_late_rows_are_repaired_and_the_run_says_why(product: Product) -> None:
    before = product.total("b", "00")
    product.land("late", ("00", "z", 100))
    product.wait("late rows in b", lambda: product.total("b", "00") == before + 100)
    notes = [run["note"] for run in product.runs("a")]
    assert any(note and "late rows in m[2026-10-03T10:00]" in note for note in notes), notes


@pytest.mark.parametrize("component, minute", [("spark", 5), ("scheduler", 10), ("api-server", 15)])
def test_killed_in_the_middle_of_a_step(product: Product, component: str, minute: int) -> None:
    deliver(product, minute)
    product.wait("a step of a begins", lambda: product.holder("a"), every=0.05)
    product.kill(component)
    product.wait(f"b after kill -9 of {component}", lambda: product.has("b", f"{minute:02d}"), 300)


def test_the_triggerer_is_killed_while_somebody_waits(product: Product) -> None:
    conf = {"part": "2026-10-03T10:20"}
    run = product.api.post("/dags/pair/dagRuns", {"logical_date": None, "conf": conf})["dag_run_id"]

    def state(task: str) -> str | None:
        return product.api.get(f"/dags/pair/dagRuns/{run}/taskInstances/{task}")["state"]

    product.wait("the sensor waits", lambda: state("required_parts_exist") == "deferred")
    product.kill("triggerer")
    deliver(product, 20)
    product.wait("the sensor goes on", lambda: state("required_parts_exist") == "success")
    product.wait("the part that was asked for", lambda: product.has("pair", "20"))


def test_a_lost_event_is_made_good_by_the_reconciler(product: Product) -> None:
    """Events for a paused DAG are dropped."""
    product.api._call("PATCH", "/api/v2/dags/a", {"is_paused": True})
    deliver(product, 25)
    product.wait("the source part", lambda: product.has("m", "25"))
    product.wait("the announcement", lambda: any(run["state"] == "success" for run in product.runs("m")[:1]))
    product.api._call("PATCH", "/api/v2/dags/a", {"is_paused": False})
    product.wait("b after a lost event", lambda: product.has("b", "25"))


def test_a_changed_file_is_a_new_version_and_a_bad_one_an_import_error(product: Product) -> None:
    file = product.workspace / "view_defs" / "more.yaml"
    file.write_text("view: c\npart: 1 minute\nupdate: SELECT total FROM b[j]\n")
    assert product.wait("the new view's DAG", lambda: product.api.get("/dags/c")["dag_id"] == "c") < 60
    product.wait("parts of the new view", lambda: product.has("c", "01"))
    versions = product.api.get("/dags/c/dagVersions")["total_entries"]
    file.write_text("view: c\npart: 1 minute\nupdate: SELECT total + 1 AS total FROM b[j]\n")
    product.wait("a new version", lambda: product.api.get("/dags/c/dagVersions")["total_entries"] > versions)
    (product.workspace / "view_defs" / "bad.yaml").write_text("view: d\npart: 1 minute\nupdate: SELECT x FROM b[k]\n")

    def errors() -> str:
        return json.dumps(product.api.get("/importErrors")["import_errors"])

    product.wait("the import error", lambda: "view_defs/bad.yaml:3:" in errors())
    (product.workspace / "view_defs" / "bad.yaml").unlink()
    product.wait("no import error", lambda: "bad.yaml" not in errors())


def test_a_backfill_from_the_shell_is_carried_out_by_airflow(product: Product) -> None:
    done = product.partwise("backfill", "a", "2026-10-03T10:00..2026-10-03T10:01", "--yes", "--json")
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["state"] == "success", done.stdout + done.stderr
    assert last["report"][0] == {"table": "a", "recomputed": "2", "changed": "0", "left": "0"}


def test_nothing_is_wrong_in_the_end(product: Product) -> None:
    """Every part equals recomputation, and duplicates of runs did no harm."""

    def quiet() -> bool:
        ledger = product.ledger()
        try:
            return not ledger.plan(1e12).steps
        finally:
            ledger.database.close()

    product.wait("nothing is left to do", quiet)
    done = product.partwise("verify", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["different"] == []

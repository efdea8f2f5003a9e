"""The whole product loses its processes one after the other, and no data.

One product for all of them, about ten minutes in all on two cores: `pytest -m slow tests/airflow -s` shows how long
each recovery took.
"""

from __future__ import annotations

import pytest

from tests.airflow.product import Product

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.timeout(1800)]
#: Seconds, on a machine that is busy with other things; on a quiet one it is less than half of it.
RECOVERED = 120


def deliver(product: Product, minute: int) -> None:
    """Rows for a minute, and one of the next, which closes it."""
    product.land(f"m{minute:02d}", (f"{minute:02d}", "y", minute), (f"{minute + 1:02d}", "x", 1))


@pytest.mark.parametrize(
    "component, minute", [("spark", 5), ("scheduler", 10), ("api-server", 15), ("task", 20), ("postgres", 25)]
)
def test_killed_in_the_middle_of_a_step(product: Product, component: str, minute: int) -> None:
    deliver(product, minute)
    product.wait("a step of a begins", lambda: product.holder("a"), every=0.05)
    if component == "task":
        product.kill_holder("a")
    else:
        product.kill(component)
    product.wait(f"b after kill -9 of {component}", lambda: product.has("b", f"{minute:02d}"), RECOVERED)


def test_the_triggerer_is_killed_while_somebody_waits(product: Product) -> None:
    run = product.trigger("pair", {"part": "2026-10-03T10:30"})
    sensor = ("pair", run, "required_parts_exist")
    product.wait("the sensor waits", lambda: product.state(*sensor) == "deferred")
    product.kill("triggerer")
    deliver(product, 30)
    product.wait("the sensor after kill -9 of triggerer", lambda: product.state(*sensor) == "success", RECOVERED)
    product.wait("the part that was requested", lambda: product.has("pair", "30"), RECOVERED)


def test_the_dag_processor_is_killed_and_a_new_view_shows_all_the_same(product: Product) -> None:
    product.kill("dag-processor")
    (product.workspace / "view_defs" / "late.yaml").write_text(
        "view: c\npart: 1 minute\nupdate: SELECT total FROM b[j]\n"
    )
    product.wait(
        "its DAG after kill -9 of dag-processor", lambda: product.api.get("/dags/c")["dag_id"] == "c", RECOVERED
    )
    product.wait("its parts", lambda: product.has("c", "01"), RECOVERED)


def test_a_lost_event_is_made_good_by_the_reconciler(product: Product) -> None:
    """Events for a paused DAG are dropped."""
    product.api._call("PATCH", "/api/v2/dags/a", {"is_paused": True})
    deliver(product, 35)
    product.wait("the source part", lambda: product.has("m", "35"))
    product.wait("the announcement", lambda: any(run["state"] == "success" for run in product.runs("m")[:1]))
    product.api._call("PATCH", "/api/v2/dags/a", {"is_paused": False})
    product.wait("b after a lost event", lambda: product.has("b", "35"), RECOVERED)


def test_nothing_is_wrong_in_the_end(product: Product) -> None:
    """Duplicates of runs did no harm."""
    product.is_right()

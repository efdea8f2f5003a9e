"""Steps wait for a driver that is being started again."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from partwise.serve.supervise.child import free_port

pytestmark = pytest.mark.xdist_group("airflow")


def connection(monkeypatch: pytest.MonkeyPatch, kind: str, port: int) -> str:
    told = {"conn_type": kind, "host": "sc://127.0.0.1", "port": port}
    monkeypatch.setenv("AIRFLOW_CONN_SOME_DRIVER", json.dumps(told))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return "some_driver"


def test_it_goes_on_as_soon_as_the_driver_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    from partwise_airflow.driver import wait_for_driver

    port, up = free_port(), threading.Event()

    def start() -> None:
        time.sleep(0.7)
        with socket.create_server(("127.0.0.1", port)):
            up.wait(20)

    thread = threading.Thread(target=start)
    thread.start()
    began = time.monotonic()
    try:
        wait_for_driver(connection(monkeypatch, "spark_connect", port))
        assert 0.5 < time.monotonic() - began < 10
    finally:
        up.set()
        thread.join()


def test_its_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client then says what is wrong."""
    from partwise_airflow.driver import wait_for_driver

    wait_for_driver(connection(monkeypatch, "spark_connect", free_port()), seconds=0.2)


def test_other_connections_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from partwise_airflow import driver

    monkeypatch.setattr(driver, "answers", lambda *_, **__: pytest.fail("nobody is to be asked"))
    driver.wait_for_driver(connection(monkeypatch, "spark", free_port()))

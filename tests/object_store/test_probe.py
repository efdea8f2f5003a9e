"""What is missing is said in one sentence, before any work."""

from __future__ import annotations

import pytest

from partwise import object_store, storage
from partwise.damaged import damaged
from partwise.storage.probe import probe
from partwise.storage.remote import Bucket
from partwise.tables import Graph, Table
from tests.object_store.store import Lake
from tests.page.warehouse import Warehouse


def test_a_good_store_is_left_as_it_was(lake: Lake) -> None:
    lake.server.forget()
    probe(f"{lake.url}/warehouse")
    assert [line.split(" ")[0] for line in lake.server.requests()] == ["PUT", "PUT", "POST"]
    assert lake.names() == []


def test_a_folder_needs_no_probe() -> None:
    probe("/srv/warehouse")


def test_a_store_without_conditional_writes_is_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bucket, "create", lambda self, name, content: self.put(name, content) or True)
    with pytest.raises(storage.StoreProblem, match=r"ignores conditional writes \(If-None-Match\)"):
        probe(f"{lake.url}/warehouse")
    assert lake.names() == []


def test_a_missing_bucket_is_named(lake: Lake) -> None:
    object_store.remember(object_store.Store(lake.server.url), "s3://nowhere/x")
    with pytest.raises(storage.StoreProblem, match="there is no bucket nowhere; make it first"):
        probe("s3://nowhere/x")


def test_a_missing_key_is_named_without_asking_anybody(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    lake.server.forget()
    with pytest.raises(storage.StoreProblem, match="no access key was found; set AWS_ACCESS_KEY_ID and"):
        probe(f"{lake.url}/warehouse")
    assert lake.server.requests() == []


def test_keys_that_are_refused_are_named_with_their_origin(lake: Lake) -> None:
    lake.server.faults({"match": ".", "do": "refuse"})
    with pytest.raises(storage.StoreProblem, match=r"the key tester \(from AWS_ACCESS_KEY_ID\) may not do that"):
        probe(f"{lake.url}/warehouse")


def test_tables_are_not_looked_at_one_by_one_where_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Warehouse.of(Graph.of([Table("s", "source", 60, "f")]))
    made.deliver("s", {1: 1})
    object_store.remember(object_store.Store("http://127.0.0.1:9"), "s3://gone/x")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setattr("partwise.storage.remote._RETRY", {"max_retries": 0})
    monkeypatch.setattr("partwise.storage.damage.open_at", lambda *given: pytest.fail("nobody waits for a table"))
    with pytest.raises(storage.StoreProblem, match="the store does not answer"):
        damaged(made.ledger, "s3://gone/x")

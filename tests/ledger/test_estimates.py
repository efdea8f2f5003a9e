"""Coverage counts parts, each by the share of its probes, since the sample was defined."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partwise.ledger.ledger import Ledger
from partwise.ledger.records import estimates
from partwise.ledger.records.estimates import Coverage, EstimateCheck, checks_of, coverage, record
from partwise.tables import Graph, Table

CHECK = EstimateCheck(7, "rows", 10, 90.0, 100.0, 95.0, 105.0, 101.0, True, 0.05)


def found(ledger: Ledger) -> Coverage | None:
    with ledger.database.reading() as r:
        return coverage(r, "v", "v__sample")


def test_parts_count_and_not_probes(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = Table("v__sample", "view", 60, "f", helper_of="v")
    ledger.define(Graph.of((Table("v", "view", 60, "f"), sample)), 0.0)
    assert found(ledger) is None
    with ledger.database.writing(1.0) as w:
        record(w, "v", [CHECK, replace(CHECK, column="x", covered=False), replace(CHECK, part=8)])
        record(w, "other", [CHECK])
    assert found(ledger) == Coverage(0.75, 2)
    assert found(ledger).text() == "75.0 % of 2 checks"  # type: ignore[union-attr]
    # The same step again, after a crash: nothing is counted twice.
    with ledger.database.writing(2.0) as w:
        record(w, "v", [CHECK])
    assert found(ledger) == Coverage(0.75, 2)
    with ledger.database.writing(3.0) as w:
        record(w, "v", [replace(CHECK, seq=11)])
    with ledger.database.reading() as r:
        assert [(c.column, c.seq) for c in checks_of(r, "v", 7)] == [("rows", 11)]
    # The newest ones are kept.
    monkeypatch.setattr(estimates, "MOST", 1)
    monkeypatch.setattr(estimates, "_TOO_OLD", estimates._TOO_OLD.offset(None).offset(1))
    with ledger.database.writing(4.0) as w:
        record(w, "v", [replace(CHECK, seq=12, covered=False)])
    assert found(ledger) == Coverage(0.0, 1)


def test_another_sample_starts_again(ledger: Ledger) -> None:
    tables = [Table("v", "view", 60, "f"), Table("v__sample", "view", 60, "f", helper_of="v")]
    ledger.define(Graph.of(tables), 0.0)
    with ledger.database.reading() as r:
        seq = r.seq
    with ledger.database.writing(1.0) as w:
        record(w, "v", [replace(CHECK, seq=seq)])
    assert found(ledger) == Coverage(1.0, 1)
    ledger.define(Graph.of([tables[0], replace(tables[1], fingerprint="g")]), 2.0)
    assert found(ledger) is None


def test_low_coverage_is_told_from_a_hundred_parts_on() -> None:
    assert not Coverage(0.5, 99).is_low
    assert Coverage(0.89, 100).is_low
    assert not Coverage(0.9, 100).is_low

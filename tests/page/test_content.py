"""What the panel, the lineage, the tab and the preview say."""

from __future__ import annotations

import pytest

from partwise.ledger.records.writers import Writer
from partwise.page.ask import BadAsk, part_of, range_of, table_of, window
from partwise.page.changed import changed
from partwise.page.heat import heat
from partwise.page.lateness import lateness
from partwise.page.lineage import lineage
from partwise.page.part import details
from partwise.page.preview import preview
from partwise.page.states import LETTERS, STATES
from tests.page.test_cells import unpack
from tests.page.warehouse import MINUTE, TEN, every_state


def test_a_failed_part_tells_why_what_it_read_and_what_it_feeds() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        found = details(snapshot, snapshot.graph["by_minute"], MINUTE + 42)
    assert found.state == "failed"
    assert found.part == "2026-10-03T10:42"
    assert found.failure is not None
    assert found.failure.message == "2 of 3 rows have no src"
    assert "failed its checks" in found.why
    (check,) = found.checks
    assert (check.ok, check.outcome, check.rows) == (False, "failed", ('{"loss": 7}', '{"loss": 8}'))
    read = {item.table: item for item in found.computed_from}
    assert read["measurements"].changed == ("2026-10-03T10:42",)
    assert read["nodes"].whole
    assert {item.table: item.links for item in found.feeds} == {
        "final": ("2026-10-03T10:42",),
        "report": ("2026-10-03T10:42",),
    }


def test_the_lineage_of_a_part_looks_through_helpers_in_both_directions() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        worst = details(snapshot, snapshot.graph["worst"], MINUTE + 20)
        source = details(snapshot, snapshot.graph["measurements"], MINUTE + 20)
        helper = details(snapshot, snapshot.graph["worst_helper"], MINUTE + 20)
        hour = details(snapshot, snapshot.graph["by_hour"], TEN // 3600)
    (read,) = worst.upstream
    assert (read.table, read.through) == ("measurements", ("worst_helper",))
    assert (read.parts, read.links) == (tuple(worst.requires[0].parts), tuple(worst.requires[0].links))
    fed = {item.table: (item.through, item.links) for item in source.downstream}
    assert set(fed) == {"by_minute", "worst", "by_hour", "final"}
    assert fed["worst"][0] == ("worst_helper",)
    assert fed["worst"][1][0] == "2026-10-03T10:20"
    assert [(item.table, item.through) for item in helper.downstream] == [("worst", ())]
    assert [(item.table, len(item.links)) for item in hour.upstream] == [("measurements", 60)]


def test_a_part_of_a_leased_view_is_building_and_names_the_writer() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        found = details(snapshot, snapshot.graph["worst"], MINUTE + 45)
        assert (found.state, found.writer) == ("building", "a step")
        other = details(snapshot, snapshot.graph["worst"], MINUTE + 10)
        assert other.state == "fresh"


def test_the_panel_names_the_state_as_the_cell_does() -> None:
    made = every_state()
    seen = set()
    with made.snapshot() as snapshot:
        days = [row for row in heat(snapshot, TEN - 5 * 86400, TEN, 2000).rows if row.table == "revenue"]
        for row in [*heat(snapshot, TEN - 3600, TEN + 9000, 2000).rows, *days]:
            table = snapshot.graph[row.table]
            letters = unpack(row.cells)
            for at in (at for at in range(len(letters)) if at % 4 == 0 or letters[at] != letters[at - 1]):
                p = 0 if table.kind == "dimension" else row.first + at
                found = details(snapshot, table, p)
                assert found.state == STATES[LETTERS.index(letters[at])].word, (row.table, p, found.why)
                seen.add(found.state)
    assert seen == {state.word for state in STATES}


def test_the_sentence_says_which_zone_its_times_are_in() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        found = details(snapshot, snapshot.graph["by_minute"], MINUTE + 5)
        later = details(snapshot, snapshot.graph["by_minute"], MINUTE + 5000)
    assert found.why.endswith("changed last at 2026-09-30 11:55:00 UTC.")
    assert later.state == "none"
    assert "was never built" in later.why


def test_revisions_say_what_caused_them() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        found = details(snapshot, snapshot.graph["final"], MINUTE + 20)
        assert [line.revision for line in found.revisions] == [2, 1]
        # The answer names the newest of several causes.
        assert "2026-10-03T10:20" in found.revisions[0].reason
        assert changed(snapshot, snapshot.graph["final"], TEN + 6990.0).parts[0].part == "2026-10-03T10:24"


def test_a_revision_and_a_failure_name_the_task_that_wrote_them() -> None:
    made = every_state()
    made.written_by("by_minute", "asset_triggered__1")
    made.deliver("measurements", dict.fromkeys(range(MINUTE + 30, MINUTE + 33), 9))
    made.build("by_minute")
    made.written_by("partwise_backfill", "manual__1", "compute_1", 2)
    made.deliver("measurements", {MINUTE + 31: 10, MINUTE + 32: 10})
    made.fail("by_minute", MINUTE + 31)
    made.build("by_minute")
    with made.snapshot() as snapshot:
        by_minute = snapshot.graph["by_minute"]
        found = [details(snapshot, by_minute, MINUTE + p) for p in (5, 30, 31, 32)]
    run, backfill = (
        Writer("by_minute", "asset_triggered__1", "by_minute"),
        Writer("partwise_backfill", "manual__1", "compute_1", 2),
    )
    writers = [[line.writer for line in part.revisions] for part in found]
    assert writers == [[None], [run, None], [run, None], [backfill, run, None]], "the shell leaves no trace"
    assert found[2].failure is not None
    assert found[2].failure.writer == backfill


def test_without_helpers_their_views_read_what_they_read() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        folded, whole = lineage(snapshot), lineage(snapshot, helpers=True)
    assert ("measurements", "worst") in {(e.source, e.view) for e in folded.edges}
    assert "worst_helper" not in {node.table for node in folded.nodes}
    assert ("worst_helper", "worst") in {(e.source, e.view) for e in whole.edges}
    depth = {node.table: node.depth for node in whole.nodes}
    assert depth["measurements"] == 0
    assert depth["worst"] == 2
    states = {node.table: node.state for node in folded.nodes}
    assert (states["by_minute"], states["final"], states["report"]) == ("failed", "blocked", "manual")


def test_the_lateness_curve_is_of_rows_by_delay_after_the_end_of_their_part() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        found = lateness(snapshot.r, snapshot.graph["measurements"])
    shares = {delay.within: delay.rows for delay in found.curve if delay.rows}
    assert shares == {"on time": 339, "6 hours": 50}
    assert found.late == 50
    assert sum(delay.share for delay in found.curve if delay.share is not None) == pytest.approx(1)
    unseen = [delay.within for delay in found.curve if delay.share is None]
    assert unseen == ["1 day", "1 week", "longer"]  # the oldest part is less than six hours old


def test_a_preview_says_what_is_recomputed_and_what_may_follow() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        found = preview(snapshot, snapshot.graph["by_minute"], "2026-10-03T10:20..2026-10-03T10:22")
        assert [(line.table, line.count, line.why) for line in found.lines] == [
            ("by_minute", 3, "requested"),
            ("final", 3, "follows"),
            ("report", 3, "follows"),
        ]
        assert found.parts == 3
        assert found.seconds is not None
        alone = preview(snapshot, snapshot.graph["by_minute"], "2026-10-03T10:20", downstream=False)
        assert [line.table for line in alone.lines] == ["by_minute"]
        with pytest.raises(BadAsk, match="come from outside"):
            preview(snapshot, snapshot.graph["measurements"], "2026-10-03T10:20")
        with pytest.raises(BadAsk, match="future"):
            preview(snapshot, snapshot.graph["by_minute"], "2027-01-01T00:00")


def test_bad_questions_are_answered_with_a_sentence() -> None:
    made = every_state()
    graph = made.ledger.graph()
    with pytest.raises(BadAsk, match="Did you mean by_minute"):
        table_of(graph, "by_minit")
    assert table_of(graph, "BY_MINUTE").name == "by_minute"
    with pytest.raises(BadAsk, match="Which part"):
        part_of(graph["by_minute"], None)
    with pytest.raises(BadAsk, match="not a time"):
        part_of(graph["by_minute"], "yesterday")
    with pytest.raises(BadAsk, match="outside of the years"):
        part_of(graph["by_minute"], "#99999999999999999999")
    with pytest.raises(BadAsk, match="backwards"):
        range_of(graph["by_minute"], "2026-10-03T10:05..2026-10-03T10:00")
    with pytest.raises(BadAsk, match="before"):
        window(10, 10, 5)
    assert part_of(graph["nodes"], None) == 0

"""Breaks rules that exactness rests on, one at a time, and says which test notices.

    python tools/mutations.py            all of them, a few minutes
    python tools/mutations.py keys lease those whose names contain one of these words

Each runs in a copy of the tree. A rule that is broken without a test noticing is a hole in the tests: the exit code is 1
then. The tests named are the quickest ones that look at the rule; none of them needs Spark.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("partwise", "spark_jobs", "plugins", "dags", "tests", "tools", "view_defs", "docs", "landing")
FILES = ("pyproject.toml", "partwise.yaml", "README.md", "CHANGELOG.md", "Makefile")


class Mutation(NamedTuple):
    rule: str
    file: str
    old: str
    new: str
    tests: str


MUTATIONS = (
    # -- what would stop or surprise people
    Mutation(
        "the difference of two times is an interval, which no table holds",
        "partwise/sql/types/unstorable.py",
        'return "interval" if isinstance(tree, exp.Sub | exp.SafeSubtract) else None',
        "return None",
        "tests/definitions/test_refused_sql.py",
    ),
    Mutation(
        "NULL takes the type of the values that it stands beside",
        "partwise/sql/types/unstorable.py",
        'typed = {kind for kind in kinds if kind != "void"}',
        "typed = set(kinds)",
        "tests/definitions/test_refused_sql.py",
    ),
    Mutation(
        "parts that were handed out can be handed out again, but none behind them is left out",
        "partwise/plan/walk.py",
        "self._at = min(self._at, bisect_left(self._order, j))",
        "self._at = bisect_left(self._order, j)",
        "tests/plan",
    ),
    Mutation(
        "a compaction that is committed on the way goes on from its own version",
        "partwise/upkeep/compact.py",
        "handle = storage.open_at(handle.path, version)\n        return",
        "pass\n        return",
        "tests/upkeep/test_compact.py",
    ),
    # -- which helpers are the same
    Mutation(
        "a helper is told apart by the helpers that it reads",
        "partwise/compile/sharing/names.py",
        "called = {**names, helper.name.lower(): _ITSELF}",
        'called = {**dict.fromkeys(names, "other__"), helper.name.lower(): _ITSELF}',
        "tests/compile/test_shared_helpers.py",
    ),
    Mutation(
        "COUNT(m.*) is not COUNT(*)",
        "partwise/compile/sharing/text.py",
        'if after == "DOT" and then == "STAR":',
        "if False:",
        "tests/compile/test_shared_helpers.py",
    ),
    Mutation(
        "names inside a lambda stay as they are",
        "partwise/compile/sharing/text.py",
        '{"ARROW", "JOIN"}',
        '{"JOIN"}',
        "tests/compile/test_shared_helpers.py",
    ),
    Mutation(
        "sums that may fail are not kept along",
        "partwise/compile/window/aggregates.py",
        'safe = len(args) == 1 and (is_integer(kinds[0]) or kinds[0] in ("float", "double"))',
        "safe = len(args) == 1 and kinds[0] is not None",
        "tests/compile/test_shared_helpers.py",
    ),
    Mutation(
        "nobody joins a helper that has lost parts",
        "partwise/choose/settled.py",
        "if now.floor is not None:",
        "if False:",
        "tests/ledger/test_sharing.py",
    ),
    Mutation(
        "helpers that were built stay with their view",
        "partwise/choose/settled.py",
        "if _own_mark(chosen, view) == mark)",
        "if _own_mark(chosen, view) is None)",
        "tests/ledger/test_sharing.py",
    ),
    Mutation(
        "a shared helper stays with the views that it still serves",
        "partwise/ledger/records/strategies.py",
        "names = {*tables_of(now, view), *tables_of(then, view)}",
        "names = {*tables_of(now, view)} & {view, *tables_of(then, view)}",
        "tests/ledger/test_sharing.py",
    ),
    Mutation(
        "panes of no rows are still a row where nothing is grouped by",
        "partwise/compile/sharing/cover.py",
        "whole=not view.panes.keys and bool(other.panes.keys)",
        "whole=False",
        "tests/compile/test_covers.py",
    ),
    Mutation(
        "a condition on what is no key chooses among no groups",
        "partwise/compile/sharing/cover.py",
        "if not all(each.columns <= named.keys() for each in rest):",
        "if False:",
        "tests/compile/test_covers.py",
    ),
    Mutation(
        "rows that panes leave out are not found in them",
        "partwise/compile/sharing/cover.py",
        "if not all(each.text in conditions for each in other.where):",
        "if False:",
        "tests/compile/test_covers.py",
    ),
    Mutation(
        "what was built keeps its own panes",
        "partwise/choose/covering.py",
        "if is_new and own.name not in graph.tables:",
        "if True:",
        "tests/ledger/test_sharing.py",
    ),
    # -- queries of several views as one
    Mutation(
        "a group without rows of a view is not in its result",
        "partwise/compile/many_views/read.py",
        "if keys and condition is not None:",
        "if False:",
        "tests/compile/test_many_views.py",
    ),
    Mutation(
        "what may fail is not evaluated beside a condition",
        "partwise/compile/many_views/read.py",
        "self._check(argument, aggregates=False, may_fail=not guarded)",
        "self._check(argument, aggregates=False, may_fail=True)",
        "tests/compile/test_many_views.py",
    ),
    # -- what the relational tree says of a query
    Mutation(
        "keys of several parts hold together with the part",
        "partwise/relation/keys.py",
        '([] if one_part else ["part"])',
        "[]",
        "tests/relation/test_counter_examples.py",
    ),
    Mutation(
        "UNION ALL has no key",
        "partwise/relation/keys.py",
        'if node.kind == "union all":\n        return []',
        'if node.kind == "union all":\n        return kept',
        "tests/relation/test_counter_examples.py",
    ),
    Mutation(
        "a FULL JOIN by = has no key, since two rows can be NULL",
        "partwise/relation/keys.py",
        "or not all(e.null_safe for e in on)",
        "",
        "tests/relation/test_counter_examples.py",
    ),
    Mutation(
        "ROLLUP and the like have no key",
        "partwise/relation/keys.py",
        "return [] if node.sets else [frozenset",
        "return [frozenset",
        "tests/relation/test_counter_examples.py",
    ),
    Mutation(
        "a window carries only what partitions it",
        "partwise/relation/carried.py",
        "if all(e in over.by or refs(e) <= set(over.by) for _, over in node.items)",
        "if node.items",
        "tests/relation/test_counter_examples.py",
    ),
    Mutation(
        "a WITH query that is used twice carries what both uses carry",
        "partwise/relation/carried.py",
        "{name: one[name] & other[name] for name in one.keys() & other.keys()}",
        "one",
        "tests/relation/test_counter_examples.py",
    ),
    Mutation(
        "the side of a LEFT JOIN that may be NULL carries nothing",
        "partwise/relation/carried.py",
        "return [kept, _all_ways(kept, on)]",
        "return [kept, _all_ways(wants, on)]",
        "tests/relation/test_counter_examples.py",
    ),
    Mutation(
        "sums of doubles are not merged",
        "partwise/relation/delta.py",
        "if is_summed_exactly(kind):",
        "if True:",
        "tests/relation/test_counter_examples.py",
    ),
    Mutation(
        "a WITH query that is used twice is not merged",
        "partwise/relation/delta.py",
        "if (twice := _twice(tree)) is not None:",
        "if (twice := None) is not None:",
        "tests/relation/test_counter_examples.py",
    ),
    Mutation(
        "outer, semi and anti joins are not merged",
        "partwise/relation/delta.py",
        'if isinstance(node, Join) and node.kind != "inner":',
        'if isinstance(node, Join) and node.kind == "full":',
        "tests/relation/test_counter_examples.py",
    ),
    Mutation(
        "a negation takes rows back",
        "partwise/relation/update_class.py",
        'return _negated(inputs, "EXCEPT", "a row leaves when an equal one comes on the other side", at)',
        'return _met(inputs, "EXCEPT", at)',
        "tests/compile/test_update_class.py",
    ),
    # -- what is due, and when
    Mutation(
        "INITIALIZE feeds the first part, UPDATE every later one",
        "partwise/plan/reach.py",
        "_feeds(view.inputs, table, changed).within(start + 1, FOREVER)",
        "_feeds(view.inputs, table, changed).within(start + 2, FOREVER)",
        "tests/plan tests/simulation/test_counter_examples.py",
    ),
    Mutation(
        "a chain through a view's own parts is followed link by link",
        "partwise/plan/reach.py",
        "shortest = min((-r.hi.plus for r in references), default=FOREVER)",
        "shortest = 1",
        "tests/plan",
    ),
    Mutation(
        "a refresh policy fires at last",
        "partwise/plan/refresh.py",
        "if now - waiting.oldest >= policy.within:",
        "if now < waiting.oldest:",
        "tests/plan/test_refresh.py",
    ),
    Mutation(
        "a refresh by the clock waits for the next time after the change",
        "partwise/plan/refresh.py",
        "due = last >= waiting.oldest and (",
        "due = (",
        "tests/plan/test_refresh.py",
    ),
    Mutation(
        "without freshness who waits longest goes first",
        "partwise/plan/urgency.py",
        "return _URGENT, step.since + USUAL, step.since",
        "return _URGENT, USUAL - step.since, step.since",
        "tests/plan/test_urgency.py",
    ),
    # -- fresh answers
    Mutation(
        "a sample keeps the rows of a largest key that is NULL",
        "partwise/compile/sample/restrict.py",
        "x.{KEY}{n} <=> {text}",
        "x.{KEY}{n} = {text}",
        "tests/compile/test_sample_random.py",
    ),
    Mutation(
        "a sample reads earlier parts of its own only by its key",
        "partwise/compile/sample/restrict.py",
        'if any(plain(by.get(c, "")) != plain(c) for c in key):',
        "if not key:",
        "tests/fresh/test_own_parts.py",
    ),
    Mutation(
        "a sample that adds up its own past begins where its view begins",
        "partwise/ledger/write/sample_starts.py",
        "if helper.self_references and own != start:",
        "if start is None:",
        "tests/fresh/test_own_parts.py tests/simulation/test_samples.py",
    ),
    Mutation(
        "a key outside the sample that could outweigh it is refused",
        "partwise/estimate/interval.py",
        "MARGIN = 3.0",
        "MARGIN = 0.0",
        "tests/estimate/test_interval.py tests/estimate/test_coverage.py",
    ),
    Mutation(
        "sampled keys stand for 1 / ratio keys, and their squares for its square",
        "partwise/estimate/interval.py",
        "math.sqrt((1 - ratio) / ratio**2 * squares)",
        "math.sqrt((1 - ratio) / ratio * squares)",
        "tests/estimate/test_interval.py",
    ),
    Mutation(
        "few changed keys are believed only if the sample has no others",
        "partwise/fresh/few_keys.py",
        'raise NotAlike("other keys of the sample differ")',
        "return",
        "tests/fresh/test_few_keys.py",
    ),
    Mutation(
        "a joined row is exact if both of its rows are",
        "partwise/fresh/adding/pairs.py",
        'f"a.{EXACT} AND b.{EXACT} AS {EXACT}"',
        'f"a.{EXACT} OR b.{EXACT} AS {EXACT}"',
        "tests/fresh/test_joined.py",
    ),
    Mutation(
        "a giant of one side of a join is multiplied by rows of the other",
        "partwise/fresh/adding/pairs.py",
        "_times(one.rest, other.known), _times(one.known, other.rest))",
        "0.0)",
        "tests/fresh/test_joined.py",
    ),
    # -- the ledger
    Mutation(
        "one writer at a time has the lease",
        "partwise/ledger/write/leases.py",
        "if other is not None and expires > w.now and other != dead:",
        "if other is not None and other == dead:",
        "tests/ledger/test_steps.py tests/ledger/test_reports.py",
    ),
    Mutation(
        "a zombie's commit is refused by its fence",
        "partwise/ledger/write/leases.py",
        "if fence != held.fence:",
        "if fence < held.fence:",
        "tests/ledger/test_steps.py tests/ledger/test_reports.py tests/simulation/test_counter_examples.py",
    ),
    Mutation(
        "what was requested stays requested when late rows come",
        "partwise/ledger/runs.py",
        'return old.kind == "requested" or',
        "return",
        "tests/ledger/test_runs.py",
    ),
    Mutation(
        "a cause that came after the pin stays due",
        "partwise/ledger/runs.py",
        "if row.seq <= up_to]",
        "]",
        "tests/ledger/test_runs.py",
    ),
    Mutation(
        "the ledger's time grows with its sequence",
        "partwise/ledger/database.py",
        "CASE WHEN at < :now THEN :now ELSE at + 0.000001 END",
        ":now",
        "tests/ledger/test_one_time.py tests/ledger/test_moment.py",
    ),
    # -- dimensions that change forward
    Mutation(
        "a source part is born once",
        "partwise/ledger/write/commit.py",
        '"born": w.seq if known is None else known.born',
        '"born": w.seq',
        "tests/ledger/test_forward.py",
    ),
    Mutation(
        "what is being computed while another version begins to count is due again",
        "partwise/ledger/write/repin.py",
        " | parts_of_due(due_rows(w, view.name))",
        "",
        "tests/ledger/test_forward.py",
    ),
    Mutation(
        "the same of the first part of a view, of which nothing is on record",
        "partwise/ledger/write/commit.py",
        "if item.reference is None and repinned_since(",
        "if False and repinned_since(",
        "tests/ledger/test_forward.py",
    ),
    Mutation(
        "the version of the part that was born first is kept",
        "partwise/upkeep/versions.py",
        "known.number_for(min(borns, default=FOREVER))",
        "-1",
        "tests/ledger/test_forward.py",
    ),
    Mutation(
        "when a source part came to exist is not forgotten",
        "partwise/ledger/read/promise.py",
        "statement = _OLD_BUT_FIRST if read_first else _OLD_REVISIONS",
        "statement = _OLD_REVISIONS",
        "tests/ledger/test_forward.py",
    ),
    Mutation(
        "a window joins a forward dimension per part, not once per window",
        "partwise/compile/translated.py",
        "if by_part := _joined_by_part(answer, tables):",
        "if False and (by_part := _joined_by_part(answer, tables)):",
        "tests/definitions/test_forward.py",
    ),
    Mutation(
        "a stream that a LEFT JOIN may leave out is not joined with a forward dimension first",
        "partwise/compile/dimensions/forward.py",
        'if side not in ("", "INNER", "CROSS"):',
        "if False:",
        "tests/compile/test_forward_windows.py",
    ),
    Mutation(
        "what a dimension with valid_from changes while a step runs stays due",
        "partwise/ledger/write/commit.py",
        "times=entry.times, met=met)",
        "times=(), met=met)",
        "tests/ledger/test_validity.py",
    ),
    Mutation(
        "where nobody knows which times changed, all did",
        "partwise/ledger/write/due_painting.py",
        "[ALWAYS] if times is None else times",
        "[] if times is None else times",
        "tests/ledger/test_validity.py",
    ),
    Mutation(
        "a changed row concerns its time until the next row of its key",
        "partwise/sources/validity.py",
        "if then != now or now in key.touched:",
        "if now in key.touched:",
        "tests/sources/test_validity.py",
    ),
    Mutation(
        "a row is valid until the next one of its own key",
        "partwise/compile/dimensions/validity.py",
        "PARTITION BY {keys} ORDER BY",
        "ORDER BY",
        "tests/compile/test_validity.py",
    ),
    # -- Delta tables
    Mutation(
        "a staged file that was cut off is refused",
        "partwise/storage/table.py",
        "if staged.size != file.size:",
        "if staged.size > file.size:",
        "tests/storage/test_table.py",
    ),
    Mutation(
        "only live files are removed",
        "partwise/storage/table.py",
        "    if strange:\n",
        "    if not handle.path:\n",
        "tests/storage/test_table.py",
    ),
    Mutation(
        "the log decides a race of two commits",
        "partwise/storage/table.py",
        "if log.commit_info(taken).get(log.ATTEMPT) != attempt:",
        "if not attempt:",
        "tests/storage/test_table.py",
    ),
    # -- tables in an object store
    Mutation(
        "a staged file in a store is never overwritten",
        "partwise/storage/remote.py",
        "return self.create(name, content) or self.get(name) == content",
        "return self.put(name, content) is None",
        "tests/object_store/test_faults.py",
    ),
    Mutation(
        "a lost answer to a staged file is told from another file",
        "partwise/storage/remote.py",
        "return self.create(name, content) or self.get(name) == content",
        "return self.create(name, content)",
        "tests/object_store/test_faults.py",
    ),
    Mutation(
        "after a conflict the whole log is looked at",
        "partwise/storage/table.py",
        '            _latest.pop(handle.path, None)\n            raise Conflict(f"{handle.path}: version {handle.version} is',
        '            raise Conflict(f"{handle.path}: version {handle.version} is',
        "tests/object_store/test_tables.py",
    ),
    Mutation(
        "a store that does not answer says nothing about a table",
        "partwise/storage/damage.py",
        "        raise  # nobody knows what is there",
        "        return Damage(log='')",
        "tests/object_store/test_faults.py",
    ),
    # -- SQL
    Mutation(
        "a reference that is rounded down twice is rounded by the product",
        "partwise/sql/linear.py",
        "left.over * right.plus",
        "right.plus",
        "tests/sql",
    ),
    Mutation(
        "functions of the clock are refused",
        "partwise/sql/determinism.py",
        "if name in _CLOCK:",
        "if name in ():",
        "tests/definitions/test_problems.py",
    ),
    Mutation(
        "a subquery inside a join condition is not computed for many parts at once",
        "partwise/compile/many_parts/joins.py",
        'raise NotLiftable("a join condition contains a subquery that reads parts")',
        "pass",
        "tests/many_parts",
    ),
    Mutation(
        "each joined row of pairs comes about once",
        "partwise/compile/several/pairs.py",
        'older = [f"{pane(s, part)} < {pane(newest, part)}" for s in query.streams[:new]]',
        "older: list[str] = []",
        "tests/compile/test_several_random.py",
    ),
    Mutation(
        "pairs of many parts at once are near enough on both sides",
        "partwise/compile/several/pairs.py",
        "< {streams[a].panes(part)}",
        "<= {streams[a].panes(part)}",
        "tests/compile/test_several_random.py tests/compile/test_several_golden.py",
    ),
    Mutation(
        "small parts are recomputed, whatever a repair would save",
        "partwise/choose/repair.py",
        'return FIXED["recompute"] + SECONDS',
        'return FIXED["keys"] * 9 < SECONDS',
        "tests/choose",
    ),
    Mutation(
        "many parts of a long window are not small, however few rows a part has",
        "partwise/choose/repair.py",
        "is_small(figures.read + figures.spread, figures.result)",
        "is_small(figures.read, figures.result)",
        "tests/choose",
    ),
    # -- dimensions by keys
    Mutation(
        "a part that changes after keys were looked up counts",
        "partwise/ledger/records/dimension_changes.py",
        "known[met.by] = met.parts | Parts.single(*since)",
        "known[met.by] = met.parts",
        "tests/ledger/test_dimension_keys.py tests/simulation/test_keyed.py",
    ),
    Mutation(
        "rows of a dimension that is kept matter without a partner",
        "partwise/relation/joined.py",
        "if not (inner and self._cut(leaf, node.left",
        "if not (self._cut(leaf, node.left",
        "tests/relation",
    ),
    Mutation(
        "NULL that a join made meets NULL",
        "partwise/relation/joined.py",
        "if null_safe and may_be_absent:",
        "if False:",
        "tests/relation",
    ),
    Mutation(
        "a dimension that is read in an expression matters everywhere",
        "partwise/relation/joined.py",
        "if n not in joins.everywhere",
        "if True",
        "tests/relation",
    ),
    # -- many views in one job
    Mutation(
        "a job for several tables leaves out those that others write",
        "partwise/ledger/write/leases.py",
        "if dead(busy.holder):",
        "if True:",
        "tests/ledger/test_steps.py",
    ),
    Mutation(
        "a step whose definition changed has no pin in a job for several tables",
        "partwise/ledger/ledger.py",
        "now, wanted, mark, limit, facts=facts, looks=looks)",
        "now, wanted, None, limit, facts=facts, looks=looks)",
        "tests/ledger/test_steps.py",
    ),
    Mutation(
        "only views with a run that waits are computed along",
        "spark_jobs/airflow/company.py",
        " and not waiting.isdisjoint(graph[step.table].for_views)",
        "",
        "tests/announce/test_turns.py",
    ),
    Mutation(
        "a merge into another version than the one before is not adopted",
        "partwise/ledger/write/commit.py",
        "return self.base is None or self.base == version - 1",
        "return True",
        "tests/ledger/test_steps.py",
    ),
)


def main(words: list[str]) -> int:
    chosen = [m for m in MUTATIONS if not words or any(word in m.rule for word in words)]
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy"
        copy.mkdir()
        for name in COPIED:
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        for name in FILES:
            shutil.copy(ROOT / name, copy / name)
        for mutation in chosen:
            test = noticed_by(copy, mutation)
            print(f"{mutation.rule}\n    {test or 'NOBODY NOTICES'}", flush=True)
            if test is None:
                missed.append(mutation.rule)
    print(f"\n{len(chosen) - len(missed)} of {len(chosen)} broken rules are noticed.")
    return 1 if missed else 0


def noticed_by(copy: Path, mutation: Mutation) -> str | None:
    """The first test that fails with the rule broken; None if all pass."""
    file = copy / mutation.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.file}: {mutation.old!r} stands there {text.count(mutation.old)} times, not once")
    file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
        chosen = ["-m", "not spark and not airflow and not slow", *mutation.tests.split()]
        done = subprocess.run([*command, *chosen], cwd=copy, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{mutation.rule}: the tests do not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return failed[0].split()[1] if failed else None
    finally:
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Panes that hold more than a view needs: contents against brute force over random histories, and what must not be read."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from partwise.choose.covering import with_cover, with_covers
from partwise.compile import Choice, GeneratedView, InputTable, Translation, WindowShape
from partwise.compile.load import load_texts
from partwise.compile.program import Program, Runnable
from partwise.compile.sharing.cover import Cover
from partwise.sql.canonical import canonical_of
from partwise.sql.references import analyse
from partwise.tables import Graph
from tests.compile.duck import Duck, catch_up, repair

SOURCE = """\
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, h: string, n: int, x: bigint}
files: a.csv
"""
COLUMNS = {"g": "string", "h": "string", "n": "int", "x": "bigint"}
#: As SQL, and of a row; all but the last look at keys alone if these are there.
CONDITIONS = {
    "g = 'a'": lambda r: r["g"] == "a",
    "g = 'a' OR h IS NULL": lambda r: r["g"] == "a" or r["h"] is None,
    "h IN ('p', 'q')": lambda r: r["h"] in ("p", "q"),
    "n > 1": lambda r: r["n"] is not None and r["n"] > 1,
    "x > 0": lambda r: r["x"] is not None and r["x"] > 0,
}
KEYS = {
    **{name: (lambda r, name=name: r[name]) for name in ("g", "h", "n")},
    "COALESCE(g, h)": lambda r: r["h"] if r["g"] is None else r["g"],
}
AGGREGATES = {
    "SUM(x)": lambda xs: sum(xs) if xs else None,
    "COUNT(x)": len,
    "AVG(x)": lambda xs: Fraction(sum(xs), len(xs)) if xs else None,
    "MAX(x)": lambda xs: max(xs, default=None),
    "MIN(x)": lambda xs: min(xs, default=None),
}
Row = dict[str, Any]


@dataclass(frozen=True)
class Window:
    keys: tuple[str, ...]
    aggregate: str
    minutes: int
    part: int
    where: tuple[str, ...]

    def yaml(self, name: str, alias: bool, *lines: str) -> str:
        where = f" WHERE {' AND '.join(f'({each})' for each in self.where)}" if self.where else ""
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        alias = alias and not any("(" in key for key in self.keys)
        computed = {key: f"{key} AS k{at}" if "(" in key else key for at, key in enumerate(self.keys)}
        called = {key: f"q.{key} AS {key}{name}" if alias else computed[key] for key in self.keys}
        items = ", ".join([*called.values(), f"{self.aggregate} AS v"])
        group = group if not alias else f" GROUP BY {', '.join(f'q.{key}' for key in self.keys)}" if self.keys else ""
        query = f"SELECT {items} FROM m [WINDOW {self.minutes} minutes]{' q' if alias else ''}{where}{group}"
        return "\n".join(
            ["---", f"view: {name}", f"part: {self.part} minutes", "strategy: merge", *lines, f"query: {query}", ""]
        )

    def content(self, rows: list[tuple[int, Row]], j: int) -> Counter[tuple[Any, ...]]:
        """Of part j, from nothing but the rows of its minutes."""
        end = (j + 1) * self.part
        mine = [row for p, row in rows if end - self.minutes <= p < end and all(CONDITIONS[c](row) for c in self.where)]
        groups: dict[tuple[Any, ...], list[int]] = {} if self.keys else {(): []}
        for row in mine:
            found = groups.setdefault(tuple(KEYS[key](row) for key in self.keys), [])
            found += [row["x"]] if row["x"] is not None else []
        return Counter((*key, plain(AGGREGATES[self.aggregate](xs))) for key, xs in groups.items())


def plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else round(float(value), 9)


def window(rng: random.Random, family: str) -> Window:
    keys = rng.choice([(), ("g",), ("g", "h"), ("g", "h"), ("h",), ("h", "g", "n"), ("COALESCE(g, h)",)])
    part = rng.choice([1, 1, 2, 4])
    minutes = part * rng.choice([2, 3, 4])
    where = tuple(sorted(rng.sample(sorted(CONDITIONS), rng.choice([0, 0, 1, 2]))))
    aggregate = rng.choice(["SUM(x)", "COUNT(x)", "AVG(x)"]) if family == "sums" else family
    return Window(keys, aggregate, minutes, part, where)


def program(*views: str) -> Program:
    found = load_texts({"a.yaml": (SOURCE + "".join(views)).encode()})
    assert found.ok, found.problems
    return found


def generated(found: Program) -> tuple[GeneratedView, ...]:
    tables = [table for table in found.usable.values() if isinstance(table, Runnable)]
    ordered = sorted(tables, key=lambda table: table.helper_of is None)
    return tuple(GeneratedView(t.name, t.part, t.update.text, helper=t.helper_of is not None) for t in ordered)


def drawn(rng: random.Random) -> Row:
    return {
        "g": rng.choice(["a", "b", None]),
        "h": rng.choice(["p", "q", None]),
        "n": rng.choice([1, 2, None]),
        "x": rng.choice([None, -2, 0, 1, 5]),
    }


def compare(duck: Duck, views: dict[str, Window], rows: list[tuple[int, Row]], last: int) -> None:
    for name, view in views.items():
        first = -(-view.minutes // view.part) - 1
        whole = set(range(first, (last + 1) // view.part))
        assert duck.built[name] == whole, (name, view)
        for j in whole:
            found = Counter((*list(row.values())[:-1], plain(row["v"])) for row in duck.rows(name, j))
            assert found == view.content(rows, j), (name, view, j)


@pytest.mark.parametrize("seed", range(8))
def test_contents_are_those_of_the_rows(seed: int) -> None:
    rng = random.Random(seed)
    views = {f"v{at}": window(rng, rng.choice(["sums", "sums", "MAX(x)"])) for at in range(8)}
    views |= {"all": Window(("g", "h", "n"), "SUM(x)", 3, 1, ()), "none": Window((), "COUNT(x)", 2, 1, ("g = 'a'",))}
    found = program(*(view.yaml(name, rng.random() < 0.5) for name, view in views.items()))
    covered, new = with_covers(Graph.of(()), found)
    assert len(covered.helpers) <= len(found.helpers)
    for statement in (s for t in covered.usable.values() if isinstance(t, Runnable) for s in t.statements):
        again = analyse(statement.text, statement.index)
        assert (statement.found, statement.canonical) == (again.found, canonical_of(statement.text, again))
    last = 15
    rows = [(p, drawn(rng)) for p in range(last + 1) for _ in range(rng.choice((0, 0, 1, 4)))]
    duck = Duck(Translation(generated(covered), Choice("merge", "")), [InputTable("m", "source", 60, COLUMNS)])
    try:
        duck.insert("m", [{"part": p, **row} for p, row in rows])
        catch_up(duck, {"m": set(range(last + 1))})
        compare(duck, views, rows, last)
        for _ in range(2):
            late = (rng.randrange(last + 1), drawn(rng))
            rows.append(late)
            duck.insert("m", [{"part": late[0], **late[1]}])
            repair(duck, {("m", late[0])})
            compare(duck, views, rows, last)
    finally:
        duck.close()
    assert len(new) > 2, "hardly anything was covered"


BASE = Window(("g", "h"), "SUM(x)", 4, 1, ())
READ = {
    "finer groups": Window(("g",), "SUM(x)", 4, 1, ()),
    "of no key": Window((), "SUM(x)", 4, 1, ()),
    "keys in another order": Window(("h", "g"), "SUM(x)", 4, 1, ()),
    "a condition on a key": Window(("g", "h"), "AVG(x)", 6, 1, ("g = 'a'",)),
    "a condition on a key that is left out": Window(("g",), "COUNT(x)", 6, 1, ("h IN ('p', 'q')",)),
    "a condition on two of them": Window((), "SUM(x)", 2, 1, ("g = 'a' OR h IS NULL",)),
    "panes of a shorter time": Window(("g", "h"), "SUM(x)", 8, 2, ()),
    "a key that is computed from keys": Window(("COALESCE(g, h)",), "SUM(x)", 4, 1, ()),
    "all of it": Window(("g",), "COUNT(x)", 8, 4, ("g = 'a'", "h IN ('p', 'q')")),
}
NOT_READ = {
    "a condition on what is no key": Window(("g", "h"), "SUM(x)", 4, 1, ("x > 0",)),
    "another key": Window(("n",), "SUM(x)", 4, 1, ()),
    "another key beside these": Window(("g", "h", "n"), "SUM(x)", 4, 1, ()),
    "a key that is computed from others": Window(("COALESCE(g, n)",), "SUM(x)", 4, 1, ()),
    "another aggregate": Window(("g",), "MAX(x)", 4, 1, ()),
}


def reads(view: Window, *others: str, base: Window = BASE) -> Cover | None:
    _, new = with_covers(Graph.of(()), program(base.yaml("base", False), view.yaml("v", True), *others))
    return Cover.from_json(new["v"]) if "v" in new else None


@pytest.mark.parametrize("view", READ.values(), ids=READ.keys())
def test_what_covers(view: Window) -> None:
    assert reads(view) is not None


@pytest.mark.parametrize("view", READ.values(), ids=READ.keys())
def test_what_covers_whatever_its_keys_are_called(view: Window) -> None:
    _, new = with_covers(Graph.of(()), program(BASE.yaml("base", True), view.yaml("v", False)))
    assert set(new) <= {"base", "v"}
    assert new


@pytest.mark.parametrize("view", NOT_READ.values(), ids=NOT_READ.keys())
def test_what_does_not(view: Window) -> None:
    assert reads(view) is None


def test_rows_that_the_panes_leave_out_are_not_found_in_them() -> None:
    only = Window(("g", "h"), "SUM(x)", 4, 1, ("x > 0",))
    assert reads(Window(("g",), "SUM(x)", 4, 1, ()), base=only) is None
    assert reads(Window(("g",), "SUM(x)", 4, 1, ("x > 0",)), base=only) is not None
    assert reads(Window(("g",), "SUM(x)", 4, 1, ("x > 0", "h IN ('p', 'q')")), base=only) is not None


@pytest.mark.parametrize(
    ("base", "view"),
    [
        ("COUNT(DISTINCT x)", "COUNT(DISTINCT x)"),  # what is counted in two groups is counted twice
        ("AVG(y)", "AVG(DISTINCT y)"),
        ("PERCENTILE(x, 0.5)", "PERCENTILE(x, 0.5)"),
        ("APPROX_COUNT_DISTINCT(x)", "APPROX_COUNT_DISTINCT(x)"),
        ("COUNT(x)", "COUNT(*)"),  # rows whose x is NULL
        ("SUM(x)", "SUM(x) FILTER (WHERE h = 'p')"),
        ("SUM(x) FILTER (WHERE h = 'p')", "SUM(x)"),
        ("SUM(x), MAX(x)", "SUM(x)"),  # what the other one shows would make it due
        ("SUM(x)", "SUM(x), SUM(CAST(h AS INT))"),
    ],
)
def test_what_is_not_made_of_the_same_cells(base: str, view: str) -> None:
    text = "---\nview: {}\npart: 1 minute\nquery: SELECT {}, {} FROM m [WINDOW 4 minutes] GROUP BY {}\n"
    found = load_texts(
        {"a.yaml": (SOURCE + text.format("base", "g, h", base, "g, h") + text.format("v", "g", view, "g")).encode()}
    )
    assert not found.ok or "v" not in with_covers(Graph.of(()), found)[1]


def test_halves_are_not_the_whole() -> None:
    """`x > 0` and `x <= 0` leave out NULL; what is not `h = 'p'` leaves it out as well."""
    halves = [Window(("g", "h"), "SUM(x)", 4, 1, (each,)) for each in ("x > 0", "x <= 0", "NOT (h = 'p')")]
    texts = [half.yaml(f"half{at}", False) for at, half in enumerate(halves)]
    assert with_covers(Graph.of(()), program(*texts, READ["finer groups"].yaml("v", False)))[1] == {}


def test_panes_of_a_time_that_does_not_divide_are_not_read() -> None:
    assert reads(Window(("g",), "SUM(x)", 9, 3, ()), base=Window(("g", "h"), "SUM(x)", 8, 2, ())) is None
    assert reads(Window(("g",), "SUM(x)", 8, 1, ()), base=Window(("g", "h"), "SUM(x)", 8, 2, ())) is None


@pytest.mark.parametrize(
    "line", ["share: false", "engine: submit", "start: latest", "refresh: {every: 1 hour}", "partial: true"]
)
def test_what_keeps_a_view_by_itself(line: str) -> None:
    views = (BASE.yaml("base", False), READ["finer groups"].yaml("v", False, line))
    assert with_covers(Graph.of(()), program(*views))[1] == {}


@pytest.mark.parametrize("key", ["CAST(h AS INT)", "1 / n"])
def test_a_key_that_may_fail_is_not_taken_over(key: str) -> None:
    base = f"---\nview: base\npart: 1 minute\nstrategy: merge\nquery: SELECT g, {key} AS k, SUM(x) AS v FROM m [WINDOW 4 minutes] GROUP BY g, {key}\n"
    assert with_covers(Graph.of(()), program(base, READ["finer groups"].yaml("v", False)))[1] == {}


def test_what_is_covered_reads_it_without_the_other() -> None:
    """It is written down with all that makes it: the same helper, whoever else is there."""
    base, view = BASE.yaml("base", False), READ["all of it"].yaml("v", False)
    both, new = with_covers(Graph.of(()), program(base, view))
    from partwise.choose.covering import as_covered

    alone = program(view)
    alone = alone.with_covered(as_covered(alone, new))
    (name,) = alone.helpers
    assert list(both.helpers) == [name]
    assert alone.graph()["v"] == both.graph()["v"]
    mine, theirs = alone.graph()[name], both.graph()[name]
    assert (mine.fingerprint, mine.inputs, mine.length) == (theirs.fingerprint, theirs.inputs, theirs.length)
    assert (mine.serves, theirs.serves) == (("v",), ("base", "v"))
    changed = program(READ["all of it"].yaml("v", False).replace("8 minutes", "12 minutes"))
    assert as_covered(changed, new) == {}, "it means something else by now"


def test_by_counts_a_table_of_its_own_may_cost_less() -> None:
    shape = WindowShape("m", 5, 12, 1, False)
    own = Choice("merge", "")
    assert with_cover(own, shape, 5, 1000, 10, 50, True)[1]
    choice, reading = with_cover(own, shape, 5, 1_000_000, 10, 900_000, True)
    assert (choice, reading) == (own, False)
    small = Choice("recompute", "")
    assert with_cover(small, shape, 5, 1000, 10, 50, True)[0].strategy == "merge", "it is there anyway"
    assert with_cover(small, shape, 5, 1000, 10, None, False)[0] == small, "nobody pays for it"

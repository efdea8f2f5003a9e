"""The lifted text of each construct, as golden files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.compile.many_parts import NotLiftable, lift, spread, why_not
from partwise.parts import Bound, Reference
from tests.golden import Golden
from tests.many_parts.duck import Duck, translated
from tests.many_parts.queries import SPARK_REFUSES

LIFTED = [Golden(f"many_parts_{name}.txt") for name in ("selects", "joins")]
REFUSED = Golden("many_parts_refused.txt")


def shown(sql: str) -> str:
    try:
        lifted = lift(sql)
    except NotLiftable as why:
        return f"part by part: {why}\n"
    lines = [lifted.text, ""]
    for i in lifted.inputs:
        lines.append(f"{i.name} = {i.table}" + (f"{i.reference.text()}, part in {i.column}" if i.reference else ""))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("golden, name", [(golden, name) for golden in (*LIFTED, REFUSED) for name in golden.cases])
def test_constructs(golden: Golden, name: str) -> None:
    found = shown(golden.cases[name].strip())
    golden.check(name, found)
    assert found.startswith("part by part") == (golden is REFUSED)


@pytest.mark.parametrize("sql", SPARK_REFUSES)
def test_what_spark_would_refuse_is_not_lifted(sql: str) -> None:
    """`explain` says so; tests/many_parts/test_on_spark.py lifts what is next to it."""
    with pytest.raises(NotLiftable, match="GROUP"):
        lift(sql)


def test_explain_says_how_many_parts_are_computed(tmp_path: Path) -> None:
    from partwise.cli.views.explained import _many
    from partwise.compile.load import load
    from partwise.compile.program import Runnable

    (tmp_path / "a.yaml").write_text(
        "source: m\npart: 1 minute\ntime: t\ncolumns: {t: timestamp, g: string, x: bigint}\nfiles: landing/*.csv\n"
        "---\nview: a\npart: 1 minute\nupdate: SELECT g, MAX(x) AS x FROM m[j] GROUP BY g\n"
        "---\nview: b\npart: 1 minute\nupdate: SELECT g, FIRST(x) AS x FROM m[j] GROUP BY g\n"
        "---\nview: c\nshare: false\npart: 1 minute\nquery: SELECT g, COUNT(*) AS n FROM m PATTERN [a+] WHERE a.x > 1 GROUP BY g\n"
    )
    found = load(str(tmp_path)).usable
    said = {name: _many(view, name == "c__helper") for name, view in found.items() if isinstance(view, Runnable)}
    assert said == {
        "a": "in one query",
        "b": "one query for each part, because FIRST depends on the order of the rows",
        "c": "in one query",
        "c__helper": "in one pass over the groups",
    }
    assert why_not("SELECT 1 AS one") == "it reads no parts"


bounds = st.builds(Bound, st.integers(1, 4), st.integers(-7, 7), st.integers(1, 4))


@given(st.builds(Reference, bounds, bounds))
def test_rows_go_to_the_parts_that_need_them(reference: Reference) -> None:
    """The SQL says the same as Reference.requires, before 1970 as well."""
    way, parts, js = spread(reference), range(-40, 41), range(-6, 7)
    wanted = {(p, j) for j in js for p in range(reference.requires(j).lo, reference.requires(j).hi + 1) if p in parts}
    sql = f"SELECT part, {way.column('j')} FROM (SELECT CAST(id AS BIGINT) AS part FROM ids) WHERE {way.where}"
    duck = Duck()
    duck.on.execute(f"CREATE TABLE ids AS SELECT UNNEST(range({parts[0]}, {parts[-1] + 1})) AS id")
    found = duck.run(translated(sql))[1]
    assert {pair for pair in found if pair[1] in js} == wanted
    assert len(found) == len(set(found))

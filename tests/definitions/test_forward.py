"""`change: forward` on dimensions: what it means to the planner, what is refused, what is warned of."""

from __future__ import annotations

from partwise.compile.load import load_texts
from partwise.compile.program import Program

SOURCE = """\
source: m
part: 1 minute
time: t
columns: {t: timestamp, src: string, loss: bigint}
files: a.csv
---
dimension: rates
columns: {src: string, rate: bigint}
files: rates.csv
"""
FORWARD = SOURCE + "change: forward\n"
PRICED = "---\nview: v\npart: {part}\nupdate: SELECT m.src, m.loss * r.rate AS p FROM m{span} m JOIN rates r ON r.src = m.src\n"


def read(text: str) -> Program:
    return load_texts({"a.yaml": text.encode()})


def priced(part: str = "1 minute", span: str = "[j]") -> str:
    return PRICED.format(part=part, span=span)


def test_a_dimension_is_retroactive_unless_it_says_otherwise() -> None:
    usual, forward = read(SOURCE + priced()), read(FORWARD + priced())
    assert not usual.problems
    assert not forward.problems
    assert read(SOURCE + "change: retroactive\n" + priced()).graph() == usual.graph()
    assert not usual.graph().forward
    assert forward.graph().forward == {"rates"}
    assert forward.graph().bearing == {"v"}
    assert forward.graph()["v"].fingerprint == usual.graph()["v"].fingerprint, "switching makes no part stale"
    assert forward.graph()["rates"].fingerprint != usual.graph()["rates"].fingerprint


def test_another_word_is_refused() -> None:
    [problem] = read(SOURCE + "change: onward\n").problems
    assert problem.code == "wrong-value"
    assert "retroactive" in f"{problem.message} {problem.hint}"


def test_slowly_changing_dimensions_are_refused() -> None:
    [problem] = read(SOURCE + "valid_from: since\n").problems
    assert problem.code == "unknown-key"


def test_one_version_for_several_parts_is_warned_of() -> None:
    [problem] = read(FORWARD + priced("2 minutes", "[2*j..2*j+1]")).problems
    assert (problem.code, problem.severity) == ("forward-range", "warning")
    assert problem.message == "one version of rates counts for all parts m[2*j..2*j+1]"
    assert "view of its own" in problem.hint
    assert not read(SOURCE + priced("2 minutes", "[2*j..2*j+1]")).problems


def test_windows_and_patterns_refuse_a_forward_dimension_and_say_what_to_do() -> None:
    window = """---
view: w
part: 1 minute
query: |
  SELECT r.rate, COUNT(*) AS n FROM m [WINDOW 5 minutes] m
  JOIN rates r ON r.src = m.src GROUP BY r.rate
"""
    assert not read(SOURCE + window).problems
    [problem] = [p for p in read(FORWARD + window).problems if p.severity == "error"]
    assert (problem.code, problem.table) == ("forward-query", "w")
    assert "join rates in a view of its own" in problem.hint
    assert "w" not in read(FORWARD + window).usable
    several = window.replace("SELECT r.rate, COUNT(*) AS n", "SELECT r.rate, k.loss").replace(
        " GROUP BY r.rate", " JOIN m [WINDOW 3 minutes] k ON k.src = m.src"
    )
    assert [p.code for p in read(FORWARD + several).problems if p.severity == "error"] == ["forward-query"]

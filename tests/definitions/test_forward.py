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


def test_one_version_for_several_parts_is_warned_of() -> None:
    [problem] = read(FORWARD + priced("2 minutes", "[2*j..2*j+1]")).problems
    assert (problem.code, problem.severity) == ("forward-range", "warning")
    assert problem.message == "one version of rates counts for all parts m[2*j..2*j+1]"
    assert "view of its own" in problem.hint
    assert not read(SOURCE + priced("2 minutes", "[2*j..2*j+1]")).problems


WINDOW = """---
view: w
part: 1 minute
query: |
  SELECT r.rate, COUNT(*) AS n FROM m [WINDOW 5 minutes] m
  JOIN rates r ON r.src = m.src GROUP BY r.rate
"""


def test_windows_join_a_forward_dimension_in_a_helper_by_every_strategy() -> None:
    assert not read(SOURCE + WINDOW).problems
    assert not read(SOURCE + WINDOW).helpers.keys() & {"w__dated"}
    program = read(FORWARD + WINDOW)
    assert not program.problems
    assert {way.strategy for way in program.views["w"].alternatives} == {"recompute", "merge", "subtract"}
    for way in program.views["w"].alternatives:
        joined, *others = *way.helpers, way.table
        assert joined.name == "w__dated"
        assert "rates" in joined.inputs
        assert all("rates" not in other.inputs for other in others)
    assert program.graph().bearing == {"w__dated"}, "nothing else has to know when its parts were born"


def test_queries_that_cannot_be_joined_part_by_part_say_what_to_do() -> None:
    comma = WINDOW.replace("JOIN rates r ON r.src = m.src", ", rates r WHERE r.src = m.src").replace(
        "SELECT r.rate, COUNT(*) AS n", "SELECT DISTINCT r.rate"
    )
    [problem] = read(FORWARD + comma.replace(" GROUP BY r.rate", "")).problems
    assert (problem.code, problem.table, problem.line) == ("forward-query", "w", 16)
    assert "write JOIN rates r ON" in problem.hint

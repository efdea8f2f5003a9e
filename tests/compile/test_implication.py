"""Implication and contradiction say yes only where it is so, for all values and NULL."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from sqlglot import parse_one

from partwise.compile.pattern.implication import Atom, atoms, contradicts, implies, never_null

VALUES = (None, 0, 1, 1.5, 2, 3)
OPERATORS = (">", ">=", "<", "<=", "=", "<>")


@st.composite
def conditions(draw: st.DrawFn) -> str:
    left, right = (
        draw(st.sampled_from(["n.x", "n.y", "p.x"])),
        draw(st.sampled_from(["0", "1", "2", "1.5", "n.y", "p.x"])),
    )
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return f"{left} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if kind == 1:
        return f"{left} BETWEEN 1 AND {right}"
    text = f"{left} {draw(st.sampled_from(OPERATORS))} {right}"
    return f"NOT {text}" if kind == 2 else f"{right} {draw(st.sampled_from(OPERATORS))} {left}" if kind == 3 else text


def read(text: str) -> tuple[Atom, ...]:
    return atoms(parse_one(text, dialect="spark"), lambda tree: True)


def holds(text: str, row: dict[str, float | None]) -> bool:
    """By Python: a condition with NULL in it is not true, IS NULL aside."""
    words = text.split()
    if words[-1] == "NULL":
        return (row[words[0]] is None) == ("NOT" not in words)
    if any(name in text and row[name] is None for name in row):
        return False
    for name, value in row.items():
        text = text.replace(name, repr(value))
    if "BETWEEN" in text:
        left, _, low, _, high = text.split()
        return float(low) <= float(left) <= float(high)
    return bool(eval(text.replace("NOT", "not").replace("<>", "!=").replace(" = ", " == ")))


ROWS = [dict(zip(("n.x", "n.y", "p.x"), values, strict=True)) for values in product(VALUES, repeat=3)]


@given(st.lists(conditions(), min_size=1, max_size=2), conditions())
def test_implies(given_texts: list[str], wanted: str) -> None:
    if implies([atom for text in given_texts for atom in read(text)], read(wanted)):
        for row in ROWS:
            assert not all(holds(text, row) for text in given_texts) or holds(wanted, row), row


@given(conditions(), conditions())
def test_contradicts(some: str, other: str) -> None:
    if contradicts(read(some), read(other)):
        assert not any(holds(some, row) and holds(other, row) for row in ROWS)


@given(conditions())
def test_never_null(text: str) -> None:
    if never_null(read(text), "n.x"):
        assert not any(holds(text, row) for row in ROWS if row["n.x"] is None)


def test_what_must_be_seen() -> None:
    """Without these the helpers would be exact, but wide."""
    assert implies(read("n.x > 10"), read("n.x >= 5"))
    assert implies(read("n.x > p.x"), read("p.x <= n.x"))
    assert implies(read("n.x = 3"), read("n.x IS NOT NULL"))
    assert contradicts(read("n.x > 10"), read("n.x <= 10"))
    assert contradicts(read("n.x > p.x"), read("n.x < p.x"))
    assert contradicts(read("n.flag"), read("NOT n.flag"))
    assert not implies(read("n.x > 5"), read("n.x >= 6")), "not for numbers with a fraction"

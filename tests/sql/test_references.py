"""References in SQL: a golden file with each query, what was found in it, and the text after splicing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.parts import Bound, Reference
from partwise.sql import FoundReference, find, splice
from tests.golden import Golden

GOLDEN = Golden("references.txt")


def replacement(found: FoundReference) -> str:
    if found.reference is None:
        return found.written
    return f"(SELECT * FROM {found.table}_{found.reference.text()})"


def told(sql: str) -> str:
    found = find(sql)
    lines = [
        f"{t.table} {t.reference.text() if t.reference else '-'} alias={t.alias or '-'} written={t.written!r}"
        for t in found.tables
    ]
    lines += [f"{p.code}: {p.message}: {sql[p.start : p.end]!r}" for p in found.problems]
    return "\n".join([*lines, "", splice(sql, replacement)])


@pytest.mark.parametrize("name", GOLDEN.cases)
def test_found_and_spliced_as_expected(name: str) -> None:
    GOLDEN.check(name, told(GOLDEN.cases[name]))


@pytest.mark.parametrize("sql", GOLDEN.cases.values(), ids=GOLDEN.cases)
def test_nothing_but_references_changes(sql: str) -> None:
    assert splice(sql, lambda found: found.written) == sql
    mark = "\x00"
    aliases = {f" AS {quote}{t.table}{quote}" for t in find(sql).parts for quote in ("", "`")}
    spliced = splice(sql, lambda found: found.written if found.reference is None else mark)
    pieces = spliced.split(mark)
    at = 0
    for piece, table in zip(pieces, [*find(sql).parts, None], strict=True):
        for alias in aliases if at else ():
            if piece.startswith(alias) and not sql.startswith(alias, at):
                piece = piece.removeprefix(alias)
        assert sql.startswith(piece, at)
        at += len(piece) + (len(table.written) if table else 0)
    assert at == len(sql)


@pytest.mark.parametrize("sql", GOLDEN.cases.values(), ids=GOLDEN.cases)
def test_offsets_are_those_of_the_text(sql: str) -> None:
    found = find(sql)
    assert not found.problems
    assert found.parts
    for table in found.tables:
        assert sql[table.start : table.end] == table.written
        assert table.written.strip("`").startswith(table.table)


@pytest.mark.parametrize(
    "text, reference",
    [
        ("j", Reference.same()),
        ("j-1", Reference.same(-1)),
        ("j - 9 .. j", Reference.window(-9, 0)),
        ("j-9..j", Reference.window(-9, 0)),
        ("60*j..60*j+59", Reference(Bound(60), Bound(60, 59))),
        ("j*60 .. 59+j*60", Reference(Bound(60), Bound(60, 59))),
        ("j/60", Reference(Bound(1, 0, 60), Bound(1, 0, 60))),
        ("(j/5)/12", Reference(Bound(1, 0, 60), Bound(1, 0, 60))),
        ("(j+7)/5-2", Reference(Bound(1, -3, 5), Bound(1, -3, 5))),
        ("2*j-j", Reference.same()),
        ("-(1-j)", Reference.same(-1)),
        ("60*j/60", Reference.same()),
        ("((j))+7/2", Reference.same(3)),
        ("J", Reference.same()),
        ("j --c\n+1", Reference.same(1)),
    ],
)
def test_folding(text: str, reference: Reference) -> None:
    found = find(f"SELECT * FROM m[{text}]")
    assert not found.problems
    assert found.tables[0].reference == reference


@pytest.mark.parametrize(
    "text, place",
    [
        ("j*j", "j*j"), ("2*(j/3)", "2*(j/3)"), ("-j", "-j"), ("j%2", "%"), ("5", "5"), ("0..j", "0"), ("j..5", "5"),
        ("j-1.5", "1.5"), ("j/0", "j/0"), ("j/j", "j/j"), ("j/2+j/3", "j/2+j/3"), ("j..", "]"), ("", "]"), ("..j", ".."),
        ("j...j", "."), ("j..j..j", ".."), ("k", "k"), ("j+'a'", "'"), ("max(j)", "max"), ("j j", "j"), ("(j", "(j"),
        ("9999999999999999*j", "9999999999999999"), ("arr[j]", "arr"), ("m.j", "m"), ("j*0", "j*0"),
    ],
)  # fmt: skip
def test_what_is_not_linear_is_refused_at_its_place(text: str, place: str) -> None:
    sql = f"SELECT * FROM nodes, m[{text}]"
    found = find(sql)
    assert [p.code for p in found.problems] == ["not-linear"]
    at = found.problems[0]
    assert sql[at.start : at.end] == place
    assert at.start >= sql.index("m[")


@pytest.mark.parametrize("index, other", [("i", "j"), ("j", "i")])
def test_the_other_index_is_told(index: str, other: str) -> None:
    assert [p.code for p in find(f"SELECT * FROM m[{other}-1]", index).problems] == ["wrong-index"]
    assert not find(f"SELECT * FROM m[{index}-1]", index).problems


@given(st.data())
def test_folding_means_what_arithmetic_means(data: st.DataObject) -> None:
    """Random expressions: either refused, or equal to Python's own arithmetic with // for /."""
    number = st.integers(0, 30).map(str)
    expression = st.recursive(
        st.one_of(number, st.just("j")),
        lambda inner: st.builds("({}{}{})".format, inner, st.sampled_from("+-*/"), inner),
        max_leaves=6,
    )
    text = data.draw(expression)
    found = find(f"SELECT * FROM m[{text}]")
    if found.problems:
        return
    reference = found.tables[0].reference
    assert reference is not None
    for j in range(-20, 21):
        expected = eval(text.replace("/", "//"), {"j": j})
        assert reference.requires(j) == (expected, expected)


@given(st.text(alphabet="mj[]. (),'`\"-/*+0159 \nSELECTFROM;", max_size=60))
def test_any_text_is_answered(text: str) -> None:
    for sql in (text, f"SELECT * FROM m[{text}] x", f"SELECT {text} FROM m[j]"):
        found = find(sql)
        assert all(0 <= p.start <= len(sql) for p in found.problems)
        assert splice(sql, lambda t: t.written) == sql

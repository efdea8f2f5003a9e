"""Any bytes are answered with problems at places inside the file: thousands of mutated definitions, seeded."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from partwise.compile.load import load_texts
from partwise.compile.program import Program
from partwise.definitions import CODES
from partwise.definitions.problems import QUERY_CODES
from tests.definitions.test_problems import CASES, NOT_UTF_8

ROOT = Path(__file__).parents[2]
EXAMPLES = [path.read_bytes() for path in sorted((ROOT / "view_defs").glob("*.yaml"))]
SEEDS = [*EXAMPLES, NOT_UTF_8, *(golden.cases[name].encode() for golden, name in CASES)]
ROUNDS = int(os.environ.get("PARTWISE_FUZZ", "2400"))
SEED_NUMBERS = [int(number) for number in os.environ.get("PARTWISE_FUZZ_SEEDS", "1").split(",")]
WORDS = [
    "view",
    "source",
    "dimension",
    "part",
    "time",
    "columns",
    "files",
    "delta",
    "close",
    "late",
    "update",
    "initialize",
    "query",
    "start",
    "keep",
    "[j]",
    "[i]",
    "[j-1]",
    "[j..j+1]",
    "j",
    "1",
    "minute",
    "0",
    "-1",
    "null",
    "true",
    "~",
    "{}",
    "[]",
    "''",
    '"',
    "'",
    "`",
    "|",
    ">",
    "&",
    "*",
    "!",
    "---",
    "...",
    ":",
    "-",
    ",",
    "(",
    ")",
    ";",
    "--",
    "/*",
    "SELECT",
    "FROM",
    "WHERE",
    "measurements",
    "nodes",
    "é",
    "😀",
    "\\",
    "\t",
    "%TAG",
    "1e999",
    "0x10",
    ".inf",
    "{part}",
    "&a",
    "*a",
    "<<:",
    "?",
    "@",
]

NASTY = {
    "empty": b"",
    "nul": b"view: a\x00\n",
    "binary": bytes(range(256)) * 8,
    "utf-16": "view: a\npart: 60\n".encode("utf-16"),
    "latin-1": "view: é\n".encode("latin-1"),
    "flow nesting": b"view: " + b"[" * 50_000,
    "map nesting": b"view: " + b"{a: " * 20_000,
    "question nesting": b"? " * 20_000,
    "dash nesting": b"- " * 20_000,
    "indentation": b"".join(b" " * n + b"a:\n" for n in range(2_000)),
    "bomb": b"a: &a [x, x]\n"
    + b"".join(b"%c: &%c [*%c, *%c, *%c, *%c]\n" % (c, c, c - 1, c - 1, c - 1, c - 1) for c in range(98, 120)),
    "bomb in a view": b"view: v\ntags: &a [x, x, x, x, x, x, x, x, x]\n"
    + b"".join(b"k%d: &k%d [%s]\n" % (n, n, b", ".join([b"*k%d" % (n - 1) if n else b"*a"] * 9)) for n in range(12)),
    "alias to itself": b"view: &v [*v]\n",
    "unknown alias": b"view: *nobody\n",
    "tabs": b"view: a\n\tpart: 1\n",
    "many documents": b"---\n" * 5_000,
    "many views": b"---\nview: v\npart: 60\nupdate: SELECT 1 AS a\n" * 60,
    "long number": b"view: v\npart: " + b"9" * 6_000 + b"\n",
    "long name": b"view: " + b"v" * 100_000 + b"\n",
    "list of lists": b"[[1, 2], [3]]\n",
    "numbers as keys": b"1: 2\ntrue: 3\nnull: 4\n",
    "maps as keys": b"{a: 1}: b\n? [x]\n: y\n",
    "sql nesting": b"view: v\npart: 60\nupdate: SELECT " + b"(" * 3_000 + b"1" + b")" * 3_000 + b" AS a\n",
    "sql cases": b"view: v\npart: 60\nupdate: SELECT " + b"CASE WHEN a THEN " * 500 + b"1" + b" END" * 500 + b" AS a\n",
    "sql minus": b"view: v\npart: 60\nupdate: SELECT " + b"- " * 5_000 + b"1 AS a\n",
    "sql not": b"view: v\npart: 60\nupdate: SELECT " + b"NOT " * 5_000 + b"1 AS a\n",
    "sql unions": b"view: v\npart: 60\nupdate: " + b"SELECT 1 AS a UNION " * 2_000 + b"SELECT 2 AS a\n",
    "sql sum": b"view: v\npart: 60\nupdate: SELECT " + b"1 + " * 5_000 + b"1 AS a\n",
    "reference nesting": b"view: v\npart: 60\nupdate: SELECT a FROM v[" + b"(" * 3_000 + b"j" + b")" * 3_000 + b"]\n",
    "reference sum": b"view: v\npart: 60\nupdate: SELECT a FROM v[j" + b"+1" * 5_000 + b"]\n",
    "reference signs": b"view: v\npart: 60\nupdate: SELECT a FROM v[" + b"-" * 5_001 + b"j]\n",
    "carriage returns": b"view: v\rpart: 60\rupdate: SELEC\r",
    "other line ends": "view: v\u2028part: 60\u0085update: SELEC\n".encode(),
    "surrogate": b"view: \xed\xa0\x80\n",
    "escapes": b'view: "\\ud800"\n',
    "directives": b"%YAML 9.9\n%TAG ! x\n---\nview: a\n",
    "tag": b"!!python/object/apply:os.system ['true']\n",
    "only marks": b"---\n...\n---\n...\n",
    "types": b"source: s\npart: 60\ntime: t\ncolumns: {t: " + b"array<" * 5_000 + b"}\ndelta: x\n",
    "deep types": b"source: s\npart: 60\ntime: t\ncolumns: {t: '" + b"array<" * 2_000 + b"int" + b">" * 2_000 + b"'}\ndelta: x\n",
    "structs": b"source: s\npart: 60\ntime: t\ncolumns: {t: '" + b"struct<a:" * 900 + b"int" + b">" * 900 + b"'}\ndelta: x\n",
}  # fmt: skip


def examine(content: bytes, found: Program, what: str) -> None:
    lines = content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for problem in found.problems:
        assert problem.code != "internal", f"{what}: {problem}"
        assert problem.code in CODES or problem.code in QUERY_CODES, f"{what}: {problem}"
        assert problem.message, what
        assert 1 <= problem.line <= len(lines), f"{what}: {problem}"
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1, f"{what}: {problem}"
    graph = found.graph()
    assert len(graph.order) == len(found.usable), what


@pytest.mark.parametrize("name", NASTY)
def test_nasty_files(name: str) -> None:
    began = time.process_time()
    found = load_texts({"a.yaml": NASTY[name]})
    examine(NASTY[name], found, name)
    assert time.process_time() - began < 8


def mutants(seed: int) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(seed)
    for number in range(ROUNDS):
        content = chance.choice(SEEDS)
        for _ in range(chance.randint(1, 3)):
            content = mutate(content, chance)
        yield f"mutant {number} of seed {seed}", content


def mutate(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    place = chance.randrange(len(content) + 1)
    how = chance.randrange(9)
    if how == 0 and content:
        flipped = bytearray(content)
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        return bytes(flipped)
    if how == 1:
        del lines[at]
    elif how == 2:
        lines.insert(at, lines[other])
    elif how == 3:
        lines[at], lines[other] = lines[other], lines[at]
    elif how == 4:  # a key with another name
        key, colon, rest = lines[at].partition(b":")
        lines[at] = chance.choice(WORDS).encode() + colon + rest if colon else key
    elif how == 5:  # values change places
        one, two = lines[at].partition(b":"), lines[other].partition(b":")
        lines[at], lines[other] = b"".join((*one[:2], two[2])), b"".join((*two[:2], one[2]))
    elif how == 6:
        return content[:place]
    elif how == 7:
        return content[:place] + chance.choice(WORDS).encode() + content[place:]
    else:
        return content[:place] + content[place + chance.randint(1, 8) :]
    return b"\n".join(lines)


@pytest.mark.parametrize("seed", SEED_NUMBERS)
def test_mutated_definitions(seed: int) -> None:
    problems = 0
    for what, content in mutants(seed):
        try:
            found = load_texts({"a.yaml": content})
        except Exception as why:
            raise AssertionError(f"{what} raised {why!r} for {content!r}") from why
        examine(content, found, what)
        problems += len(found.problems)
    assert problems > ROUNDS  # the mutations do break things

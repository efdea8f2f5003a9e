"""References in the text of a query: `measurements[j-9..j] m`.

Found with sqlglot, which knows what is a table and what is a column (`arr[0]`), a string or a comment.
The brackets after a table's name are left out of the tokens, so that what remains is ordinary Spark SQL in
which every offset is still the offset in the original text. That text is what runs in the end, with nothing
changed but the references themselves: see `splice`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partwise.parts import Reference
from partwise.sql.linear import fold
from partwise.sql.parse import SqlProblem, SqlTree, parse, tokenise

if TYPE_CHECKING:
    from sqlglot import exp

    from partwise.sql.tokens import Token

#: The names an index can have: `i` in INITIALIZE, `j` in UPDATE.
INDEXES = ("i", "j")
#: Stored with every table: any query may name them.
PART_COLUMNS = frozenset(["part", "part_timestamp"])


@dataclass(frozen=True)
class FoundReference:
    """A table in FROM or JOIN: `table` as written, without quotes; offsets in the text, `end` excluded.

    `brackets` is what stands between [ and ], None without brackets. `reference` is what that means; it is
    None without brackets, and where they cannot be understood (then there is a problem, too).
    """

    table: str
    alias: str | None
    reference: Reference | None
    brackets: str | None
    start: int
    end: int
    written: str


@dataclass(frozen=True)
class FoundReferences:
    """All tables that a query reads, in order of appearance, and what is wrong with its text.

    `names_part`: it names the columns that are about storage, so that it sees them; `*` alone does not show them.
    """

    tables: tuple[FoundReference, ...] = ()
    problems: tuple[SqlProblem, ...] = ()
    index: str = "j"
    names_part: bool = False

    @property
    def parts(self) -> tuple[FoundReference, ...]:
        """Those with brackets: tables read part by part."""
        return tuple(t for t in self.tables if t.brackets is not None)

    @property
    def whole(self) -> tuple[FoundReference, ...]:
        """Those without brackets: dimensions."""
        return tuple(t for t in self.tables if t.brackets is None)


@dataclass(frozen=True)
class Analysis:
    """What was found, with sqlglot's tokens and tree (of the text without references) for further checks."""

    found: FoundReferences
    tokens: tuple[Token, ...] = ()
    tree: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class _Brackets:
    """`name[...]` as tokens: offset of the name's end, and of the brackets (`close` is that of the `]`)."""

    name_end: int
    open: int
    close: int


def find(sql: str, index: str = "j") -> FoundReferences:
    """Every table that the query reads. Never raises: see `FoundReferences.problems`."""
    return analyse(sql, index).found


def splice(
    sql: str, replace: Callable[[FoundReference], str], index: str = "j", found: FoundReferences | None = None
) -> str:
    """The text with each table replaced, and otherwise kept byte for byte.

    A table without an alias keeps its name as alias, so that `measurements.loss` still resolves.
    A replacement equal to what was written leaves it alone. `found` saves finding the tables again.
    """
    out: list[str] = []
    at = 0
    for table in (found or find(sql, index)).tables:
        new = replace(table)
        if new == table.written:
            continue
        out += [sql[at : table.start], new]
        if table.alias is None:
            out.append(f" AS {_own_name(table)}")
        at = table.end
    return "".join([*out, sql[at:]])


#: Words that Spark takes for the name of a table, but for an alias of one only in quotes.
_NO_ALIAS = frozenset(
    ["anti", "cross", "except", "full", "inner", "intersect", "join", "lateral", "left", "minus", "natural", "on", "right",
     "semi", "union", "using"]
)  # fmt: skip


def _own_name(table: FoundReference) -> str:
    name = table.table.rpartition(".")[2]
    plain = name.isidentifier() and name.isascii() and "`" not in table.written and name.lower() not in _NO_ALIAS
    return name if plain else f"`{name}`"


def analyse(sql: str, index: str = "j") -> Analysis:
    tokenised = tokenise(sql)
    if tokenised.problem:
        return Analysis(FoundReferences((), (tokenised.problem,), index))
    every = {b.name_end: b for b in _brackets(tokenised.tokens)}
    chosen = {end for end, b in every.items() if _looks_like_parts(sql, b, tokenised.tokens)}
    # A guess by neighbouring tokens, corrected by the tree: one round more is the most that is needed.
    for _ in range(4):
        tokens = _without(tokenised.tokens, [every[end] for end in chosen])
        tree = parse(sql, tokens)
        if tree.root is None:
            break
        ends = {_identifier_end(table) for table in _tables(tree.root)}
        right = {end for end in every if end in ends}
        if right == chosen:
            break
        chosen = right
    return _analysis(sql, index, tree, tokens, every, chosen)


def _analysis(
    sql: str, index: str, tree: SqlTree, tokens: tuple[Token, ...], every: dict[int, _Brackets], chosen: set[int]
) -> Analysis:
    if tree.root is None:
        return Analysis(FoundReferences((), tree.problems, index))
    tables: list[FoundReference] = []
    brackets = {end: every[end] for end in chosen}
    problems = [_range_of_column(b) for end, b in every.items() if end not in chosen and _is_range(sql, b)]
    for node in _tables(tree.root):
        if node.args.get("version") is not None or node.args.get("when") is not None:
            problems.append(_time_travel(_identifier_start(node), _identifier_end(node)))
        start, end = _identifier_start(node), _identifier_end(node)
        name = ".".join(part.name for part in node.parts)
        if brackets.get(end) is None and name.lower() in _ctes_in_reach(node):
            continue
        alias = node.alias or None
        if (at := brackets.get(end)) is None:
            tables.append(FoundReference(name, alias, None, None, start, end, sql[start:end]))
            continue
        inside = sql[at.open + 1 : at.close]
        meant = _reference(inside, at.open + 1, index)
        if isinstance(meant, SqlProblem):
            problems.append(meant)
        reference = meant if isinstance(meant, Reference) else None
        end = at.close + 1
        tables.append(FoundReference(name, alias, reference, inside, start, end, sql[start:end]))
    tables.sort(key=lambda t: t.start)
    found = FoundReferences(tuple(tables), tuple(problems), index, _names_part(tree.root, tokens))
    return Analysis(found, tokens, tree.root)


def _names_part(root: exp.Expr, tokens: tuple[Token, ...]) -> bool:
    """Whether a column is named so: not a table, an alias of one, or a word in a comment, a hint or a string."""
    from sqlglot import exp

    places = {t.start for t in tokens if t.token_type.name not in _TEXTS and t.text.lower() in PART_COLUMNS}
    if not places:
        return False
    for name in root.find_all(exp.Identifier):
        parent = name.parent
        qualifies = isinstance(parent, exp.Column) and name is not parent.this
        aliases = isinstance(parent, exp.TableAlias) and name is parent.this
        if "start" in name.meta and (qualifies or aliases or isinstance(parent, exp.Table)):
            places.discard(int(name.meta["start"]))
    return bool(places)


_TEXTS = frozenset(["STRING", "RAW_STRING", "HEX_STRING", "BYTE_STRING", "HINT"])


def _reference(inside: str, start: int, index: str) -> Reference | SqlProblem:
    found = fold(inside, start, index)
    other = next(name for name in INDEXES if name != index) if index in INDEXES else index
    if isinstance(found, SqlProblem) and not isinstance(fold(inside, start, other), SqlProblem):
        place = "INITIALIZE" if index == "i" else "UPDATE"
        message = f"the index in {place} is {index}, but [{inside.strip()}] uses {other}"
        return SqlProblem(start, "wrong-index", message, f"write {index} instead of {other}", end=start + len(inside))
    return found


def _time_travel(start: int, end: int) -> SqlProblem:
    message = "a table is read AS OF another version or time, but Partwise itself chooses the version that fits"
    return SqlProblem(start, "not-repeatable", message, "remove AS OF; earlier content is in earlier parts", end=end)


def _is_range(sql: str, brackets: _Brackets) -> bool:
    inside = sql[brackets.open + 1 : brackets.close]
    return ".." in inside and not any(quote in inside for quote in "'\"`")


def _range_of_column(brackets: _Brackets) -> SqlProblem:
    hint = "references follow a table's name in FROM or JOIN"
    return SqlProblem(brackets.open, "sql-syntax", "only tables have ranges of parts", hint, end=brackets.close + 1)


def _brackets(tokens: tuple[Token, ...]) -> Iterator[_Brackets]:
    """Every `name[...]`, whatever it means, outermost brackets only."""
    depth, opened, name_end = 0, 0, -1
    for at, token in enumerate(tokens):
        name = token.token_type.name
        if name == "L_BRACKET":
            if depth == 0:
                opened = token.start
                name_end = tokens[at - 1].end + 1 if at else -1
            depth += 1
        elif name == "R_BRACKET" and depth:
            depth -= 1
            if depth == 0 and name_end >= 0:
                yield _Brackets(name_end, opened, token.start)


def _looks_like_parts(sql: str, brackets: _Brackets, tokens: tuple[Token, ...]) -> bool:
    """A first guess: after FROM or JOIN; after a comma or parenthesis only with `..` or an index inside."""
    at = next(n for n, token in enumerate(tokens) if token.end + 1 == brackets.name_end)
    while at >= 2 and tokens[at - 1].token_type.name == "DOT":
        at -= 2
    before = tokens[at - 1].token_type.name if at else ""
    if before in ("FROM", "JOIN", "TABLE"):
        return True
    inside = sql[brackets.open + 1 : brackets.close]
    if before in ("COMMA", "L_PAREN"):
        return ".." in inside or not inside.strip() or any(name in inside.lower() for name in INDEXES)
    return False


def _without(tokens: tuple[Token, ...], brackets: list[_Brackets]) -> tuple[Token, ...]:
    spans = sorted((b.open, b.close) for b in brackets)
    out: list[Token] = []
    at = 0
    for token in tokens:
        while at < len(spans) and spans[at][1] < token.start:
            at += 1
        if at == len(spans) or token.start < spans[at][0]:
            out.append(token)
    return tuple(out)


def _tables(root: exp.Expr) -> list[exp.Table]:
    """Tables that are read: not those named in hints, nor functions like range(10)."""
    from sqlglot import exp

    return [
        table
        for table in root.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and "end" in table.this.meta and not table.find_ancestor(exp.Hint)
    ]


def _identifier_end(table: exp.Table) -> int:
    return int(table.this.meta["end"]) + 1


def _identifier_start(table: exp.Table) -> int:
    return min(int(part.meta.get("start", table.this.meta["start"])) for part in table.parts)


def _ctes_in_reach(table: exp.Table) -> set[str]:
    """Names of WITH queries that this table name could mean.

    A WITH query sees the ones before it, and itself only if the WITH is recursive.
    """
    from sqlglot import exp

    names: set[str] = set()
    inside: exp.Expr = table
    node = table.parent
    while node is not None:
        if isinstance(node, exp.With):
            for cte in node.expressions:
                if cte is inside and not node.args.get("recursive"):
                    break
                names.add(cte.alias.lower())
                if cte is inside:
                    break
        elif (defined := node.args.get("with_")) is not None and defined is not inside:
            names.update(cte.alias.lower() for cte in defined.expressions)
        inside, node = node, node.parent
    return names

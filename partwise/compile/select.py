"""GROUP BY, SELECT and HAVING: keys, aggregates, and expressions over both. The same for patterns and windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from partwise.compile.parse import Item, Query
from partwise.sql.calls import Call, calls
from partwise.sql.expressions import ColumnUse, columns, previous_problem, row_problems, spelled
from partwise.sql.operators import stands_alone
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.text import Piece, one_line, plain


@dataclass(frozen=True, slots=True)
class Key:
    """One GROUP BY expression, as SQL over the rows, and the name under which helpers keep it."""

    piece: Piece
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression over keys and aggregates: the text with the places of both."""

    piece: Piece
    calls: tuple[Call, ...]
    keys: tuple[tuple[int, int, Key], ...]
    inlined: tuple[tuple[int, int, Formula], ...] = ()

    def write(self, aggregate: Callable[[Call], str], key: Callable[[Key], str]) -> str:
        changes = [(call.start, call.end, aggregate(call)) for call in self.calls]
        changes += [(start, end, key(k)) for start, end, k in self.keys]
        changes += [(start, end, f"({f.write(aggregate, key)})") for start, end, f in self.inlined]
        return one_line(self.piece.splice(changes))

    def all_calls(self) -> list[Call]:
        return [*self.calls, *(call for _, _, f in self.inlined for call in f.all_calls())]


@dataclass(frozen=True, slots=True)
class SelectOutput:
    name: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class Selection:
    keys: tuple[Key, ...]
    outputs: tuple[SelectOutput, ...]
    having: Formula | None

    def all_calls(self) -> list[Call]:
        found = [call for output in self.outputs for call in output.formula.all_calls()]
        return found + (self.having.all_calls() if self.having else [])


def select(query: Query, qualifiers: Iterable[str], known: Iterable[str] | None) -> Selection:
    """`qualifiers` are table aliases, `known` the input's columns (None: unknown). Raises with every problem."""
    tables = list(qualifiers)
    problems: list[SqlProblem] = []
    keys = _keys(query, tables, known, problems)
    outputs: list[SelectOutput] = []
    for item in query.items:
        try:
            formula = _formula(item.body, keys, tables, {})
            name = item.alias or _default_name(item.body, formula, tables)
            _check_name(name, item, outputs)
            outputs.append(SelectOutput(name, formula))
        except TranslationError as error:
            problems += error.problems
    having: Formula | None = None
    if query.having is not None and not problems:
        try:
            aliases = {plain(output.name): output.formula for output in outputs}
            having = _formula(query.having, keys, tables, aliases)
        except TranslationError as error:
            problems += error.problems
    if problems:
        raise TranslationError(*problems)
    return Selection(tuple(keys), tuple(outputs), having)


def _keys(query: Query, tables: list[str], known: Iterable[str] | None, problems: list[SqlProblem]) -> list[Key]:
    columns_known = None if known is None else {plain(name) for name in known}
    keys: list[Key] = []
    for clause in query.group_by:
        written = clause.unwrapped() if len(clause.unwrapped().split()) == 1 else clause  # (a, b) is one value
        piece, name = written, None
        for at, item in enumerate(query.items, start=1):
            same = _same(_words(item.body.unwrapped(), tables), _words(written, tables))
            is_alias = item.alias is not None and plain(item.alias) == plain(written.text)
            hidden = columns_known is not None and plain(written.text) in columns_known
            if written.text == str(at) or (is_alias and not hidden) or same:
                piece, name = item.body.unwrapped(), item.alias
                break
        if written.text.isdigit() and piece is written:
            problems.append(SqlProblem(written.offset, "bad-group", f"there is no item {written.text} in SELECT"))
            continue
        try:
            if calls(piece):
                problems.append(SqlProblem(written.offset, "bad-group", "an aggregate cannot be grouped by"))
                continue
            problems += row_problems(piece, "GROUP BY")
            previous = previous_problem(piece)
            if previous is not None:
                problems.append(previous)
            column = _column(piece, tables)
        except TranslationError as error:
            problems += error.problems
            continue
        name = name or (column.name if column is not None else f"key_{len(keys) + 1}")
        if not any(_same(_words(key.piece, tables), _words(piece, tables)) for key in keys):
            # What is called like the columns that every table has would be taken for those of the helper itself.
            taken = {*_OF_EVERY_TABLE, *(plain(key.name) for key in keys)}
            name = name if plain(name) not in taken else Names(taken).new(f"key_{len(keys) + 1}")
            keys.append(Key(piece, name, spelled(piece, tables)))
    return keys


_OF_EVERY_TABLE = ("part", "part_timestamp")


def _formula(piece: Piece, keys: list[Key], tables: list[str], aliases: dict[str, Formula]) -> Formula:
    found = calls(piece)
    places = _key_places(piece, keys, found, tables)
    covered = [(call.start, call.end) for call in found] + [(start, end) for start, end, _ in places]
    loose = [use for use in columns(piece, tables) if not any(a <= use.start < b for a, b in covered)]
    inlined = [
        (use.start, use.end, aliases[use.name]) for use in loose if use.qualifier is None and use.name in aliases
    ]
    named = {start for start, _, _ in inlined}
    previous = previous_problem(piece)
    if previous is not None:
        raise TranslationError(previous)
    problems = [
        SqlProblem(use.start, "not-grouped", f"{use.written} is neither in GROUP BY nor inside an aggregate",
                f"group by it, or write for example MAX({use.written})")
        for use in loose if use.start not in named
    ]  # fmt: skip
    outside = piece.splice((call.start, call.end, "1".ljust(call.end - call.start)) for call in found)
    problems += row_problems(Piece(outside, piece.offset), "SELECT or HAVING")
    if problems:
        raise TranslationError(*problems)
    return Formula(piece, tuple(found), tuple(places), tuple(inlined))


def aggregated(piece: Piece, qualifiers: Iterable[str]) -> list[ColumnUse]:
    """Columns inside aggregates; others are keys or names of the SELECT list."""
    spans = [(call.start, call.end) for call in calls(piece)]
    return [use for use in columns(piece, qualifiers) if any(a <= use.start < b for a, b in spans)]


def _key_places(piece: Piece, keys: list[Key], found: list[Call], tables: list[str]) -> list[tuple[int, int, Key]]:
    """Where a key stands in an expression, longest keys first, outside aggregates."""
    taken = [(call.start, call.end) for call in found]
    places: list[tuple[int, int, Key]] = []
    words, uses = _words(piece, tables), columns(piece, tables)
    for key in sorted(keys, key=lambda k: -len(k.piece.tokens)):
        wanted = _words(key.piece, tables)
        column = _column(key.piece, tables)
        if column is not None:
            # Only where it is a column: the same word may be a type or a unit, DATE '2026-01-01', INTERVAL 1 day.
            same = [u for u in uses if u.name == column.name and _same_table(u.qualifier, column.qualifier)]
            spans = [(u.start, u.end) for u in same if not any(a <= u.start < b for a, b in taken)]
            places += [(start, end, key) for start, end in spans]
            taken += spans
            continue
        for at in range(len(words) - len(wanted) + 1):
            span = words[at : at + len(wanted)]
            start, end = span[0].start, span[-1].end
            if not _same(span, wanted) or any(a < end and start < b for a, b in taken):
                continue
            if stands_alone(piece, key.piece, start, end):
                places.append((start, end, key))
                taken.append((start, end))
    return places


def _column(piece: Piece, tables: list[str]) -> ColumnUse | None:
    """The column that the whole piece is."""
    uses = columns(piece, tables)
    whole = len(uses) == 1 and (uses[0].start, uses[0].end) == (piece.offset, piece.offset + len(piece.text))
    return uses[0] if whole else None


@dataclass(frozen=True, slots=True)
class _Word:
    """A token, or a column together with the table before it."""

    text: str
    table: str | None
    start: int
    end: int


def _words(piece: Piece, tables: list[str]) -> list[_Word]:
    found: list[_Word] = []
    tokens = list(piece.tokens)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        follows_dot = at > 0 and tokens[at - 1].text == "."
        if plain(token.text) in tables and not follows_dot and at + 2 < len(tokens) and tokens[at + 1].text == ".":
            column = tokens[at + 2]
            found.append(_Word(plain(column.text), plain(token.text), token.start, column.end))
            at += 3
        else:
            text = token.text if token.text[0] in "'\"" else plain(token.text)
            found.append(_Word(text, None, token.start, token.end))
            at += 1
    return found


def _same(some: list[_Word], others: list[_Word]) -> bool:
    """`m.src` and `src` are the same column; `m.node` and `n.node` are not."""
    return len(some) == len(others) and all(
        a.text == b.text and _same_table(a.table, b.table) for a, b in zip(some, others, strict=True)
    )


def _same_table(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _default_name(whole_body: Piece, formula: Formula, tables: list[str]) -> str:
    body = whole_body.unwrapped()
    whole = (body.offset, body.offset + len(body.text))
    column = _column(body, tables)
    if column is not None:
        return column.name
    if len(formula.keys) == 1 and formula.keys[0][:2] == whole:
        return formula.keys[0][2].name
    if len(formula.calls) == 1 and (formula.calls[0].start, formula.calls[0].end) == whole:
        call = formula.calls[0]
        words = [plain(t.text) for arg in call.args for t in arg.tokens if t.word]
        return "_".join([call.name, *words]) if len(words) <= 2 else call.name
    raise TranslationError(
        SqlProblem(body.offset, "unnamed-column", f"'{body.text}' has no name", "give it one: ... AS name")
    )


def _check_name(name: str, item: Item, outputs: list[SelectOutput]) -> None:
    if any(plain(output.name) == plain(name) for output in outputs):
        raise TranslationError(
            SqlProblem(
                item.body.offset,
                "duplicate-column",
                f"two columns are called {name}",
                "give one of them another name with AS",
            )
        )
    if plain(name) in _OF_EVERY_TABLE:
        raise TranslationError(
            SqlProblem(
                item.body.offset,
                "reserved-name",
                f"every table has a column {plain(name)} already",
                "give it another name with AS",
            )
        )


class Names:
    """Column names that are not taken yet, ignoring case."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {plain(name) for name in taken}

    def new(self, wish: str) -> str:
        name, at = wish, 2
        while plain(name) in self._taken:
            name, at = f"{wish}_{at}", at + 1
        self._taken.add(plain(name))
        return name

"""What a pattern query means, word for word: all suffixes, all ways to assign rows to variables."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

Row = dict[str, Any]
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
}


#: HAVING on the number of rows: text and meaning.
Having = tuple[str, Callable[[int], bool]] | None


#: GROUP BY: the text, the name of the column, and its value in a row.
Key = tuple[str, str, Callable[[Row], Any]] | None
KEYS: list[Key] = [
    None, ("g", "g", lambda row: row["g"]), ("COALESCE(g, 'none')", "k", lambda row: "none" if row["g"] is None else row["g"]),
    ("z % 2", "k", lambda row: row["z"] % 2),
]  # fmt: skip
#: ORDER BY, beside the time of rows.
ORDERS = (None, "y", "z, y", "x + z")


def _both(a: Any, b: Any, value: Callable[[Any, Any], Any]) -> Any:
    return None if a is None or b is None else value(a, b)


#: What stands in aggregates and ORDER BY beside columns.
EXPRESSIONS: dict[str, Callable[[Row], Any]] = {
    "x + z": lambda row: _both(row["x"], row["z"], lambda a, b: a + b),
    "x * y": lambda row: _both(row["x"], row["y"], lambda a, b: a * b),
    "y - 1.5": lambda row: _both(row["y"], Decimal("1.5"), lambda a, b: a - b),
}


def value(text: str, row: Row) -> Any:
    return EXPRESSIONS[text](row) if text in EXPRESSIONS else row[text]


@dataclass(frozen=True)
class Test:
    """`left op right`: left is a column of the new row, right a constant, or (`previous`) a column of the row before."""

    __test__ = False  # not for pytest
    left: str
    op: str
    right: Any
    previous: bool = False

    def holds(self, row: Row, before: Row | None) -> bool:
        right = (before[self.right] if before else None) if self.previous else self.right
        return row[self.left] is not None and right is not None and _OPERATORS[self.op](row[self.left], right)

    def sql(self, variable: str, other: str | None) -> str:
        if not self.previous:
            return f"{variable}.{self.left} {self.op} {self.right}"
        right = f"PREV({variable}.{self.right})" if other is None else f"{other}.{self.right}"
        return f"{variable}.{self.left} {self.op} {right}"


@dataclass(frozen=True)
class Pattern:
    """`one`, `entry`, `again`: conditions of each variable on its rows, against the variable before, against PREV."""

    plus: tuple[bool, ...]
    one: tuple[tuple[Test, ...], ...]
    entry: tuple[tuple[Test, ...], ...]
    again: tuple[tuple[Test, ...], ...]
    aggregates: tuple[tuple[str, str, int | None, Test | None], ...]  # function, column, of this variable, FILTER
    gaps: str
    key: Key
    row_filter: Test | None
    having: Having
    order: str | None = None
    ratio: int = 1  # parts of the source in a part of the view

    names = "abcdefgh"

    def sql(self) -> str:
        names = self.names
        conditions = [t.sql(names[k], None) for k, tests in enumerate(self.one) for t in tests]
        conditions += [t.sql(names[k], names[k - 1]) for k, tests in enumerate(self.entry) for t in tests]
        conditions += [t.sql(names[k], None) for k, tests in enumerate(self.again) for t in tests]
        if self.row_filter:
            conditions.append(f"{self.row_filter.left} {self.row_filter.op} {self.row_filter.right}")
        items = [f"{self.key[0]} AS {self.key[1]}"] if self.key else []
        for at, (function, column, variable, kept) in enumerate(self.aggregates):
            of = "" if variable is None else f"{names[variable]}."
            where = f" FILTER (WHERE {of}{kept.left} {kept.op} {kept.right})" if kept else ""
            inside = f"{of}*" if column == "*" else re.sub("[xyz]", lambda name, of=of: of + name[0], column)  # type: ignore[misc]
            items.append(f"{function}({inside}){where} AS r{at}")
        variables = ", ".join(names[k] + ("+" if plus else "") for k, plus in enumerate(self.plus))
        text = f"SELECT {', '.join(items)} FROM s PATTERN [{variables}]"
        text += f" WHERE {' AND '.join(conditions)}" if conditions else ""
        text += f" GROUP BY {self.key[0]}" if self.key else ""
        text += f" HAVING {self.having[0]}" if self.having is not None else ""
        return text + (f" ORDER BY {self.order}" if self.order else "")

    # -- meaning -------------------------------------------------------------------------------------

    def assign(self, rows: list[Row], before: Row | None, state: int = 0) -> list[int] | None:
        """How many rows each variable takes, earlier ones as many as they can; None if there is no way."""
        if state == len(self.plus):
            return [] if not rows else None
        most = 0
        for at, row in enumerate(rows):
            last = rows[at - 1] if at else before
            tests = [t.holds(row, last) for t in self.one[state]]
            tests += [t.holds(row, last) for t in (self.entry[state] if at == 0 else self.again[state])]
            if not all(tests) or (at and not self.plus[state]):
                break
            most = at + 1
        for taken in range(most, 0, -1):
            rest = self.assign(rows[taken:], rows[taken - 1], state + 1)
            if rest is not None:
                return [taken, *rest]
        return None

    def match(self, rows: list[Row]) -> tuple[list[Row], list[int]] | None:
        """The longest run that ends at the newest row."""
        for start in range(len(rows)):
            found = self.assign(rows[start:], None)
            if found is not None:
                return rows[start:], found
        return None

    def report(self, history: dict[int, list[Row]], part: int, order: Callable[[Row], Any]) -> list[Row]:
        """What the view shows at this part, group by group."""
        groups: dict[Any, list[tuple[int, Row]]] = {}
        for p in range(part + 1):
            rows = self.rows(history, p)
            for row in sorted(rows, key=order):
                groups.setdefault(self.key[2](row) if self.key else None, []).append((p, row))
        shown = []
        for group, tagged in groups.items():
            if self.gaps == "break":
                present = {p for p, _ in tagged}
                first = part + 1
                while first - 1 in present:
                    first -= 1
                tagged = [(p, r) for p, r in tagged if p >= first]
            found = self.match([r for _, r in tagged])
            if found is None or (self.having is not None and not self.having[1](len(found[0]))):
                continue
            shown.append(({self.key[1]: group} if self.key else {}) | self._values(*found))
        return shown

    def rows(self, history: dict[int, list[Row]], part: int) -> list[Row]:
        """Of a part of the view, those that the conditions without a variable let through."""
        rows = [r for p in range(part * self.ratio, (part + 1) * self.ratio) for r in history.get(p, [])]
        return [r for r in rows if not self.row_filter or self.row_filter.holds(r, None)]

    def parts(self, history: dict[int, list[Row]]) -> range:
        """Of the view: those whose source parts are all there."""
        return range((max(history) + 1) // self.ratio)

    def most(self, history: dict[int, list[Row]], part: int) -> int:
        """Rows of the largest group."""
        groups = Counter(self.key[2](row) if self.key else None for row in self.rows(history, part))
        return max(groups.values(), default=0)

    def is_unique(self, history: dict[int, list[Row]], part: int) -> bool:
        """No NULL in the key, which is a column, and no two rows alike."""
        is_column = self.key is not None and self.key[0] == "g"
        return (
            is_column and None not in {row["g"] for row in self.rows(history, part)} and self.most(history, part) <= 1
        )

    def _values(self, run: list[Row], lengths: list[int]) -> Row:
        out: Row = {}
        for at, (function, column, variable, kept) in enumerate(self.aggregates):
            rows = run
            if variable is not None:
                start = sum(lengths[:variable])
                rows = run[start : start + lengths[variable]]
            rows = [row for row in rows if kept is None or kept.holds(row, None)]
            out[f"r{at}"] = aggregate(function, column, rows)
        return out


def aggregate(function: str, column: str, rows: list[Row]) -> Any:
    if column == "*":
        return len(rows)
    values = [value(column, row) for row in rows]
    there = [v for v in values if v is not None]
    if function == "COUNT":
        return len(there)
    if function in ("FIRST", "LAST"):
        return values[0 if function == "FIRST" else -1]
    if not there:
        return None
    if function == "AVG":
        exact = Decimal(sum(there)) / len(there)
        return float(exact) if isinstance(there[0], int) else exact.quantize(Decimal("0.00001"), ROUND_HALF_UP)
    return {"SUM": sum, "MIN": min, "MAX": max}[function](there)


_HAVINGS: list[Having] = [
    None, None, None, ("COUNT(*) >= 2", lambda n: n >= 2), ("COUNT(*) >= 3", lambda n: n >= 3),
    ("(COUNT(*) > 3)OR(COUNT(*) < 2)", lambda n: n != 2 and n != 3),
]  # fmt: skip


def random_pattern(rng: random.Random, *, restricted: bool | None = None) -> Pattern:
    size = rng.choice([1, 2, 2, 2, 3, 3, 4])
    plus = tuple(rng.random() < 0.5 for _ in range(size))
    if restricted is None:
        restricted = rng.random() < 0.4
    shared = [_random_test(rng) for _ in range(2)]

    def tests(chance: float) -> tuple[Test, ...]:
        return tuple({rng.choice(shared) if rng.random() < 0.5 else _random_test(rng) for _ in range(rng.choice([0, 1, 1]))
                      if rng.random() < chance})  # fmt: skip

    pair = Test("x", rng.choice([">", ">=", "<", "="]), "x", True)

    def pairs(chance: float) -> tuple[Test, ...]:
        if rng.random() >= chance:
            return ()
        return (
            pair
            if rng.random() < 0.6
            else Test(rng.choice("xy"), rng.choice(["<", ">=", "<>"]), rng.choice("xy"), True),
        )

    one = tuple(tests(0.8) for _ in range(size))
    entry = tuple(pairs(0.3) if k else () for k in range(size))
    again = tuple(pairs(0.4) if plus[k] else () for k in range(size))
    aggregates: list[tuple[str, str, int | None, Test | None]] = []
    for _ in range(rng.randint(1, 3)):
        function = rng.choice(["COUNT", "SUM", "MIN", "MAX", "AVG", "FIRST", "LAST", "COUNT"])
        column = (
            "*" if function == "COUNT" and rng.random() < 0.6 else rng.choice(["x", "y", "x", "y", "x * y", "y - 1.5"])
        )
        variable = rng.randrange(size) if restricted and rng.random() < 0.7 else None
        kept = _random_test(rng) if function not in ("FIRST", "LAST") and column != "*" and rng.random() < 0.2 else None
        aggregates.append((function, column, variable, kept))
    return Pattern(
        plus, one, entry, again, tuple(aggregates), rng.choice(["break", "carry"]),
        rng.choice([KEYS[1], KEYS[1], KEYS[1], *KEYS]),
        Test("z", ">", 0) if rng.random() < 0.3 else None, rng.choice(_HAVINGS), rng.choice([None, None, *ORDERS]), rng.choice([1, 1, 1, 2]),
    )  # fmt: skip


def random_island(rng: random.Random) -> Pattern:
    """One condition for all variables, at least one plus, aggregates of the whole run."""
    pattern = random_pattern(rng, restricted=False)
    size, at = len(pattern.plus), rng.randrange(len(pattern.plus))
    tests = tuple(_random_test(rng) for _ in range(rng.choice([0, 1, 1, 1])))
    return replace(
        pattern,
        plus=tuple(plus or k in (at, size - 1) for k, plus in enumerate(pattern.plus)),
        one=(tests,) * size,
        entry=((),) * size,
        again=((),) * size,
        key=rng.choice(KEYS[1:]),
    )


def _random_test(rng: random.Random) -> Test:
    return Test(rng.choice("xxy"), rng.choice([">", ">=", "<", "<=", "<>"]), rng.choice([1, 2, 3]))


def random_history(rng: random.Random, parts: int, most: int) -> dict[int, list[Row]]:
    """Up to `most` rows per group and part, with NULL groups, NULL values and equal times."""
    history: dict[int, list[Row]] = {}
    counter = 0
    for part in range(parts):
        rows: list[Row] = []
        for group in ("p", "q", None):
            for _ in range(rng.choice([0, 1, 1, *range(1, most + 1)]) if most > 1 else rng.choice([0, 1, 1, 1])):
                counter += 1
                rows.append(random_row(rng, part, group, counter))
        history[part] = rows
    return history


def random_row(rng: random.Random, part: int, group: str | None, tie: int) -> Row:
    x = None if rng.random() < 0.08 else rng.randint(0, 4)
    y = None if rng.random() < 0.08 else Decimal(rng.randint(0, 8)) / 2
    ts = part * 60 + rng.randint(0, 3)
    return {"part": part, "g": group, "ts": ts, "tie": tie, "x": x, "y": y, "z": rng.choice([0, 1, 1, 1])}

"""What stands in the brackets of a reference, folded to bounds: floor((times * j + plus) / over).

A small reader of its own, for whole numbers, the index, + - * / and parentheses. `/` rounds down.
What does not fold is refused with its place: then nobody could say which parts a part feeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partwise.parts import Bound, Reference
from partwise.sql.parse import SqlProblem

_FORMS = "write it as a*j+b or (a*j+b)/c with whole numbers, for example m[j-1], m[j-9..j], m[60*j..60*j+59] or m[j/60]"
_MOST_DIGITS = 15


class NotLinear(Exception):
    """`message` for people, and the part of the text it is about."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start, self.end = start, end


@dataclass(frozen=True, slots=True)
class Symbol:
    """One piece of bracket text: a number, a name, an operator or `..`."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Line:
    """floor((times * j + plus) / over); times may be 0 (a number) or negative while folding."""

    times: int
    plus: int
    over: int = 1

    @property
    def number(self) -> bool:
        return self.times == 0


def fold(text: str, start: int, index: str) -> Reference | SqlProblem:
    """The reference written as `text`, which stands at `start` of the statement."""
    try:
        reader = _Reader(tuple(_symbols(text, start)), index, start + len(text))
        lo = reader.bound()
        hi = lo
        if reader.take(".."):
            hi = reader.bound()
        reader.finish()
        return Reference(lo, hi)
    except NotLinear as why:
        if text.split()[:1] and text.split()[0].upper() in ("WINDOW", "ROWS"):
            message = f"[{text.split()[0].upper()} ...] is translated, and update is plain SQL"
            return SqlProblem(
                start, "not-linear", message, "write the query under query: instead", end=start + len(text)
            )
        return SqlProblem(why.start, "not-linear", str(why), _FORMS.replace("j", index), end=why.end)


def _symbols(text: str, start: int) -> list[Symbol]:
    out: list[Symbol] = []
    at = 0
    while at < len(text):
        char = text[at]
        end = at + 1
        if char.isspace():
            at = end
            continue
        if text.startswith("/*", at):
            end = text.find("*/", at) + 2
            at = len(text) if end < 2 else end
            continue
        if text.startswith("--", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        if text.startswith("..", at):
            end = at + 2
        elif char.isalnum() or char == "_":
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
            # 1.5 is one thing, but 1..j is a range
            if text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit():
                end += 2
        out.append(Symbol(text[at:end], start + at))
        at = end
    return out


class _Reader:
    """Reads sums of products; one object per reference, because it keeps its place."""

    def __init__(self, symbols: Sequence[Symbol], index: str, end: int) -> None:
        self._symbols, self._index, self._end, self._at, self._depth = symbols, index, end, 0, 0

    def bound(self) -> Bound:
        start = self._here()
        line = self._sum()
        end = self._symbols[self._at - 1].end
        if line.times == 0:
            raise NotLinear(
                f"the part does not depend on {self._index}: every part would read the same one", start, end
            )
        if line.times < 0:
            raise NotLinear(f"the part must grow with {self._index}, not shrink", start, end)
        return Bound(line.times, line.plus, line.over)

    def take(self, *texts: str) -> Symbol | None:
        if self._at < len(self._symbols) and self._symbols[self._at].text in texts:
            self._at += 1
            return self._symbols[self._at - 1]
        return None

    def finish(self) -> None:
        if self._at < len(self._symbols):
            symbol = self._symbols[self._at]
            raise NotLinear(f"'{symbol.text}' is not understood in a reference", symbol.start, symbol.end)

    def _here(self) -> int:
        return self._symbols[self._at].start if self._at < len(self._symbols) else self._end

    def _sum(self) -> Line:
        start = self._here()
        line = self._product()
        while sign := self.take("+", "-"):
            line = self._add(line, self._product(), 1 if sign.text == "+" else -1, start)
        return line

    def _add(self, left: Line, right: Line, sign: int, start: int) -> Line:
        if right.number:
            return Line(left.times, left.plus + sign * right.plus * left.over, left.over)
        if left.number and sign > 0:
            return Line(right.times, right.plus + left.plus * right.over, right.over)
        if left.over == right.over == 1:
            return Line(left.times + sign * right.times, left.plus + sign * right.plus)
        raise NotLinear("only whole numbers can be added to something that is rounded down", start, self._done())

    def _product(self) -> Line:
        start = self._here()
        line = self._unary()
        while sign := self.take("*", "/"):
            right = self._unary()
            line = self._times(line, right, start) if sign.text == "*" else self._over(line, right, start)
        return line

    def _times(self, left: Line, right: Line, start: int) -> Line:
        if not left.number and not right.number:
            raise NotLinear(f"{self._index} may not be multiplied by itself", start, self._done())
        line, by = (left, right.plus) if right.number else (right, left.plus)
        if line.over != 1 and by != 1:
            raise NotLinear("what is rounded down cannot be multiplied afterwards", start, self._done())
        return Line(line.times * by, line.plus * by, line.over)

    def _over(self, left: Line, right: Line, start: int) -> Line:
        if not right.number or right.plus < 1:
            raise NotLinear("only division by a whole number of 1 or more is possible", start, self._done())
        if left.number:
            return Line(0, left.plus // right.plus)
        # floor(floor(x / c) / d) = floor(x / (c * d))
        return Line(left.times, left.plus, left.over * right.plus)

    def _unary(self) -> Line:
        start, negative = self._here(), False
        while sign := self.take("+", "-"):
            negative ^= sign.text == "-"
        line = self._atom()
        if not negative:
            return line
        if line.over != 1:
            raise NotLinear("what is rounded down cannot be negated", start, self._done())
        return Line(-line.times, -line.plus)

    def _atom(self) -> Line:
        if self._at >= len(self._symbols):
            raise NotLinear("something is missing here", self._end, self._end + 1)
        symbol = self._symbols[self._at]
        self._at += 1
        if symbol.text == "(":
            self._depth += 1
            if self._depth > 50:
                raise NotLinear("too many parentheses", symbol.start, symbol.end)
            line = self._sum()
            if not self.take(")"):
                raise NotLinear("')' is missing", symbol.start, self._here())
            self._depth -= 1
            return line
        if symbol.text.lower() == self._index:
            return Line(1, 0)
        if symbol.text.isascii() and symbol.text.isdigit() and len(symbol.text) <= _MOST_DIGITS:
            return Line(0, int(symbol.text))
        raise NotLinear(self._unknown(symbol), symbol.start, symbol.end)

    def _unknown(self, symbol: Symbol) -> str:
        text = symbol.text
        if text.isascii() and text.isdigit():
            return f"{text} is too large"
        if text in ("..", ")"):
            return f"something is missing before '{text}'"
        return f"'{text}' is neither {self._index} nor a whole number"

    def _done(self) -> int:
        return self._symbols[self._at - 1].end

"""Which operand an operator takes: whether an expression found in another one is a whole operand there."""

from __future__ import annotations

from partwise.sql.text import Piece, Token, wants_operand

#: How tightly operators bind in Spark SQL, loosest first. Those of one line are read from left to right.
_LEVELS = (
    ("OR",),
    ("AND",),
    ("NOT",),
    ("=", "==", "<>", "!=", "<", ">", "<=", ">=", "<=>", "IS", "LIKE", "ILIKE", "RLIKE", "IN", "BETWEEN"),
    ("|",),
    ("^",),
    ("&",),
    ("+", "-", "||"),
    ("*", "/", "%", "DIV"),
)
_LEVEL = {word: level for level, words in enumerate(_LEVELS, start=1) for word in words}
_COMPARISON, _TIGHTEST = _LEVEL["="], len(_LEVELS) + 1
#: What stands beside an operand and takes nothing away from it.
_BEFORE = ("(", ",", "CASE", "WHEN", "THEN", "ELSE", "[")
_AFTER = (")", ",", "WHEN", "THEN", "ELSE", "END", "AS", "]")


def stands_alone(piece: Piece, inner: Piece, start: int, end: int) -> bool:
    """Whether `inner`, found at start..end of `piece`, is an operand of its own: `a + b` is none in `a + b * c`."""
    tokens = piece.tokens
    first = next(k for k, t in enumerate(tokens) if t.start == start)
    last = next(k for k, t in enumerate(tokens) if t.end == end)
    after = tokens[last + 1] if last + 1 < len(tokens) else None
    left, right, level = _left(tokens, first), _right(after), _level(inner)
    if level == _TIGHTEST:
        calls = after is not None and after.text == "(" and inner.tokens[-1].word
        return not calls and not tokens[first].dotted
    if left == right == 0:
        return True
    if level <= _COMPARISON and any(t.keyword == "BETWEEN" for t in tokens):
        return False  # its AND is another one
    return left < level and right <= level


def _level(piece: Piece) -> int:
    """Of the loosest operator outside of parentheses; 0 where that cannot be said."""
    tokens = [t for t in piece.tokens if t.depth == 0]
    is_case = tokens[0].keyword == "CASE" and tokens[-1].keyword == "END"
    if is_case and sum(t.keyword == "CASE" for t in tokens) == 1:
        return _TIGHTEST
    found = _TIGHTEST
    for before, token in zip((None, *tokens), tokens, strict=False):
        if token.keyword in _LEVEL and not (token.text == "-" and wants_operand(before)):
            found = min(found, _LEVEL[token.keyword])
        elif before is not None and token.word and before.keyword not in _LEVEL and before.text not in (".", ","):
            return 0  # two words in a row: a construct of its own
    return found


def _left(tokens: tuple[Token, ...], first: int) -> int:
    if first == 0 or tokens[first - 1].keyword in _BEFORE:
        return 0
    before = tokens[first - 1]
    unary = before.text in ("-", "+", "~") and wants_operand(tokens[first - 2] if first > 1 else None)
    return _TIGHTEST if unary else _LEVEL.get(before.keyword, _TIGHTEST)


def _right(after: Token | None) -> int:
    return 0 if after is None or after.keyword in _AFTER else _LEVEL.get(after.keyword, _TIGHTEST)

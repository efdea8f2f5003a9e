"""Keys: parts as the scheduler names them, `2026-10-03T10:05` or `2026-10-03T10:00..2026-10-03T12:00`.

A key is a hint. A run computes what is due and ready when it begins, so a key may cover parts that are fine.
"""

from __future__ import annotations

from collections.abc import Iterable

from partwise.parts import Parts, Range, parse_range, range_text

#: Keys of one view that are told at once. A thousand missing parts are a few runs, not a thousand.
MOST_KEYS = 3


def key_text(parts: Range, length: int) -> str:
    return range_text(parts, length)


def parse_key(text: str, length: int) -> Range:
    """Raises partwise.parts.BadTime."""
    return parse_range(text, length)


def keys_of(parts: Parts, length: int, most: int = MOST_KEYS) -> list[str]:
    return [key_text(span, length) for span in coalesced(parts, most)]


def coalesced(parts: Parts, most: int = MOST_KEYS) -> list[Range]:
    """At most so many ranges that cover all of these parts, joined where the gaps between them are shortest."""
    spans = list(parts.ranges)
    if len(spans) <= most:
        return spans
    gaps = sorted(range(1, len(spans)), key=lambda at: (spans[at - 1].hi - spans[at].lo, at))
    cuts = sorted(gaps[: most - 1])  # the widest gaps stay
    return [
        Range(spans[first].lo, spans[last - 1].hi) for first, last in zip([0, *cuts], [*cuts, len(spans)], strict=True)
    ]


def same_time(parts: Range, length: int, other: int) -> Range:
    """The parts of length `other` that cover the same time."""
    return Range(parts.lo * length // other, ((parts.hi + 1) * length - 1) // other)


def joined(texts: Iterable[str], most: int = 200) -> str:
    """Several reasons as one; a note that is copied to every event must stay short."""
    text = "; ".join(dict.fromkeys(texts))
    return text if len(text) <= most else f"{text[: most - 3]}..."

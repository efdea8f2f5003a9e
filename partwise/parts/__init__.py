"""The algebra of parts: lengths, ranges, references."""

from partwise.parts.length import (
    BadTime,
    duration_text,
    index,
    lasting,
    parse_moment,
    parse_part,
    parse_range,
    parse_span,
    part_text,
    range_text,
    seconds,
    span_text,
    start_of,
)
from partwise.parts.ranges import FOREVER, Parts, Range
from partwise.parts.references import Bound, Reference

__all__ = [
    "FOREVER",
    "BadTime",
    "Bound",
    "Parts",
    "Range",
    "Reference",
    "duration_text",
    "index",
    "lasting",
    "parse_moment",
    "parse_part",
    "parse_range",
    "parse_span",
    "part_text",
    "range_text",
    "seconds",
    "span_text",
    "start_of",
]

"""`tests/views/<view>.yaml` to test cases.

view: total_loss
test: late rows change what follows
given:
  measurements:
    2026-10-03T10:00: [{src: ams, loss: 1}]
  nodes: [{node: ams, region: north}]        # a dimension: all of its rows
late:                                        # optional: delivered after the first run
  measurements:
    2026-10-03T10:00: [{src: ams, loss: 2}]
expect:
  2026-10-03T10:00: [{src: ams, total: 3}]
held: [2026-10-03T10:01]                     # optional: parts that must fail their checks
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from partwise.compile.program import Program, ProgramTable, Runnable
from partwise.definitions import Dimension
from partwise.parts import BadTime, parse_part

Row = Mapping[str, Any]
#: Rows of a table by part; those of a dimension are at part 0.
Rows = Mapping[str, Mapping[int, Sequence[Row]]]

_KEYS = ("view", "test", "given", "late", "expect", "held")


class BadCase(Exception):
    """What is wrong with a test; the message is meant for people."""


@dataclass(frozen=True)
class Case:
    """One test of one view."""

    file: str
    view: str
    name: str
    given: Rows
    expect: Mapping[int, Sequence[Row]]
    late: Rows = field(default_factory=dict)
    held: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.view}: {self.name}"


def cases_in(file: Path, definitions: Program) -> list[Case]:
    """The tests of one file. Raises BadCase."""
    import yaml

    try:
        documents = [d for d in yaml.safe_load_all(file.read_text(encoding="utf-8")) if d is not None]
    except (yaml.YAMLError, UnicodeDecodeError) as why:
        raise BadCase(f"{file}: {' '.join(str(why).split())}") from None
    return [_case(file, number, raw, definitions) for number, raw in enumerate(documents, 1)]


def _case(file: Path, number: int, raw: Any, definitions: Program) -> Case:
    where = f"{file}, test {number}"
    if not isinstance(raw, dict):
        raise BadCase(f"{where}: expected a map with {', '.join(_KEYS)}")
    for key in raw:
        if key not in _KEYS:
            raise BadCase(f"{where}: {key} is not a key of a test; there are {', '.join(_KEYS)}")
    view = _table(where, str(raw.get("view", file.stem)), definitions)
    if not isinstance(view, Runnable):
        raise BadCase(f"{where}: {view.name} is not a view")
    if not isinstance(raw.get("given"), dict) or ("expect" not in raw and "held" not in raw):
        raise BadCase(f"{where}: a test needs given (rows by table and part) and expect (rows by part)")
    return Case(
        file=str(file),
        view=view.name,
        name=str(raw.get("test", f"test {number}")),
        given=dict(_tables(where, raw["given"], definitions)),
        late=dict(_tables(where, raw.get("late") or {}, definitions)),
        expect=_parts(where, raw.get("expect") or {}, view.part),
        held=tuple(_part(where, part, view.part) for part in raw.get("held") or ()),
    )


def _table(where: str, name: str, definitions: Program) -> ProgramTable:
    known = {d.name.lower(): d for d in definitions.usable.values()}
    if name.lower() not in known:
        names = ", ".join(sorted(d.name for d in known.values()))
        raise BadCase(f"{where}: there is no usable table {name}; there are {names}")
    return known[name.lower()]


def _tables(where: str, raw: Any, definitions: Program) -> Iterator[tuple[str, Mapping[int, Sequence[Row]]]]:
    if not isinstance(raw, dict):
        raise BadCase(f"{where}: rows are given by table: {{measurements: {{2026-10-03T10:00: [{{...}}]}}}}")
    for name, rows in raw.items():
        table = _table(where, str(name), definitions)
        if isinstance(table, Runnable):
            raise BadCase(f"{where}: rows can be given for sources and dimensions; {table.name} is a view")
        if isinstance(table, Dimension):
            found: Mapping[int, Sequence[Row]] = {0: _rows(where, rows)}
        else:
            found = _parts(where, rows, table.part)
        for row in (row for some in found.values() for row in some):
            for column in row:
                if table.columns and column not in table.columns:
                    raise BadCase(f"{where}: {table.name} has no column {column}; it has {', '.join(table.columns)}")
        yield table.name, found


def _parts(where: str, raw: Any, length: int) -> dict[int, Sequence[Row]]:
    if not isinstance(raw, dict):
        raise BadCase(f"{where}: expected rows by part, for example {{2026-10-03T10:00: [{{src: ams}}]}}")
    return {_part(where, part, length): _rows(where, rows) for part, rows in raw.items()}


def _part(where: str, raw: Any, length: int) -> int:
    """YAML reads some parts as times."""
    if isinstance(raw, datetime):
        raw = (raw.astimezone(UTC) if raw.tzinfo else raw).replace(tzinfo=None).isoformat()
    try:
        return parse_part(raw.isoformat() if isinstance(raw, date) else str(raw), length)
    except BadTime as why:
        raise BadCase(f"{where}: {why}") from None


def _rows(where: str, raw: Any) -> Sequence[Row]:
    rows = [] if raw is None else raw
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadCase(f"{where}: expected a list of rows, for example [{{src: ams, loss: 1}}], found {raw!r}")
    return rows

"""The YAML documents: which keys there are, what they may hold, what they mean.

These models are the edge. They check the shape of a document, and the JSON Schema and the reference page
are made from them; the rest of Partwise works with the frozen results in `definitions.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from partwise.parts import BadTime, seconds
from partwise.plan.refresh import parse_clock

_LONGEST_PART = 366 * 86400
_DURATION_PATTERN = r"^\s*\d+\s*(second|minute|hour|day|week)s?\s*$|^\s*\d+\s*$"
_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"


def _seconds(value: object) -> int:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise PydanticCustomError("not-a-length", "expected a length of time")
    if isinstance(value, str) and len(value) > 40:
        value = value[:40]
    try:
        return seconds(value)
    except BadTime as why:
        raise PydanticCustomError("bad-length", "{why}", {"why": str(why)}) from None


def _seconds_or_zero(value: object) -> int:
    zero = value == 0 and not isinstance(value, bool)
    return 0 if zero or (isinstance(value, str) and value.split()[:1] == ["0"]) else _seconds(value)


def _part_length(value: object) -> int:
    found = _seconds(value)
    if found > _LONGEST_PART:
        raise PydanticCustomError("bad-length", "a part can be at most 366 days long, found {found}", {"found": value})
    return found


def _duration_schema(least: int) -> dict[str, Any]:
    return {
        "anyOf": [{"type": "string", "pattern": _DURATION_PATTERN}, {"type": "integer", "minimum": least}],
        "examples": ["1 minute", "5 minutes", "1 hour", "1 day"],
    }


def _poll(value: object) -> int:
    return 0 if value == "manual" else _seconds(value)


def _share(value: object) -> float:
    """`10 %` or `0.1` -> 0.1."""
    number: object = value
    if isinstance(value, str):
        text = value.strip()
        try:
            number = float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
        except ValueError:
            number = None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        raise PydanticCustomError("wrong-value", "expected a share such as 10 %, found {found}", {"found": value})
    return float(number)


_SHARE_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*%\s*$"},
        {"type": "number", "minimum": 0, "maximum": 1},
    ],
    "examples": ["10 %"],
}
Share = Annotated[float, BeforeValidator(_share), WithJsonSchema(_SHARE_SCHEMA)]


def _ratio(value: object) -> float:
    """Of less no sample says anything, and of more a refresh costs hardly more."""
    found = _share(value)
    if not 0.001 <= found <= 0.5:
        raise PydanticCustomError("wrong-value", "expected 0.1 % to 50 %, found {found}", {"found": value})
    return found


def _count(value: object) -> int:
    """`8 parts` or `8`."""
    text = value.strip().removesuffix("parts").strip() if isinstance(value, str) else value
    found = int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 6 else text
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= 1000:
        raise PydanticCustomError(
            "wrong-value", "expected a number of parts such as 8 parts, found {found}", {"found": value}
        )
    return found


_COUNT_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": r"^\s*\d+(\s*parts)?\s*$"},
        {"type": "integer", "minimum": 1, "maximum": 1000},
    ],
    "examples": ["8 parts"],
}
Count = Annotated[int, BeforeValidator(_count), WithJsonSchema(_COUNT_SCHEMA)]
Ratio = Annotated[float, BeforeValidator(_ratio), WithJsonSchema({**_SHARE_SCHEMA, "examples": ["5 %"]})]


def _every(value: object) -> int | str:
    """A length of time, or a time of day, which stays as it is written."""
    if isinstance(value, str) and " at " in value:
        try:
            parse_clock(value)
        except ValueError as why:
            raise PydanticCustomError("bad-length", "{why}", {"why": str(why)}) from None
        return value
    return _seconds(value)


Duration = Annotated[int, BeforeValidator(_seconds), WithJsonSchema(_duration_schema(1))]
Poll = Annotated[int, BeforeValidator(_poll), WithJsonSchema({"anyOf": [{"const": "manual"}, _duration_schema(1)]})]
DurationOrZero = Annotated[int, BeforeValidator(_seconds_or_zero), WithJsonSchema(_duration_schema(0))]
Every = Annotated[
    int | str,
    BeforeValidator(_every),
    WithJsonSchema(
        {
            "anyOf": [
                *_duration_schema(1)["anyOf"],
                {"type": "string", "pattern": r"^(day|\w+day) at \d\d?:\d\d( \S+)?$"},
            ],
            "examples": ["1 hour", "day at 06:00 Europe/Berlin", "monday at 06:00"],
        }
    ),
]
PartLength = Annotated[int, BeforeValidator(_part_length), WithJsonSchema(_duration_schema(1))]
Name = Annotated[str, Field(json_schema_extra={"pattern": _NAME_PATTERN})]
Sql = Annotated[str, Field(json_schema_extra={"contentMediaType": "application/sql"})]


def _shape(value: object) -> str:
    return "map" if isinstance(value, dict) else "list" if isinstance(value, list) else "text"


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class TimeColumn(_Strict):
    """The column with the event time, with what its name alone does not say."""

    column: str = Field(description="Name of the column.")
    unit: Literal["seconds", "milliseconds"] | None = Field(
        None, description="What the numbers count, from 1970-01-01 UTC. Needed for columns of numbers."
    )
    tie: str | None = Field(None, description="A column that orders rows of equal time; patterns need an order.")


class CloseRule(_Strict):
    """When a part of a source is complete. Give one of the keys."""

    delay: DurationOrZero | None = Field(
        None, description="Complete when event times that were seen have passed the end of the part by this much."
    )
    marker: str | None = Field(
        None,
        description="Complete when this file exists. `{part}` is the part, written without colons: `2026-10-03T10-05`.",
    )
    manual: bool | None = Field(None, description="Complete when you declare it: `partwise close SOURCE PART`.")


class LateRule(_Strict):
    """Which rows are too old or too new to be believed. They go to quarantine, and nothing is dropped."""

    accept: Duration | None = Field(
        None,
        description="Rows older than this go to quarantine: counted from the newest event time known, that of the load at "
        "hand included. Without it any lateness is accepted. For `files` only.",
    )
    future: Duration = Field(
        "1 day",  # clocks and time zones are wrong by hours, typing errors and 9999-12-31 by more
        validate_default=True,
        description="Rows further ahead of the clock than this go to quarantine: one such row would close every part up "
        "to its time.",
    )


class RepairRule(_Strict):
    """What happens when late data make parts stale, and how they are repaired."""

    when: Literal["automatic", "manual"] = Field(
        "automatic", description="Repair at once, or wait for `partwise backfill`."
    )
    by: Literal["auto", "recompute", "keys", "merge"] = Field(
        "auto",
        description="`recompute` the part; compute the rows of the touched `keys` again; `merge` the changed rows into the "
        "part; or `auto`, which leaves it to Partwise. One that is not exact for the query is an error. See "
        "[repairs](../repairs.md).",
    )


class RefreshRule(_Strict):
    """When parts that are ready are computed. Without it: at once."""

    every: Every | None = Field(
        None,
        description="At most so often: `1 hour`, or at a time of day, `day at 06:00 Europe/Berlin` or `monday at 06:00`. "
        "The first change after a quiet time goes at once.",
    )
    rows: Annotated[
        Annotated[Annotated[int, Field(ge=1)], Tag("text")]
        | Annotated[dict[str, Annotated[int, Field(ge=1)]], Tag("map")],
        Discriminator(_shape),
    ] = Field(
        default_factory=dict,
        description="When so many rows have arrived since the last refresh, of all inputs together or by input: "
        "`{orders: 1000}`.",
    )
    behind: Annotated[int, Field(ge=1)] | None = Field(None, description="When so many parts wait.")
    when: Literal["any", "all"] = Field("any", description="Whether one of these is enough, or all must hold.")
    within: Duration = Field(
        "1 day", validate_default=True, description="No part waits longer than this, whatever else is said."
    )
    readers: Literal["wait", "published"] = Field(
        "wait",
        description="What views do that read deferred parts: `wait` until they are refreshed, or go on with their "
        "`published` content, which mixes snapshots.",
    )
    new: Literal["with the rest", "at once"] = Field(
        "with the rest",
        description="Whether parts that were never built wait too, or only the repair of stale ones.",
    )


class OutliersRule(_Strict):
    """Keys that are kept exactly, because a sample says nothing about the largest ones."""

    column: str = Field(
        description="A column of numbers, of the view or of what it reads: the size of a key is its sum."
    )
    keep: Annotated[int, Field(ge=1, le=100_000)] = Field(100, description="How many of the largest keys.")


class StandInRule(_Strict):
    """Which part a missing one is compared with: one of these."""

    ago: Duration | None = Field(None, description="The part of so long before: `7 days`.")
    mean: Count | None = Field(None, description="The mean of so many of the newest built parts: `8 parts`.")

    @model_validator(mode="after")
    def _one(self) -> StandInRule:
        if (self.ago is None) == (self.mean is None):
            raise PydanticCustomError("wrong-value", "expected one of ago and mean")
        return self


class SampleRule(_Strict):
    """A sample of a view's keys, kept fresh for `partwise query --fresh`."""

    ratio: Ratio = Field("5 %", validate_default=True, description="The share of keys, 0.1 % to 50 %.")
    key: Annotated[Annotated[str, Tag("text")] | Annotated[list[str], Tag("list")], Discriminator(_shape)] | None = (
        Field(
            None,
            description="The column, or columns, of the view by which rows are sampled. Default: found from the query.",
        )
    )
    outliers: OutliersRule | None = Field(
        None, description="`{column: amount, keep: 100}`: the largest keys of each part, which are kept exactly."
    )
    exact: list[str | int] = Field(default_factory=list, description="Keys that are always exact.")
    stand_in: Annotated[
        Annotated[Literal["last", "none"], Tag("text")] | Annotated[StandInRule, Tag("map")], Discriminator(_shape)
    ] = Field(
        "last",
        description="What a missing part is compared with: the `last` built one, the mean of several "
        "(`{mean: 8 parts}`), that of `{ago: 7 days}`, or `none`.",
    )


class StateRule(_Strict):
    """What is kept for repairs beside a view's parts."""

    join: Annotated[list[str], Field(min_length=2)] = Field(
        description="Inputs of the view, by alias or name, whose join is kept. Late rows of the other inputs are then joined "
        "with what was kept."
    )
    keep: Duration | None = Field(
        None,
        description="How long it is kept. Default: as long as the other inputs accept late rows, at most as long as the "
        "view's parts.",
    )


_State = Annotated[
    Annotated[Literal["automatic", "none"], Tag("text")]
    | Annotated[Annotated[list[Literal["aggregate", "joins"]], Field(min_length=1)], Tag("list")]
    | Annotated[StateRule, Tag("map")],
    Discriminator(_shape),
]
_Sample = Annotated[Annotated[Ratio, Tag("text")] | Annotated[SampleRule, Tag("map")], Discriminator(_shape)]
_Time = Annotated[Annotated[str, Tag("text")] | Annotated[TimeColumn, Tag("map")], Discriminator(_shape)]
_Close = Annotated[Annotated[Literal["manual"], Tag("text")] | Annotated[CloseRule, Tag("map")], Discriminator(_shape)]
_Repair = Annotated[
    Annotated[Literal["automatic", "manual"], Tag("text")] | Annotated[RepairRule, Tag("map")], Discriminator(_shape)
]
_Files = Annotated[Annotated[str, Tag("text")] | Annotated[list[str], Tag("list")], Discriminator(_shape)]
_Checks: Any = Field(
    default_factory=list,
    description="Expectations by their Great Expectations names, each with its arguments, and "
    "`row_count_ratio_to_previous_part: {min: 0.5, max: 2}` and `row_count_equals: {table: other}`. They are checked "
    "on every part before it is published; a part that fails is held back. `severity: warn` beside one publishes it "
    "all the same. See [checks](../checks.md).",
    examples=[[{"expect_column_values_to_not_be_null": {"column": "src"}}]],
)
_Key: Any = Field(
    None,
    description="A column, or a list of columns, by which rows are unique in a part (in all of a dimension). Checked "
    "before a part is published, like any other check.",
    examples=["order_id", ["src", "event_time"]],
)
_MaxRemoved: Any = Field(
    None,
    description="A delivery, a correction or a change of a watched Delta table that takes out a larger share of the rows "
    "of a closed part (of a dimension) is held back like a failed check, until `run --accept` or a correction.",
    examples=["10 %"],
)
_Description: Any = Field(None, description="One sentence for people.")
_Owner: Any = Field(None, description="Who answers for this table.")
_Tags: Any = Field(default_factory=list, description="Words to find it by.")
_Columns = dict[str, str]


class SourceDocument(_Strict):
    """A table fed from outside, split into parts by event time."""

    source: Name = Field(description="Name of the table: letters, digits and underscores.")
    description: str | None = _Description
    part: PartLength = Field(description="Length of a part: `1 minute`, `1 hour`, `1 day`, or a number of seconds.")
    time: _Time = Field(
        description="The column with the event time, or `{column: ts, unit: seconds}` (or `milliseconds`) for numbers. "
        "Times without a zone are UTC."
    )
    columns: _Columns = Field(
        default_factory=dict,
        description="Columns and their Spark types. Required with `files`; with `delta` the table declares them.",
        examples=[{"event_time": "timestamp", "loss": "double"}],
    )
    files: _Files | None = Field(
        None,
        description="Files to load, as a pattern or a list of patterns: .csv, .json (lines) or .parquet. "
        "Either `files` or `delta`.",
        examples=["landing/measurements/*.csv"],
    )
    delta: str | None = Field(None, description="A Delta table that others write. Either `files` or `delta`.")
    close: _Close = Field(
        default_factory=lambda: CloseRule(delay=0, marker=None, manual=None),
        description="When a part is complete: `{delay: 2 minutes}`, `{marker: path/{part}.done}` or `manual`. "
        "Default: `{delay: 0}`.",
    )
    late: LateRule = Field(
        default_factory=lambda: LateRule.model_validate({}), description="Bounds for late and early rows."
    )
    keep: Duration | None = Field(
        None,
        description="Parts older than this are removed, but none that a view still needs to be built. Late rows for them "
        "go to quarantine. Default: all are kept.",
    )
    poll: Poll | None = Field(
        None, description="How often Airflow looks for new data, or `manual`. Default: every 30 seconds."
    )
    key: _Files | None = _Key
    max_removed: Share | None = _MaxRemoved
    checks: list[dict[str, Any]] = _Checks
    owner: str | None = _Owner
    tags: list[str] = _Tags


class DimensionDocument(_Strict):
    """A small table that is not split into parts. The newest content replaces the old."""

    dimension: Name = Field(description="Name of the table: letters, digits and underscores.")
    description: str | None = _Description
    columns: _Columns = Field(
        default_factory=dict,
        description="Columns and their Spark types. Required with `files`.",
        examples=[{"a": "string"}],
    )
    files: _Files | None = Field(None, description="Files to load. Either `files` or `delta`.")
    delta: str | None = Field(None, description="A Delta table that others write. Either `files` or `delta`.")
    poll: Poll | None = Field(
        None, description="How often Airflow looks for new content, or `manual`. Default: every 30 seconds."
    )
    change: Literal["retroactive", "forward"] = Field(
        "retroactive",
        description="What a new version counts for. `retroactive`: for everything, so all that reads it is computed again. "
        "`forward`: only for source parts that come to exist after it, and what is computed from them.",
    )
    valid_from: str | None = Field(
        None,
        description="The column that says from when on a row is valid, until the next row of the same `key` is. Rows of other "
        "tables are joined with what was valid at their time.",
    )
    key: _Files | None = _Key
    max_removed: Share | None = _MaxRemoved
    checks: list[dict[str, Any]] = _Checks
    owner: str | None = _Owner
    tags: list[str] = _Tags


class ViewDocument(_Strict):
    """A table that is computed here, part by part."""

    view: Name = Field(description="Name of the table: letters, digits and underscores.")
    description: str | None = _Description
    part: PartLength = Field(description="Length of a part: `1 minute`, `1 hour`, `1 day`, or a number of seconds.")
    start: str = Field(
        "earliest",
        description="First part: `earliest` (the first for which everything required exists), `latest` (the newest "
        "that all sources have), or a time such as `2026-10-03T10:05` (UTC).",
    )
    initialize: Sql | None = Field(
        None,
        description="Query for the first part, with index `i`. Needed when `update` reads the view itself; otherwise "
        "`update` makes the first part, too.",
    )
    update: Sql | None = Field(
        None,
        description="Query for part `j`, in Spark SQL with references such as `m[j-9..j]`. Either `update` or `query`.",
    )
    query: Sql | None = Field(
        None,
        description="A query with `PATTERN [...]` or `[WINDOW ...]`, which is translated. Either `update` or `query`.",
    )
    gaps: Literal["break", "carry"] = Field(
        "break",
        description="For patterns: a part in which a group is absent ends its runs (`break`), or they wait (`carry`).",
    )
    strategy: Literal["auto", "merge", "subtract", "recompute", "last", "factor", "grid", "cells"] = Field(
        "auto",
        description="For windows: how they are kept. Default: settled by rows and groups before the first part; see "
        "`partwise explain`. `last` is for SELECT DISTINCT, `factor` and `cells` for aggregates over a join, `grid` for its rows; see [several streams](../several_streams.md).",
    )
    output: Literal["snapshot", "pairs", "rolling"] = Field(
        "snapshot",
        description="For windows: a part holds the whole result (`snapshot`), or each joined row once, in the part in which "
        "it came about (`pairs`), or one table without parts holds what the newest part would (`rolling`).",
    )
    partial: bool = Field(
        False, description="For windows: also show windows that are not complete yet, marked in a column."
    )
    share: bool = Field(
        True,
        description="For queries: whether tables that are generated for this view may serve other views that need the "
        "same; see [many views](../many_views.md).",
    )
    updates: Literal["monotonic", "weakest", "weak", "strict"] | None = Field(
        None,
        description="How rows leave the result as time goes on, if that is to be checked: an error if the query is worse. "
        "`partwise explain` shows what it is.",
    )
    keep: Duration | None = Field(None, description="Parts older than this are removed. Default: all are kept.")
    repair: _Repair = Field(
        "automatic",
        description="What happens when late data make parts stale: repair them, or wait for `partwise backfill`. Or "
        "`{when: automatic, by: auto}`, which also says how.",
    )
    refresh: RefreshRule | None = Field(
        None,
        description="When ready parts are computed, for views that need not be fresh at once: `{every: 1 hour}`. Parts "
        "that wait for it are deferred. See [refresh](../refresh.md).",
        examples=[{"every": "1 hour", "rows": 100000}],
    )
    freshness: Duration | None = Field(
        None,
        description="How far behind it may be: what is most urgent is computed first, here and in what it reads. "
        "`partwise status` names views that are further behind. See [freshness](../freshness.md).",
        examples=["5 minutes"],
    )
    sample: _Sample | None = Field(
        None,
        description="A sample of its keys that is always fresh: `5 %`, or a map. `partwise query --fresh` answers from it "
        "between refreshes. See [fresh answers](../fresh_answers.md).",
        examples=[{"ratio": "5 %", "key": "customer", "outliers": {"column": "amount", "keep": 100}}],
    )
    state: _State = Field(
        "automatic",
        description="What is kept of a part so that late rows cost less. `automatic`: what pays by the deliveries that are "
        "expected, which is mostly nothing; a list: the same, of these kinds only; `none`; or a map that names a join. See "
        "[kept state](../state.md).",
        examples=["none", ["aggregate", "joins"], {"join": ["orders", "customer"]}],
    )
    engine: Literal["connect", "submit"] | None = Field(
        None, description="How Airflow runs it: in the warm Spark session (`connect`) or by spark-submit."
    )
    patience: Duration | None = Field(
        None,
        description="How long a part waits for inputs that exist but are about to be recomputed; after that it is "
        "computed from what is there, and again when they are done. Default: an hour, or the length of a part if that "
        "is longer.",
    )
    timeout: Duration | None = Field(
        None,
        description="In Airflow, a task that computes this view and takes longer is stopped and tried again, in "
        "backfills too (default: 2 hours), and a run that waits longer for the parts it requires fails (default: 12 "
        "hours).",
    )
    checks: list[dict[str, Any]] = _Checks
    owner: str | None = _Owner
    tags: list[str] = _Tags


Document = SourceDocument | DimensionDocument | ViewDocument
DOCUMENTS: dict[str, type[Document]] = {
    "source": SourceDocument,
    "dimension": DimensionDocument,
    "view": ViewDocument,
}
#: Maps inside documents, by key: to say what may stand in them.
INNER: dict[str, type[BaseModel]] = {
    "time": TimeColumn,
    "close": CloseRule,
    "late": LateRule,
    "refresh": RefreshRule,
    "repair": RepairRule,
    "sample": SampleRule,
    "state": StateRule,
}

"""Checks of staged parts: all aggregates of all checks in one query, grouped by part."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.checks.catalog import EQUALS, MAX_REMOVED, PREVIOUS
from partwise.checks.question import Answer, Mismatch, Question
from partwise.checks.questions import question
from partwise.checks.results import MOST_ROWS, Checked, CheckResult
from partwise.checks.row_counts import equals, ratio, removed
from partwise.definitions.definitions import Check
from partwise.ledger.records.checks import Decision
from partwise.ledger.write.commit import Content
from partwise.parts import Parts
from partwise.storage import schema as schemas
from spark_jobs.retry import SPARK_ERRORS, is_infrastructure, message_of
from spark_jobs.step import read

#: Failing rows are kept for so many parts of a step; of the others the counts tell enough.
MOST_PARTS = 50
_FILE = "_file"  # which file brought a row of a source
_N = "__n"


@dataclass(frozen=True)
class Around:
    """What lies around a part: how many rows the part before it has, and another table for the same time."""

    previous: Callable[[int], int | None] = lambda part: None
    other: Callable[[str, int], int | None] = lambda table, part: None
    files: Mapping[int, str] = field(default_factory=dict)  # names of files by the ids that rows carry
    before: Callable[[int], int | None] = lambda part: None  # rows of the part as it is published now


def check_parts(
    rows: DataFrame,
    schema: str,
    checks: Sequence[Check],
    contents: Mapping[int, Content],
    around: Around,
    accepted: Mapping[int, Decision] | None = None,
) -> dict[int, Checked]:
    """Check these parts; `rows` holds theirs (parts without rows are checked as well) with the part columns.

    What somebody accepted, this very content, is not held back.
    """
    columns = {name: kind for name, kind in schemas.fields(schema) if name != _FILE}
    asked: list[Question | Exception | None] = [_asked(check, columns) for check in checks]
    questions = {at: q for at, q in enumerate(asked) if isinstance(q, Question)}
    values = _values(rows, questions)
    found: dict[int, dict[int, CheckResult]] = {p: {} for p in sorted(contents)}
    for at, check in enumerate(checks):
        if check.name != PREVIOUS:
            for p, answer in _answers(rows, check, asked[at], values.get(at), contents, around).items():
                found[p][at] = _result(check, answer)
    for at, asked_now in questions.items():
        bad = [p for p in found if not found[p][at].ok]
        if bad and not isinstance(values[at], Exception):
            for p, texts in _failing(rows, columns, asked_now, bad[:MOST_PARTS], around.files).items():
                found[p][at] = replace(found[p][at], rows=tuple(texts))
    done: dict[int, Checked] = {}
    for p, results in found.items():
        # Upwards: a part is compared with the one before it as that will be published, or was before.
        before = done.get(p - 1)
        previous = before.rows if before is not None and before.published else around.previous(p)
        for at, check in enumerate(checks):
            if check.name == PREVIOUS:
                results[at] = _result(check, ratio(check.arguments, contents[p].rows, previous))
        content, who = contents[p], (accepted or {}).get(p)
        done[p] = Checked(p, content.rows, content.digest, tuple(results[at] for at in range(len(checks))))
        if who is not None and who.digest == content.digest:
            done[p] = done[p].accepted(who.who)
    return done


def _asked(check: Check, columns: Mapping[str, Any]) -> Question | Exception | None:
    try:
        return question(check.name, check.arguments, columns)
    except (Mismatch, TypeError, ValueError, KeyError) as why:
        return why


def _answers(
    rows: DataFrame,
    check: Check,
    asked: Question | Exception | None,
    values: Mapping[int, Sequence[Any]] | Exception | None,
    contents: Mapping[int, Content],
    around: Around,
) -> dict[int, Answer | Exception]:
    if check.name == EQUALS:
        other = check.arguments["table"]
        return {p: equals(other, c.rows, around.other(other, p)) for p, c in contents.items()}
    if check.name == MAX_REMOVED:
        return {p: removed(check.arguments["share"], c.rows, around.before(p)) for p, c in contents.items()}
    if isinstance(asked, Exception):
        return dict.fromkeys(contents, asked)
    if asked is None:
        from spark_jobs.checks.expectations import answer  # Great Expectations takes seconds to import

        return {p: answer(rows, check, p) for p in contents}
    if isinstance(values, Exception):
        return dict.fromkeys(contents, values)
    assert values is not None
    return {p: asked.judge(values.get(p, asked.empty)) for p in contents}


def _values(rows: DataFrame, questions: Mapping[int, Question]) -> dict[int, Mapping[int, Sequence[Any]] | Exception]:
    """The aggregates of all questions, by question and part; a question that cannot be asked has its error."""
    found: dict[int, Mapping[int, Sequence[Any]] | Exception] = {}
    together = {at: q for at, q in questions.items() if q.key is None}
    groups = [together] if together else []
    groups += [{at: q} for at, q in questions.items() if q.key is not None]
    for group in groups:
        try:
            found |= _ask(rows, group)
        except SPARK_ERRORS as why:
            if is_infrastructure(why):
                raise
            # Only the bad one fails. Which one it was, Spark does not say.
            for at, q in group.items():
                try:
                    found |= _ask(rows, {at: q}) if len(group) > 1 else {at: why}
                except SPARK_ERRORS as one:
                    if is_infrastructure(one):
                        raise
                    found[at] = one
    return found


def _ask(rows: DataFrame, questions: Mapping[int, Question]) -> dict[int, Mapping[int, Sequence[Any]]]:
    """One query for these questions, which are all about rows, or a single one about how often keys occur."""
    aggregates = [sql for q in questions.values() for sql in q.aggregates]
    if not aggregates:
        return {at: {} for at in questions}
    first = next(iter(questions.values()))
    of = rows
    if first.key is not None:
        keys = [F.expr(key).alias(f"k{at}") for at, key in enumerate(first.key)]
        names = [f"k{at}" for at in range(len(keys))]
        groups = rows.where(first.where).select(schemas.PART, *keys).groupBy(schemas.PART, *names)
        of = groups.agg(F.count(F.lit(1)).alias("n"))
    answers = of.groupBy(schemas.PART).agg(*(F.expr(sql).alias(f"v{at}") for at, sql in enumerate(aggregates)))
    by_part = {row[0]: tuple(row[1:]) for row in answers.collect()}
    found: dict[int, Mapping[int, Sequence[Any]]] = {}
    start = 0
    for at, q in questions.items():
        end = start + len(q.aggregates)
        found[at] = {p: values[start:end] for p, values in by_part.items()}
        start = end
    return found


def _failing(
    rows: DataFrame, columns: Iterable[str], asked: Question, parts: Sequence[int], files: Mapping[int, str]
) -> dict[int, list[str]]:
    """A sample of the rows that fail the check, as JSON, by part."""
    if asked.failing is None:
        return {}
    some = rows.where(read.in_parts(Parts.single(*parts)))
    if asked.key is not None:
        keys = ", ".join((schemas.PART, *asked.key))
        some = some.where(asked.where).withColumn(_N, F.expr(f"count(1) OVER (PARTITION BY {keys})"))
        some = some.where(f"{_N} > 1").drop(_N)
    else:
        some = some.where(asked.failing)
    shown = [name for name in columns if name not in (schemas.PART, schemas.PART_TIMESTAMP)]
    shown += [_FILE] if _FILE in rows.columns else []
    texts = some.select(schemas.PART, F.to_json(F.struct(*(F.col(schemas.quoted(c)) for c in shown))).alias("text"))
    ranked = texts.withColumn("n", F.expr(f"row_number() OVER (PARTITION BY {schemas.PART} ORDER BY text)"))
    found: dict[int, list[str]] = {}
    for part, text, _ in ranked.where(f"n <= {MOST_ROWS}").orderBy(schemas.PART, "n").collect():
        found.setdefault(part, []).append(_named(text, files))
    return found


def _named(text: str, files: Mapping[int, str]) -> str:
    """A row with the name of the file that brought it."""
    row = json.loads(text)
    number = row.pop(_FILE, None)
    return json.dumps(row | ({"file": files[number]} if number in files else {}), ensure_ascii=False)


def _result(check: Check, answer: Answer | Exception) -> CheckResult:
    base = (check.name, dict(check.arguments), check.severity)
    if isinstance(answer, Exception):
        said = message_of(answer).split("\n")[0][:500] or type(answer).__name__
        return CheckResult(*base, ok=False, message=f"{check.name} could not be run: {said}", broken=True)
    found = CheckResult(*base, answer.ok, answer.message, answer.observed, answer.elements, answer.unexpected)
    return replace(found, rows=answer.rows)

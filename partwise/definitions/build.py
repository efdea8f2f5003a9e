"""One document to one definition, with everything that can be said without the other documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from partwise.definitions.build_checks import checks_of
from partwise.definitions.build_sources import dimension, source
from partwise.definitions.definitions import Definition, KeptState, Sample, Statement, View
from partwise.definitions.problems import Problem
from partwise.definitions.yaml.model import Document, RefreshRule, SampleRule, SourceDocument, StateRule, ViewDocument
from partwise.definitions.yaml.places import placed
from partwise.definitions.yaml.shape import Reporter, shown
from partwise.definitions.yaml.text import YamlNode
from partwise.parts import BadTime, lasting, parse_moment, parse_part
from partwise.plan.refresh import Refresh, parse_clock
from partwise.spelling import did_you_mean
from partwise.sql.canonical import canonical_of
from partwise.sql.references import Analysis, analyse
from partwise.tables import Start

#: Keys that mean something only for translated queries: those with a pattern, those with a window.
_Kept = Literal["aggregate", "joins"]
_FOR_PATTERNS = ("gaps",)
_FOR_WINDOWS = ("strategy", "partial", "output")


@dataclass(frozen=True)
class Built:
    """A definition, what is wrong with it so far, and sqlglot's view of its statements (by key)."""

    definition: Definition
    problems: tuple[Problem, ...]
    analyses: dict[str, Analysis]
    without: frozenset[str] = frozenset()


def build(document: Document, node: YamlNode, report: Reporter, without: frozenset[str] = frozenset()) -> Built:
    """`without` are keys of which enough was said already: they are left out or guessed in `document`."""
    if isinstance(document, ViewDocument):
        return _view(document, node, report, without)
    definition: Definition
    if isinstance(document, SourceDocument):
        definition, problems = source(document, node, report, without)
    else:
        definition, problems = dimension(document, node, report, without)
    return Built(definition, tuple(problems), {}, without)


def _view(document: ViewDocument, node: YamlNode, report: Reporter, without: frozenset[str]) -> Built:
    problems = list(_which_queries(document, node, report, without))
    checks, wrong = checks_of(document.checks, node, report, None)
    start, bad_start = (Start(), []) if "part" in without else _start(document, node, report)
    problems += [*wrong, *bad_start, *_fresh_enough(document, node, report)]
    analyses: dict[str, Analysis] = {}
    statements: dict[str, Statement | None] = {"initialize": None, "update": None}
    for key, index in (("initialize", "i"), ("update", "j")):
        if getattr(document, key) is None or (at := node.get(key)) is None:
            continue
        text = placed(report.file, at, _without_semicolon(at.text))
        analysis = analyse(text.text, index)
        analyses[key] = analysis
        statements[key] = Statement(text.text, index, analysis.found, text, canonical_of(text.text, analysis))
    query = node.get("query")
    definition = View(
        name=document.view,
        place=report.place(node.get("view") or node),
        part=document.part,
        start=start,
        initialize=statements["initialize"],
        update=statements["update"],
        query=placed(report.file, query) if query is not None and document.query is not None else None,
        gaps=document.gaps,
        strategy=document.strategy,
        output=document.output,
        updates=document.updates,
        partial=document.partial,
        share=document.share,
        keep=document.keep,
        repair=document.repair if isinstance(document.repair, str) else document.repair.when,
        repair_by="auto" if isinstance(document.repair, str) else document.repair.by,
        refresh=_refresh(document.refresh),
        freshness=document.freshness,
        sample=_sample(document.sample),
        state=KeptState(tuple(document.state.join), document.state.keep)
        if isinstance(document.state, StateRule)
        else None,
        may_keep=_may_keep(document.state),
        engine=document.engine,
        patience=document.patience,
        timeout=document.timeout,
        checks=checks,
        description=document.description,
        owner=document.owner,
        tags=tuple(document.tags),
    )
    return Built(definition, tuple(problems), analyses, without)


def _may_keep(state: str | list[_Kept] | StateRule) -> tuple[_Kept, ...]:
    """What may be chosen to be kept; nothing beside what the author names."""
    if isinstance(state, list):
        return tuple(dict.fromkeys(state))
    return ("aggregate", "joins") if state == "automatic" else ()


def _without_semicolon(sql: str) -> str:
    stripped = sql.rstrip()
    return stripped[:-1] if stripped.endswith(";") else sql


def _which_queries(
    document: ViewDocument, node: YamlNode, report: Reporter, without: frozenset[str]
) -> Iterator[Problem]:
    head = node.pairs[0][0]
    if document.query is not None:
        for key in ("update", "initialize"):
            if getattr(document, key) is not None:
                message = f"query and {key} cannot both be given"
                yield report(
                    node.key(key) or head, "keys-exclude", message, "a query is translated to both by Partwise"
                )
        return
    if without & {"update", "query"}:
        return
    if document.update is None:
        hint = "how is part j computed? update is plain SQL, query has a PATTERN or WINDOW"
        yield report(head, "missing-key", "update or query is missing", hint)
    for key in (*_FOR_PATTERNS, *_FOR_WINDOWS):
        if (at := node.key(key)) is not None:
            hint = "remove it, or write the view as a query with PATTERN or WINDOW"
            yield report(at, "keys-exclude", f"{key} means nothing without query", hint)


def idle_keys(is_pattern: bool, node: YamlNode, report: Reporter) -> Iterator[Problem]:
    """Of a translated query: keys that its kind does not have would be ignored without a word."""
    kind, other, keys = ("pattern", "windows", _FOR_WINDOWS) if is_pattern else ("window", "patterns", _FOR_PATTERNS)
    for key in keys:
        if (at := node.key(key)) is not None:
            yield report(at, "keys-exclude", f"{key} means nothing for a {kind}", f"remove it; it is for {other}")


def _refresh(rule: RefreshRule | None) -> Refresh | None:
    if rule is None:
        return None
    rows = rule.rows if isinstance(rule.rows, dict) else {"": rule.rows}
    return Refresh(
        every=float(rule.every) if isinstance(rule.every, int) else None,
        clock=parse_clock(rule.every) if isinstance(rule.every, str) else None,
        rows=tuple(sorted(rows.items())),
        behind=rule.behind,
        when=rule.when,
        within=float(rule.within),
        readers=rule.readers,
        new=rule.new,
    )


def _fresh_enough(document: ViewDocument, node: YamlNode, report: Reporter) -> Iterator[Problem]:
    """A policy that lets a view be further behind than it may be contradicts itself."""
    policy = _refresh(document.refresh)
    if policy is None or document.freshness is None or policy.longest <= document.freshness:
        return
    allowed, late = lasting(document.freshness), lasting(policy.longest)
    message = f"freshness is {allowed}, but refresh may defer parts for {late}"
    hint = f"write refresh: {{within: {allowed}, ...}}, or a freshness of {late} or more"
    yield report(node.key("freshness") or node, "keys-exclude", message, hint)


def _sample(rule: float | SampleRule | None) -> Sample | None:
    if rule is None:
        return None
    if not isinstance(rule, SampleRule):
        return Sample(rule)
    key = () if rule.key is None else (rule.key,) if isinstance(rule.key, str) else tuple(rule.key)
    largest = rule.outliers
    return Sample(
        ratio=rule.ratio,
        key=key,
        outliers=None if largest is None else largest.column,
        keep=0 if largest is None else largest.keep,
        exact=tuple(dict.fromkeys(map(str, rule.exact))),
        stand_in=rule.stand_in
        if isinstance(rule.stand_in, str)
        else "ago"
        if rule.stand_in.ago is not None
        else "mean",
        ago=None if isinstance(rule.stand_in, str) else rule.stand_in.ago,
        mean=None if isinstance(rule.stand_in, str) else rule.stand_in.mean,
    )


def _start(document: ViewDocument, node: YamlNode, report: Reporter) -> tuple[Start, list[Problem]]:
    text = document.start.strip()
    at = node.get("start") or node
    if text in ("earliest", "latest"):
        return Start(text), []  # type: ignore[arg-type]
    try:
        parse_moment(text)
    except BadTime:
        hint = did_you_mean(text, ("earliest", "latest"), "for example 2026-10-03 or 2026-10-03T10:05 (UTC)")
        return Start(), [report(at, "bad-time", f"start is {shown(text)}; expected earliest, latest or a time", hint)]
    try:
        return Start("at", parse_part(text, document.part)), []
    except BadTime as why:
        return Start(), [report(at, "bad-time", f"start: {why}")]

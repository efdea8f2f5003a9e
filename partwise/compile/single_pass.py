"""Generated helpers that read their own part before, computed for many parts in one pass.

The text is that of a query with references, but for parts `:first` to `:last` at once: rows of other tables come
with the part that they go to as column `__j`, of the helper itself there is only the part before `:first`. The
result says in `__j` which part a row belongs to. It equals what the update gives part after part.
"""

from __future__ import annotations

from partwise.sql.layout import filled

FIRST, LAST = "CAST(:first AS BIGINT)", "CAST(:last AS BIGINT)"


def fold_over_parts(
    *,
    keys: list[str],
    named_keys: list[str],
    group: str,
    rows: str,
    source: str,
    where: str,
    helper: str,
    fields: list[tuple[str, str]],  # (name, as it stands in a string)
    step: str,
    alive: str,
    carry: bool,
) -> str:
    """The rows of a group in order of parts and time are folded into its runs; at the end of a part these are kept.

    `step` makes the new runs from `old` and `new`.
    """
    at = "__at"
    before = "named_struct(" + ", ".join(f"'{text}', h.{name}" for name, text in fields) + ")"
    none = "named_struct(" + ", ".join(f"'{text}', IF(FALSE, h.{name}, NULL)" for name, text in fields) + ")"

    def end(part: str, until: str, runs: str) -> str:
        length = f", 'until', {until}" if carry else ""
        return f"named_struct('{at}', {part}{length}, 's', {runs})"

    start = end(f"{FIRST} - 1", f"{FIRST} - 1", before)
    kept = "acc.s" if carry else f"IF(new.{at} <= acc.{at} + 1, acc.s, {none})"
    fold = "\n".join(
        [
            "aggregate(",
            "      r.__rows,",
            f"      named_struct('{at}', {FIRST} - 1, 's', {before}, 'ends', array({start})),",
            "      (acc, new) -> named_struct(",
            f"        '{at}', new.{at},",
            f"        's', transform(array({kept}), old -> {step})[0],",
            f"        'ends', IF(new.{at} = acc.{at}, acc.ends,",
            f"          concat(acc.ends, array({end(f'acc.{at}', f'new.{at} - 1', 'acc.s')})))",
            "      ),",
            f"      acc -> concat(acc.ends, array({end(f'acc.{at}', LAST, 'acc.s')}))",
            "    )",
        ]
    )
    if carry:
        fold = f"CASE WHEN r.__rows IS NULL THEN array({end(f'{FIRST} - 1', LAST, before)})\n    ELSE {fold} END"
    shown = [f"COALESCE(r.{k}, h.{k}) AS {k}" if carry else f"r.{k}" for k in keys]
    on = " AND ".join(f"h.{k} <=> r.{k}" for k in keys) or "TRUE"
    index = f"explode(sequence(__end.{at}, __end.until))" if carry else f"__end.{at}"
    return "\n".join(
        [
            "-- many parts in one pass: the runs of each group at the end of every part",
            f"SELECT {filled([*keys, *(f'__runs.{name}' for name, _ in fields), '__j'], 7)}",
            f"FROM (SELECT {', '.join([*keys, '__end.s AS __runs', f'{index} AS __j'])} FROM (",
            f"  SELECT {', '.join([*keys, 'explode(__ends) AS __end'])} FROM (",
            "  SELECT",
            *([f"    {', '.join(shown)},"] if shown else []),
            f"    {fold} AS __ends",
            "  FROM (",
            f"    SELECT {', '.join([*named_keys, f'array_sort(collect_list({rows})) AS __rows'])}",
            f"    FROM {source}",
            *([f"    {where}"] if where else []),
            f"    {group}",
            "  ) r",
            f"  {'FULL' if carry else 'LEFT'} JOIN {helper}[j-1] h ON {on}",
            ")))",
            f"WHERE __j >= {FIRST} AND ({alive})",
        ]
    )


def running_sums(
    *, keys: list[str], columns: list[str], merges: list[str], rolling: str, new: str, left: str, gone: str
) -> str | None:
    """What a window holds changes only where panes come or leave: sum these changes up, part after part.

    `merges` have `{0}` for the column; None if one of them is no sum.
    """
    if any(merge.count("SUM({0})") != 1 for merge in merges):
        return None
    by = f"PARTITION BY {', '.join(keys)} " if keys else ""
    over = f"({by}ORDER BY __at)"
    plain, minus = ", ".join([*keys, *columns]), ", ".join([*keys, *(f"-{c} AS {c}" for c in columns)])
    sums = [f"{merge.format(c)} AS {c}" for merge, c in zip(merges, columns, strict=True)]
    running = [
        f"{merge.replace('SUM({0})', f'SUM({c}) OVER {over}')} AS {c}" for merge, c in zip(merges, columns, strict=True)
    ]
    until = f"COALESCE(LEAD(__at) OVER {over} - 1, {LAST}) AS __until"
    return "\n".join(
        [
            "-- many parts in one pass: running sums of the panes that come and leave",
            f"SELECT {filled([*keys, *columns, '__j'], 7)}",
            f"FROM (SELECT {', '.join([*keys, *columns, 'explode(sequence(__at, __until)) AS __j'])} FROM (",
            f"  SELECT {filled([*keys, '__at', until, *running], 4)}",
            "  FROM (",
            f"    SELECT {filled([*keys, '__at', *sums], 6)}",
            "    FROM (",
            f"      SELECT {plain}, {FIRST} AS __at FROM {rolling}[j-1]",
            f"      UNION ALL SELECT {plain}, __j AS __at FROM {new}",
            f"      UNION ALL SELECT {minus}, __j AS __at FROM {left}",
            "    )",
            f"    GROUP BY {', '.join([*keys, '__at'])}",
            "  )",
            "))",
            *([f"WHERE {gone}"] if gone else []),
        ]
    )


def counted_up(helper: str, most: int) -> str:
    """A number that grows by one from part to part, up to a limit."""
    return "\n".join(
        [
            "-- many parts in one pass: counted up from the part before",
            f"SELECT LEAST(panes + __j - {FIRST} + 1, {most}) AS panes, __j",
            f"FROM (SELECT panes, explode(sequence({FIRST}, {LAST})) AS __j FROM {helper}[j-1])",
        ]
    )

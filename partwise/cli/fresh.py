"""`query --fresh`: answers between refreshes, with intervals."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from partwise.cli.as_of import as_of, meant_by, tell_sequence
from partwise.cli.open_workspace import definitions_of, ledger_of
from partwise.cli.stop import WRONG_USE, Stop, wrong_use
from partwise.cli.views.fresh_shown import fresh_json, show_fresh
from partwise.cli.views.show import as_json, moment_text

if TYPE_CHECKING:
    from partwise.workspace import Workspace


def share_of(text: str, option: str) -> float:
    """`1%`, `1 %` or `0.01`."""
    written = text.strip()
    try:
        found = float(written.removesuffix("%")) / 100 if written.endswith("%") else float(written)
    except ValueError:
        found = 0.0
    if not 0 < found <= 1:
        raise wrong_use(f"{option}: '{text}' is not a share; write for example 1%.")
    return found


def confidence_of(text: str) -> float:
    """`95`, `95%` or `0.95`."""
    written = text.strip().removesuffix("%").strip()
    try:
        found = float(written)
    except ValueError:
        found = 0.0
    found = round(found / 100 if found > 1 or text.strip().endswith("%") else found, 9)
    if not 0.5 <= found <= 0.999:
        raise wrong_use(f"--confidence: '{text}' is not between 50 and 99.9; the usual one is 95.")
    return found


def ratio_of(text: str) -> float:
    found = share_of(text, "--ratio")
    if found > 0.5:
        raise wrong_use(f"--ratio: samples have at most 50 % of the keys, not {text}.")
    return found


def answer_fresh(
    where: Workspace,
    sql: str,
    confidence: str,
    within: str | None,
    ratio: str | None,
    moment: str | None,
    wait: bool,
    json: bool,
) -> None:
    """Prints the answer, or ends the command with the reason why there is none."""
    import duckdb

    from partwise.choose.settled import settled
    from partwise.fresh.asked.refused import Refused
    from partwise.fresh.read import FreshRequest, fresh
    from partwise.storage import StorageError

    seq, time_ = meant_by(moment, time.time())
    wanted = FreshRequest(
        confidence_of(confidence),
        None if within is None else share_of(within, "--within"),
        None if ratio is None else ratio_of(ratio),
        seq,
        time_,
        wait,
    )
    written = definitions_of(where, quiet=True)
    if not where.has_ledger():
        raise Stop("There is nothing to read yet: no run has made a ledger. `partwise run` starts.")
    with ledger_of(where, time.time(), looking=True) as ledger:
        program = settled(written, ledger.strategies())
        try:
            found, at = fresh(
                program,
                ledger,
                where.warehouse,
                sql,
                lambda seq: as_of(ledger, where.settings, seq, None, "--fresh" if moment is None else "--as-of"),
                wanted,
            )
        except Refused as why:
            if json:
                as_json({"rows": [], "refused": [{"code": why.code, "message": why.message, "hint": why.hint}]})
            raise Stop(_sentences(why.message, why.hint), WRONG_USE) from None
        except (duckdb.Error, StorageError) as why:
            raise Stop(str(why)) from None
    tell_sequence(at, *([found.note] if found.note else []))
    if json:
        as_json(fresh_json(found, at.seq, at.at))
    else:
        show_fresh(found, moment_text(at.at, where.settings.timezone))


def _sentences(*texts: str) -> str:
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in texts if text)

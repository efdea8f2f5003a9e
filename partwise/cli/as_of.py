"""Reading from one snapshot: which one is meant, and a registered read of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from partwise.cli.open_workspace import moment_of
from partwise.cli.stop import Stop, wrong_use
from partwise.cli.views.show import moment_json, moment_text

if TYPE_CHECKING:
    from partwise.ledger.ledger import Ledger
    from partwise.ledger.records.readers import Moment
    from partwise.settings import Settings


def meant_by(text: str | None, now: float) -> tuple[int | None, float | None]:
    """`--as-of`: a sequence (`@118`), or a time; neither: the newest."""
    if text is None:
        return None, None
    if text.strip().startswith("@"):
        digits = text.strip()[1:]
        if not digits.isdecimal() or len(digits) > 18:
            raise wrong_use(f"--as-of: '{text}' is not a sequence; write for example @118 (`partwise now` shows it).")
        return int(digits), None
    return None, moment_of(text, now, "--as-of")


@contextmanager
def as_of(
    ledger: Ledger, settings: Settings, seq: int | None, moment: float | None, option: str = "--as-of"
) -> Iterator[Moment]:
    """A registered read: upkeep keeps what it pins until it is over."""
    from partwise.ledger.records.readers import NotYet, TooOld, reading
    from partwise.ledger.write.lease_holding import who

    try:
        with reading(ledger.database, time.time, who(), seq, moment) as found:
            yield found
    except TooOld as why:
        from_ = moment_text(why.given.at, settings.timezone)
        raise Stop(
            f"{option}: reads reach back to {from_} (@{why.given.seq}); what was there before is not "
            f"kept any longer (setting `history`, now {settings.history})."
        ) from None
    except NotYet as why:
        ahead = "that time lies ahead" if seq is None else f"there is no sequence {seq} yet"
        raise Stop(
            f"{option}: {ahead}; the ledger is at sequence {why.seq} ({moment_text(why.at, settings.timezone)})."
        ) from None


def tell_sequence(at: Moment, *more: str) -> None:
    """Which sequence an answer belongs to. On stderr: the answer itself may go to a file or a program."""
    print(f"As of sequence {at.seq} ({moment_json(at.at)}){''.join('; ' + text for text in more)}.", file=sys.stderr)

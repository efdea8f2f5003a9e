"""What to tell the scheduler: which views have work, as a few readable keys, and what a part still waits for."""

from partwise.announce.decide import GRACE, Ready, Told, ready_views, to_tell
from partwise.announce.keys import coalesced, key_text, keys_of, parse_key
from partwise.announce.left import not_computed
from partwise.announce.waiting import Waiting, waiting_for

__all__ = [
    "GRACE",
    "Ready",
    "Told",
    "Waiting",
    "coalesced",
    "key_text",
    "keys_of",
    "not_computed",
    "parse_key",
    "ready_views",
    "to_tell",
    "waiting_for",
]

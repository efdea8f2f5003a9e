"""The colours of the states differ in lightness too, so that nobody has to tell them apart by hue alone."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from partwise.page.states import STATES
from tests.page.serve import ROOT

CSS = (ROOT / "plugins/partwise_page/static/style.css").read_text()
WORDS = [state.word for state in STATES if state.word != "none"]
#: States that stand beside each other or mean the opposite: nobody may take one for the other.
NEAR = [
    ("fresh", "repaired"),
    ("fresh", "empty"),
    ("fresh", "stale"),
    ("fresh", "failed"),
    ("fresh", "open"),
    ("repaired", "empty"),
    ("stale", "manual"),
    ("stale", "missing"),
    ("stale", "blocked"),
    ("blocked", "failed"),
    ("blocked", "manual"),
    ("blocked", "missing"),
    ("missing", "empty"),
    ("missing", "failed"),
    ("open", "building"),
    ("open", "empty"),
]


def lightness(colour: str) -> float:
    """CIE L* of #rrggbb: 0 is black, 100 is white."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    ]
    light = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return 116 * light ** (1 / 3) - 16 if light > 0.008856 else 903.3 * light


def colours(theme: str) -> dict[str, str]:
    start = ":root {" if theme == "light" else ':root[data-theme="dark"] {'
    block = CSS[CSS.index(start) :].partition("}")[0]
    found = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block))
    return {word: found[word] for word in WORDS}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_two_states_are_equally_light(theme: str) -> None:
    light = {word: lightness(colour) for word, colour in colours(theme).items()}
    for one, other in combinations(WORDS, 2):
        apart = abs(light[one] - light[other])
        assert apart >= (13 if (one, other) in NEAR or (other, one) in NEAR else 6), (one, other, apart)

"""Samples in random histories: each must be the hash filter of what its view should hold, row by row."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from partwise.compile.load import load_texts
from partwise.compile.program import Sampled
from partwise.compile.sample.hashing import hash_of, threshold

from .models import Model, Row
from .workspace import Workspace, assert_same

RULES = ("sample: 50 %\n", "sample: {ratio: 50 %, key: g}\n")
_WRITTEN = ("string", "tinyint", "smallint", "int", "bigint")  # types of which every engine writes the same text


def with_samples(sources: str, models: Sequence[Model], seed: int) -> list[str]:
    """The views as YAML, in most histories with a sample of each that can have one."""
    texts = [model.yaml for model in models]
    if random.Random(f"samples {seed}").random() < 0.3:
        return texts
    for at, text in enumerate(texts):
        for rule in RULES:
            tried = [*texts[:at], f"{text.rstrip()}\n{rule}", *texts[at + 1 :]]
            if load_texts({"a.yaml": "---".join([sources, *tried]).encode()}).ok:
                texts = tried
                break
    return texts


def compare_samples(space: Workspace, wanted: Mapping[str, Mapping[int, Sequence[Row]]]) -> int:
    """Returns how many samples were compared."""
    compared = 0
    for name, view in space.definitions.views.items():
        if view.sampled is None or name not in wanted:
            continue
        sample = {
            p: [{c: v for c, v in row.items() if c not in ("sample_hash", "sample_exact")} for row in rows]
            for p, rows in space.rows(view.sampled.sample).items()
        }
        if any(kind not in _WRITTEN for _, kind in view.sampled.key):
            continue
        small = {p: [row for row in rows if _is_small(view.sampled, row)] for p, rows in wanted[name].items()}
        assert_same({p: rows for p, rows in sample.items() if p in small}, small, view.sampled.sample)
        compared += 1
    return compared


def _is_small(sampled: Sampled, row: Row) -> bool:
    values = {c.lower(): v for c, v in row.items()}
    texts = [None if values[c.lower()] is None else str(values[c.lower()]) for c, _ in sampled.key]
    return hash_of(texts) <= threshold(sampled.ratio)

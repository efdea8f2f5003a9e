"""The fingerprint follows the meaning of a definition, and nothing else."""

import pytest

from partwise.compile.load import load_texts

TEXT = """\
source: m
part: 1 minute
time: t
columns: {t: timestamp, src: string, loss: double}
files: landing/*.csv
---
dimension: d
columns: {node: string}
files: d.csv
---
view: v
part: 1 minute
initialize: |
  SELECT src, SUM(loss) AS total FROM m[i] GROUP BY src
update: |
  SELECT m.src, SUM(m.loss) + MAX(p.total) AS total
  FROM m[j] m JOIN v[j-1] p ON p.src = m.src JOIN d ON d.node = m.src
  GROUP BY m.src
"""


def marks(text: str) -> dict[str, str]:
    found = load_texts({"a.yaml": text.encode()})
    assert [str(p) for p in found.problems] == []
    return {name: table.fingerprint for name, table in found.graph().tables.items()}


BEFORE = marks(TEXT)


@pytest.mark.parametrize(
    "old, new",
    [
        ("SELECT m.src", "select   m.src /* the node */"),
        ("v[j-1]", "V[ -1 + j ]"),
        ("update: |", "description: new\nowner: me\ntags: [a]\nkeep: 5 days\nrepair: manual\nupdate: |"),
        ("update: |", "checks:\n  - expect_table_row_count_to_be_between: {min_value: 0}\nupdate: |"),
        ("update: |", "start: latest\npatience: 1 hour\ntimeout: 5\nengine: submit\nupdate: |"),
        ("files: landing/*.csv", "files: landing/*.csv\nclose: {delay: 5 minutes}\nlate: {accept: 1 day}\npoll: 5"),
        ("double", "DOUBLE"),
    ],
)
def test_what_does_not_count(old: str, new: str) -> None:
    assert marks(TEXT.replace(old, new)) == BEFORE


@pytest.mark.parametrize(
    "old, new, changed",
    [
        ("SUM(m.loss)", "MAX(m.loss)", {"v"}),
        ("SUM(loss) AS total FROM m[i]", "MAX(loss) AS total FROM m[i]", {"v"}),
        ("v[j-1]", "v[j-2]", {"v"}),
        ("update: |", "start: 2026-10-03\nupdate: |", {"v"}),
        ("loss: double", "loss: float", {"m"}),
        ("landing/*.csv", "landing/*.parquet", {"m"}),
        ("files: landing/*.csv", "delta: landing/m", {"m"}),
        ("d.csv", "e.csv", {"d"}),
        ("time: t", "time: {column: src}", {"m"}),
    ],
)
def test_what_counts(old: str, new: str, changed: set[str]) -> None:
    after = marks(TEXT.replace(old, new))
    assert {name for name in BEFORE if after[name] != BEFORE[name]} == changed


def test_part_lengths_of_inputs_count() -> None:
    hourly = "---\nview: h\npart: 1 hour\nupdate: SELECT src FROM m[60*j..60*j+59]\n"
    source = TEXT.split("---")[0]
    before = marks(source + hourly)
    after = marks(source.replace("1 minute", "1 hour") + hourly.replace("60*j..60*j+59", "j"))
    assert before["h"] != after["h"]


def test_a_fingerprint_stays_the_same_between_releases() -> None:
    """If this fails, every part of every view would be recomputed after an upgrade. Is that meant?"""
    assert BEFORE["v"] == "a6eb47a5f1d05db123153febb265f708"
    assert BEFORE["m"] == "2973068b1e2add0ab86259ab60552fcb"

"""Rows that were quarantined are found again in their file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from partwise.sources.files import ListedFile
from spark_jobs.ingest.files.find import FoundFile
from spark_jobs.ingest.files.layout import Layout
from spark_jobs.ingest.files.lines import SetAside, located

CSV = Layout("csv", (("t", "string"), ("src", "string"), ("loss", "string")))
HEADER = '["t", "src", "loss"]'
TELLING = ["t", "src"]


def found(tmp_path: Path, name: str, text: str) -> FoundFile:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    kind = "csv" if "csv" in name else "json"
    return FoundFile(ListedFile(name, path.stat().st_size, 1), str(path), "h", kind, ())  # type: ignore[arg-type]


def test_lines_of_csv(tmp_path: Path) -> None:
    text = '\ufefft,src,loss\r\n\r\n10:05,a,1\r\n10:05,a,x\r\n2026-10-03,b,2\r\n10:05,a,3\r\n"soon","c, d",\r\n,e,1'
    rows = [
        SetAside(1, 3, '{"t":"10:05","src":"a","loss":3.0}', None),
        SetAside(1, 1, "10:05,a,x", HEADER, raw=True),
        SetAside(1, 3, '{"t":"10:05","src":"a","loss":1.0}', None),
        SetAside(1, 3, '{"t":"soon","src":"c, d"}', None),
        SetAside(1, 2, '{"src":"e","loss":1.0}', None),
        SetAside(1, 2, '{"src":"nowhere"}', None),
    ]
    for name in ("a.csv", "a.csv.gz"):
        done = located(rows, found(tmp_path, name, text), CSV, TELLING)
        assert [(row.line, row.text) for row in done] == [
            (3, "10:05,a,1"),
            (4, "10:05,a,x"),
            (6, "10:05,a,3"),
            (7, '"soon","c, d",'),
            (8, ",e,1"),
            (None, '{"src":"nowhere"}'),
        ]
        assert [row.layout for row in done] == [HEADER] * 5 + [None]


def test_a_record_of_several_lines_is_where_it_begins(tmp_path: Path) -> None:
    text = 't,src,loss\nnever,"a\nb",1\nnever,c,2\n'
    rows = [SetAside(1, 3, json.dumps({"t": "never", "src": src}), None) for src in ("a\nb", "c")]
    done = located(rows, found(tmp_path, "a.csv", text), CSV, TELLING)
    assert [(row.line, row.text) for row in done] == [(2, 'never,"a\nb",1'), (4, "never,c,2")]


def test_lines_of_json(tmp_path: Path) -> None:
    lines = [
        '{"t": "10:05", "more": 1, "src": "a"}',
        "nonsense",
        '{"T": 5, "src": "b"}',
        '{"t": "10:05", "src": "a", "loss": "x"}',
    ]
    rows = [
        SetAside(1, 1, lines[3], None, raw=True),
        SetAside(1, 1, "nonsense", None, raw=True),
        SetAside(1, 3, '{"t":"5","src":"b"}', None),
        SetAside(1, 3, '{"t":"10:05","src":"a"}', None),
    ]
    done = located(rows, found(tmp_path, "a.json", "\n".join(lines)), Layout("json", ()), TELLING)
    assert [(row.line, row.text) for row in done] == [(4, lines[3]), (2, lines[1]), (3, lines[2]), (1, lines[0])]

"""Which CSV files have values with line breaks, against Python's own reader of the whole text."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.ingest.files.quoted import NeverClosed, Quotes, line_breaks_in

values = st.text(alphabet='ab",\n\r ', max_size=6)
records = st.lists(st.lists(values, min_size=2, max_size=3), max_size=6)


def odd(text: bytes, size: int) -> bool:
    quotes = Quotes()
    for at in range(0, len(text), size):
        quotes.see(text[at : at + size])
    return quotes.odd()


@given(records, st.integers(1, 7))
def test_no_file_with_line_breaks_is_missed(rows: list[list[str]], size: int) -> None:
    written = io.StringIO(newline="")
    csv.writer(written).writerows(rows)
    text = written.getvalue().encode()
    broken = any(letter in value for row in rows for value in row for letter in "\r\n")
    if broken:
        assert odd(text, size)
    assert odd(text, size) == odd(text, len(text) + 1)  # however it is cut into pieces


@pytest.mark.parametrize(
    ("text", "breaks"),
    [
        ('a,b\n1,"x\ny"\n', True),
        ('a,b\n1,"x\r\ny"\r\n', True),
        ('a,b\n1,5" pipe\n2,6" pipe\n', False),
        ('a,b\n1,"5"" pipe"\n', False),
        ("a,b\n", False),
        ("", False),
    ],
)
def test_line_breaks_are_told_from_marks(tmp_path: Path, text: str, breaks: bool) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    assert line_breaks_in(str(path), packed=False) is breaks
    path.write_bytes(gzip.compress(text.encode()))
    assert line_breaks_in(str(path), packed=True) is breaks


@pytest.mark.parametrize("text", ['a,b\n1,"x', 'a,b\n1,"x\n2,y\n', 'a,b\n1,"x\n2,y"\n3,"\n'])
def test_a_mark_that_is_never_closed_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(NeverClosed, match="in line"):
        line_breaks_in(str(path), packed=False)

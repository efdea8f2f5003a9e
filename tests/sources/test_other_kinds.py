"""Files that are something else than their name says are refused with what they are."""

from __future__ import annotations

import pytest

from partwise.sources.files import ListedFile
from spark_jobs.ingest.files.find import FoundFile, RefusedFile, Utf8
from spark_jobs.ingest.files.layout import layout_of

COLUMNS = {"at": "timestamp", "item": "string"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("at,item".encode("utf-16"), "it is UTF-16; save it as UTF-8"),
        ("at,item".encode("utf-16-be"), None),  # no mark at its beginning, and each byte is UTF-8
        (b"\xfe\xff\x00a", "it is UTF-16"),
        (b"PK\x03\x04\xff", "it is a zip archive or a spreadsheet"),
        (b"\x1f\x8b\x08\xff", "its name must end with .gz"),
        (b"at,item\nPK\x03\x04\xff", "byte 0xff at position 12 (line 2)"),
    ],
)
def test_what_is_not_text_is_known_by_its_beginning(content: bytes, message: str | None) -> None:
    seen = Utf8()
    if message is None:
        seen.see(content)
        return
    with pytest.raises(RefusedFile) as why:
        seen.see(content)
    assert message in str(why.value)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (["at;item"], "its columns are separated by semicolons, not by commas: 'at;item'"),
        (["AT\tItem\tmore"], "its columns are separated by tabs, not by commas"),
        (["2026-10-03;tea"], "it has no header"),
        (["2026-10-03", "tea"], "it has no header"),
    ],
)
def test_other_separators_are_told(header: list[str], message: str) -> None:
    found = FoundFile(ListedFile("a.csv", 10, 0), "a.csv", "", "csv", tuple((name, "string") for name in header))
    with pytest.raises(RefusedFile) as why:
        layout_of(found, COLUMNS, "at")
    assert message in str(why.value)

"""In which order a translated pattern takes the rows of a group."""

from __future__ import annotations

import re

from partwise.compile import Translation


def sorted_by(translation: Translation) -> list[str]:
    """The fields that rows are sorted by, the sort keys first: `expression AS name`, or a column."""
    found = re.search(
        r"array_sort\(collect_list\(struct\(__j AS __at, (.*?)\)\)\)", translation.views[0].single_pass or ""
    )
    assert found is not None
    return found[1].split(", ")

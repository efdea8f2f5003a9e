"""Line breaks: generated SQL is read by people."""

from __future__ import annotations

from partwise.sql.parse import tokenise

WIDTH = 100


def filled(items: list[str], indent: int) -> str:
    """A list with commas, as many items a line as fit."""
    lines: list[str] = [""]
    for at, item in enumerate(items):
        text = item + ("," if at < len(items) - 1 else "")
        if lines[-1] and indent + len(lines[-1]) + 1 + len(text) > WIDTH:
            lines.append(text)
        else:
            lines[-1] = f"{lines[-1]} {text}".strip()
    return ("\n" + " " * indent).join(lines)


def unfolded(text: str, indent: int) -> str:
    """A long CASE with one WHEN a line."""
    start = text.find("CASE WHEN")
    if start < 0 or len(text) <= WIDTH - indent:
        return text
    out, depth, cases, at = text[:start], 0, 0, start
    for token in tokenise(text[start:]).tokens:
        here = start + token.start
        word = text[here : start + token.end + 1]
        depth += (word == "(") - (word == ")")
        if word in ("WHEN", "ELSE", "END") and depth == 0 and cases == 1:
            pad = " " * (indent if word == "END" else indent + 2)
            out, at = out + text[at:here].rstrip() + "\n" + pad, here
        cases += (word == "CASE") - (word == "END")
        if cases == 0 and word == "END":
            break
    return out + text[at:]

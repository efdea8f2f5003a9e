"""Line charts as SVG text, for the figures in docs/benchmarks: no library, no pixels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 64, 150, 36, 48
COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#8d6a9f", "#b08900", "#444444")
FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks"
Points = Sequence[tuple[float, float]]


def draw(path: Path, title: str, across: str, upwards: str, lines: Mapping[str, Points]) -> None:
    """One line with dots for each name. `across` is logarithmic where its values spread over a decade."""
    xs = sorted({x for points in lines.values() for x, _ in points})
    top = max(y for points in lines.values() for _, y in points) * 1.05
    wide = len(xs) > 1 and xs[0] > 0 and xs[-1] / xs[0] >= 10

    def x_of(x: float) -> float:
        scale = math.log if wide else float
        low, high = scale(xs[0]), scale(xs[-1])
        return LEFT + (WIDTH - LEFT - RIGHT) * ((scale(x) - low) / (high - low) if high > low else 0.5)

    def y_of(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / top

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 20, title, "start", "bold"),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, across),
        f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(upwards)}</text>',
    ]
    for tick in _ticks(top):
        y = y_of(tick)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        out.append(_text(LEFT - 6, y + 4, f"{tick:g}", "end"))
    out += [_text(x_of(x), HEIGHT - BOTTOM + 18, f"{x:,g}" if x < 1e6 else f"{x / 1e6:g}M") for x in xs]
    for at, (name, points) in enumerate(lines.items()):
        colour = COLOURS[at % len(COLOURS)]
        places = [(x_of(x), y_of(y)) for x, y in sorted(points)]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        out.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        y = TOP + 18 * at + 6
        out.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        out.append(_text(WIDTH - RIGHT + 30, y, name, "start"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*out, "</svg>", ""]), encoding="utf-8")


def _text(x: float, y: float, text: str, anchor: str = "middle", weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'


def _ticks(top: float) -> list[float]:
    step = 10 ** math.floor(math.log10(top))
    step = next(s for s in (step / 5, step / 2, step, step * 2) if top / s <= 6)
    return [step * n for n in range(int(top / step) + 1)]

// Bars for a few hundred numbers.
import { svg } from "./dom.js";

const HIGH = 110;
const WIDE = 620;

export function bars(points, value, text, click) {
  const most = Math.max(...points.map(value), 0);
  const wide = Math.min(14, WIDE / points.length);
  const drawn = svg("svg", { viewBox: `0 0 ${WIDE + 44} ${HIGH + 6}`, class: "bars", role: "img" });
  for (const share of [0, 0.5, 1]) {
    const y = HIGH - share * (HIGH - 12);
    drawn.append(svg("line", { x1: 40, x2: 44 + WIDE, y1: y, y2: y, class: "rule" }));
    drawn.append(svg("text", { x: 36, y: y + 4, class: "number" }, short(most * share)));
  }
  points.forEach((point, at) => {
    const high = most ? (value(point) / most) * (HIGH - 12) : 0;
    drawn.append(svg("rect", {
      x: 42 + at * wide, y: HIGH - Math.max(1, high), width: Math.max(0.5, wide - 1), height: Math.max(1, high),
      class: click ? "bar click" : "bar", onclick: click ? () => click(point) : null,
    }, svg("title", {}, text(point))));
  });
  return drawn;
}

function short(number) {
  if (number >= 1e6) return `${(number / 1e6).toFixed(1)}M`;
  if (number >= 1e4) return `${Math.round(number / 1e3)}k`;
  return number >= 10 || number === 0 ? String(Math.round(number)) : number.toFixed(1);
}

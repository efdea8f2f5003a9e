// Bars for a few hundred numbers, with what they are of and when below them.
import { svg } from "./dom.js";
import { brief } from "./time.js";

const HIGH = 110;
const WIDE = 620;

// value, text, at: of a point, its number, its words and its moment.
export function bars(points, { value, text, at, click }) {
  const most = Math.max(...points.map(value), 0);
  const wide = Math.min(14, WIDE / points.length);
  const drawn = svg("svg", { viewBox: `0 0 ${WIDE + 44} ${HIGH + 18}`, class: "bars", role: "img" });
  for (const share of [0, 0.5, 1]) {
    const y = HIGH - share * (HIGH - 12);
    drawn.append(svg("line", { x1: 40, x2: 44 + WIDE, y1: y, y2: y, class: "rule" }));
    drawn.append(svg("text", { x: 36, y: y + 4, class: "number" }, short(most * share)));
  }
  const wanted = points.length > 2 ? [0, Math.floor((points.length - 1) / 2), points.length - 1] : points.map((_, n) => n);
  let free = 0;
  for (const n of wanted) {
    const label = brief(at(points[n]));
    const x = Math.min(42 + n * wide, WIDE + 44 - label.length * 5.2);
    if (x < free) continue;
    drawn.append(svg("text", { x, y: HIGH + 14, class: "when" }, label));
    free = x + label.length * 5.2 + 12;
  }
  points.forEach((point, n) => {
    const high = most ? (value(point) / most) * (HIGH - 12) : 0;
    drawn.append(svg("rect", {
      x: 42 + n * wide, y: HIGH - Math.max(1, high), width: Math.max(0.5, wide - 1), height: Math.max(1, high),
      class: click ? "bar click" : "bar", onclick: click ? () => click(point) : null,
    }, svg("title", {}, text(point))));
  });
  return drawn;
}

function short(number) {
  if (number >= 1e6) return `${(number / 1e6).toFixed(1)}M`;
  if (number >= 1e4) return `${Math.round(number / 1e3)}k`;
  if (number >= 10 || number === 0) return String(Math.round(number));
  return number >= 1 ? number.toFixed(1) : number.toPrecision(2);
}

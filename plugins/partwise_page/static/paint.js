// Drawing: the cells of the rows in sight, and the axis. Colours come from the style sheet, marks say the same again.
import { ticks } from "./time.js";

export const ROW = 24;
const WORDS = { e: "empty", f: "fresh", r: "repaired", o: "open", b: "building", m: "missing", h: "manual", s: "stale", w: "blocked", x: "failed" };

export const wordOf = (letter) => WORDS[letter] ?? "none";

// "12f1s" from cell 100 on -> [[100, 12, "f"], [112, 1, "s"]]
export function runs(row) {
  const found = [];
  let at = row.first;
  for (const [, count, letter] of row.cells.matchAll(/(\d+)(\D)/g)) {
    found.push([at, +count, letter]);
    at += +count;
  }
  return found;
}

export function letterAt(row, k) {
  for (const [at, count, letter] of row.runs) if (k >= at && k < at + count) return letter;
  return "-";
}

let colours = {};

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = [...Object.values(WORDS), "mark", "line", "text", "quiet", "accent", "band"];
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

export function fit(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const on = canvas.getContext("2d");
  on.setTransform(ratio, 0, 0, ratio, 0, 0);
  on.clearRect(0, 0, width, height);
  return on;
}

// lines: [{row, y}] in pixels of the canvas. shown: {begin, end, width, height, cursor, selected, only, pulse}
export function drawCells(canvas, lines, shown) {
  const on = fit(canvas, shown.width, shown.height);
  const each = shown.width / (shown.end - shown.begin);
  const x = (at) => (at - shown.begin) * each;
  on.strokeStyle = colours.line;
  on.lineWidth = 1;
  on.beginPath();
  for (const tick of ticks(shown.begin, shown.end, shown.width)) {
    const at = Math.round(x(tick.at)) + 0.5;
    on.moveTo(at, 0);
    on.lineTo(at, shown.height);
  }
  on.stroke();
  for (const { row, y } of lines) {
    if (shown.cursor?.table === row.table) {
      on.fillStyle = colours.band;
      on.fillRect(0, y, shown.width, ROW);
    }
    if (row.kind === "dimension") drawWhole(on, row, y, shown);
    else drawRow(on, row, y, x, each, shown);
  }
  outline(on, lines, x, shown);
}

function drawWhole(on, row, y, shown) {
  const letter = row.runs[0]?.[2] ?? "-";
  if (letter === "-") return;
  on.globalAlpha = 0.55;
  on.fillStyle = colours[wordOf(letter)];
  on.fillRect(1, y + ROW / 2 - 2, shown.width - 2, 4);
  on.globalAlpha = 1;
}

function drawRow(on, row, y, x, each, shown) {
  const wide = row.cell * each;
  const gap = wide >= 5 ? 1 : wide >= 3 ? 0.5 : 0;
  const top = y + 3;
  const high = ROW - 6;
  for (const [at, count, letter] of row.runs) {
    if (letter === "-") continue;
    const word = wordOf(letter);
    on.fillStyle = colours[word];
    on.globalAlpha = shown.only && letter !== "r" ? 0.15 : letter === "b" ? shown.pulse : 1;
    const first = Math.max(at, Math.floor(shown.begin / row.cell));
    const last = Math.min(at + count, Math.ceil(shown.end / row.cell));
    if (gap === 0) {
      on.fillRect(x(first * row.cell), top, Math.max(1, (last - first) * wide), high);
      continue;
    }
    const radius = Math.min(3, wide / 4);
    for (let k = first; k < last; k++) {
      const left = x(k * row.cell) + gap / 2;
      on.beginPath();
      on.roundRect(left, top, wide - gap, high, radius);
      on.fill();
      if (wide >= 9) mark(on, word, left, top, wide - gap, high);
    }
  }
  on.globalAlpha = 1;
}

// Who does not see colours sees these.
function mark(on, word, left, top, wide, high) {
  const x = left + Math.min(wide, 40) / 2;
  const y = top + high / 2;
  on.strokeStyle = on.fillStyle = colours.mark;
  on.lineWidth = 1.5;
  on.beginPath();
  if (word === "failed") lines(on, [x - 3, y - 3, x + 3, y + 3], [x + 3, y - 3, x - 3, y + 3]);
  else if (word === "blocked") lines(on, [x - 2, y - 3, x - 2, y + 3], [x + 2, y - 3, x + 2, y + 3]);
  else if (word === "stale") lines(on, [x - 3, y + 3, x + 3, y - 3]);
  else if (word === "manual") lines(on, [x - 3, y, x + 3, y], [x, y - 3, x, y + 3]);
  else if (word === "missing") lines(on, [x - 2, y, x + 2, y]);
  else if (word === "repaired") on.arc(x, y, 2.2, 0, 7);
  else if (word === "open" || word === "empty") on.arc(x, y, 2.2, 0, 7);
  if (word === "repaired") on.fill();
  else on.stroke();
  on.fillStyle = colours[word];
}

function lines(on, ...all) {
  for (const [a, b, c, d] of all) {
    on.moveTo(a, b);
    on.lineTo(c, d);
  }
}

function outline(on, rows, x, shown) {
  for (const [what, wide] of [[shown.selected, 2], [shown.cursor, 1.5]]) {
    const line = what && rows.find(({ row }) => row.table === what.table);
    if (!line) continue;
    const whole = line.row.kind === "dimension";
    const left = whole ? 1 : x(what.begin);
    const right = whole ? shown.width - 1 : x(what.end);
    on.strokeStyle = what === shown.selected ? colours.accent : colours.text;
    on.lineWidth = wide;
    on.strokeRect(left, line.y + 2, Math.max(3, right - left), ROW - 4);
  }
}

export function drawAxis(canvas, begin, end, width, height, cursor) {
  const on = fit(canvas, width, height);
  const x = (at) => ((at - begin) / (end - begin)) * width;
  on.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  on.textBaseline = "middle";
  if (cursor) {
    on.fillStyle = colours.band;
    on.fillRect(x(cursor.begin), 0, Math.max(2, x(cursor.end) - x(cursor.begin)), height);
  }
  let free = 0;
  for (const tick of ticks(begin, end, width)) {
    const at = Math.round(x(tick.at)) + 0.5;
    on.strokeStyle = colours.line;
    on.beginPath();
    on.moveTo(at, height - 7);
    on.lineTo(at, height);
    on.stroke();
    const size = on.measureText(tick.text).width;
    if (at < free || at + size + 4 > width) continue;
    on.fillStyle = tick.strong ? colours.text : colours.quiet;
    on.fillText(tick.text, at + 4, height / 2);
    free = at + size + 14;
  }
}

// Drawing: the cells of the rows in sight, and the axis. Colours come from the style sheet, marks say the same again.
import { ticks } from "./time.js";

export const ROW = 24;
export const MARKED = 7; // pixels from which on a cell bears its mark
const DIMMED = 0.15;
const WORDS = { e: "empty", f: "fresh", r: "repaired", o: "open", b: "building", m: "missing", d: "deferred", h: "manual", s: "stale", w: "blocked", x: "failed" };

export const wordOf = (letter) => WORDS[letter] ?? "none";

function unpack(text, first) {
  const found = [];
  let at = first;
  for (const [, count, letter] of text.matchAll(/(\d+)(\D)/g)) {
    found.push([at, at + +count, letter]);
    at += +count;
  }
  return found;
}

// "12f1s" and "10-3c" from cell 100 on -> [[100, 10, "f", false], [110, 2, "f", true], [112, 1, "s", true]]
export function runs(row) {
  const found = [];
  const changes = unpack(row.changed, row.first);
  let next = 0;
  for (const [begin, end, letter] of unpack(row.cells, row.first)) {
    for (let at = begin; at < end; ) {
      while (changes[next] && changes[next][1] <= at) next += 1;
      const until = Math.min(end, changes[next]?.[1] ?? end);
      found.push([at, until - at, letter, changes[next]?.[2] === "c"]);
      at = until;
    }
  }
  return found;
}

// "10-3e" from cell 100 on -> [[110, 113]]: cells that bear a second mark, as the text says.
export function markedRuns(text, first) {
  return unpack(text, first).filter(([, , letter]) => letter !== "-").map(([begin, end]) => [begin, end]);
}

export function runAt(row, k) {
  return row.runs.find(([at, count]) => k >= at && k < at + count) ?? [k, 1, "-", false];
}

let colours = {};

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = [...Object.values(WORDS), "mark", "mark-light", "line", "text", "quiet", "accent", "band"];
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// Dark marks on light states, light marks on dark ones.
function markOn(word) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colours[word].slice(at, at + 2), 16) / 255);
  return colours[0.2126 * r ** 2.2 + 0.7152 * g ** 2.2 + 0.0722 * b ** 2.2 > 0.2 ? "mark" : "mark-light"];
}

// A cell by itself, for the legend.
export function sample(canvas, word) {
  const on = fit(canvas, 13, 16);
  drawCell(on, { estimated: "stale", mixed: "fresh" }[word] ?? word, 0, 0, 13, 16, 3);
  if (word === "estimated") drawEstimated(on, 0, 0, 13, 16, 0);
  if (word === "mixed") drawMixed(on, 0, 0, 13);
  if (word === "repaired") drawChange(on, word, 0, 0, 13, 16);
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
  const [, , letter, changed] = row.runs[0] ?? [0, 0, "-", false];
  if (letter === "-") return;
  on.globalAlpha = shown.only && !changed ? DIMMED : 0.55;
  on.fillStyle = colours[wordOf(letter)];
  on.fillRect(1, y + ROW / 2 - 2, shown.width - 2, 4);
  on.globalAlpha = 1;
}

function drawRow(on, row, y, x, each, shown) {
  const wide = row.cell * each;
  const gap = wide >= 5 ? 1 : wide >= 3 ? 0.5 : 0;
  const top = y + 3;
  const high = ROW - 6;
  for (const [at, count, letter, changed] of row.runs) {
    if (letter === "-") continue;
    const word = wordOf(letter);
    on.globalAlpha = shown.only && !changed ? DIMMED : letter === "b" ? shown.pulse : 1;
    const first = Math.max(at, Math.floor(shown.begin / row.cell));
    const last = Math.min(at + count, Math.ceil(shown.end / row.cell));
    if (gap === 0) {
      const left = x(first * row.cell);
      on.fillStyle = colours[word];
      on.fillRect(left, top, Math.max(1, (last - first) * wide), high);
      if (changed) drawChange(on, word, left, top, (last - first) * wide, high, true);
      continue;
    }
    for (let k = first; k < last; k++) {
      const left = x(k * row.cell) + gap / 2;
      drawCell(on, word, left, top, wide - gap, high, Math.min(3, wide / 4));
      if (changed) drawChange(on, word, left, top, wide - gap, high, wide < MARKED);
    }
  }
  on.globalAlpha = shown.only ? DIMMED : 1;
  for (const [begin, end] of row.estimated) drawEstimated(on, x(begin * row.cell), top, x(end * row.cell), high, gap);
  for (const [begin, end] of row.mixed) {
    for (let k = begin; k < end; k++) drawMixed(on, x(k * row.cell) + gap / 2, top, wide - gap);
  }
  on.globalAlpha = 1;
}

// A dark corner: computed while inputs were not up to date, and not repaired since.
function drawMixed(on, left, top, wide) {
  const size = Math.min(7, Math.max(2, wide));
  on.fillStyle = colours.text;
  on.beginPath();
  on.moveTo(left, top);
  on.lineTo(left + size, top);
  on.lineTo(left, top + size);
  on.fill();
}

// Half filled with the colour of fresh parts: not refreshed, but a fresh sample tells what a refresh would give.
function drawEstimated(on, left, top, right, high, gap) {
  on.fillStyle = colours.fresh;
  on.fillRect(left + gap / 2, top + high / 2 + 2, Math.max(1, right - left - gap), high / 2 - 2);
}

function drawCell(on, word, left, top, wide, high, radius) {
  on.fillStyle = colours[word];
  on.beginPath();
  on.roundRect(left, top, wide, high, radius);
  on.fill();
  if (wide + 1 >= MARKED) mark(on, word, left, top, wide, high);
}

// Who does not see colours sees these. Fresh bears none: it is what most cells are.
function mark(on, word, left, top, wide, high) {
  const x = left + Math.min(wide, 40) / 2;
  const y = top + high / 2 - 1;
  const r = Math.min(3, wide / 2 - 1);
  on.strokeStyle = on.fillStyle = markOn(word);
  on.lineWidth = 1.5;
  on.beginPath();
  if (word === "failed") lines(on, [x - r, y - r, x + r, y + r], [x + r, y - r, x - r, y + r]);
  else if (word === "blocked") lines(on, [x - r + 1, y - 3, x - r + 1, y + 3], [x + r - 1, y - 3, x + r - 1, y + 3]);
  else if (word === "stale") lines(on, [x - r, y + r, x + r, y - r]);
  else if (word === "deferred") lines(on, [x, y - r, x, y], [x, y, x + r, y]);
  else if (word === "manual") lines(on, [x - r, y, x + r, y], [x, y - r, x, y + r]);
  else if (word === "missing") lines(on, [x - r, y, x + r, y]);
  else if (word === "building") lines(on, [x - r + 1, y - 3, x + r, y], [x + r, y, x - r + 1, y + 3]);
  else if (word === "open") on.arc(x, y, Math.min(2.2, r), 0, 7);
  else if (word === "empty") lines(on, [x - r, top + high - 4, x + r, top + high - 4]);
  on.stroke();
}

// The content changed since the chosen time, whatever the state is now.
function drawChange(on, word, left, top, wide, high, narrow = false) {
  on.fillStyle = markOn(word);
  on.beginPath();
  if (narrow) on.rect(left, top + high - 4, Math.max(1, wide), 2.5);
  else on.arc(left + Math.min(wide, 40) / 2, top + high - 3.6, 2, 0, 7);
  on.fill();
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

// The heat-map: which rows are shown, where cells are, and how people move in it.
import { byId, make, replace, say } from "./dom.js";
import { drawAxis, drawCells, markedRuns, readColours, ROW, runAt, runs, wordOf } from "./paint.js";
import { duration, length, local, plural, utc } from "./time.js";

const TROUBLE = ["failed", "blocked", "stale", "manual", "deferred", "missing", "building"];

export class HeatMap {
  // wanted: {open(selection), hover(selection, event), window(begin, end), pan, zoom}
  constructor(wanted) {
    this.wanted = wanted;
    this.data = null;
    this.rows = new Map();
    this.lines = [];
    this.unfolded = new Set();
    this.filter = "";
    this.focus = null;
    this.only = false;
    this.cursor = this.selected = null;
    this.pulse = 1;
    this.listen();
    readColours();
  }

  show(data) {
    this.data = data;
    this.rows = new Map(data.rows.map((row) => [row.table, { ...row, runs: runs(row), estimated: markedRuns(row.estimated, row.first), mixed: markedRuns(row.mixed, row.first) }]));
    this.arrange();
  }

  // Which rows stand where. Helpers are folded under their view, unless they are searched for.
  arrange() {
    if (!this.data) return;
    const wanted = this.filter.trim().toLowerCase();
    const helpers = new Map();
    for (const row of this.rows.values()) {
      if (row.helper_of) helpers.set(row.helper_of, [...(helpers.get(row.helper_of) ?? []), row.table]);
    }
    this.lines = [];
    let y = 0;
    const labels = [];
    for (const group of this.data.groups) {
      const names = group.tables.filter((name) => this.isShown(this.rows.get(name), wanted));
      if (!names.length) continue;
      labels.push(make("div.group", { style: `top:${y}px` }, group.title));
      y += ROW;
      for (const name of names) {
        const row = this.rows.get(name);
        this.lines.push({ row, y });
        labels.push(this.label(row, y, helpers.get(name) ?? []));
        y += ROW;
      }
    }
    if (!labels.length) labels.push(make("p.nothing", {}, this.rows.size ? "No table is called so." : "There are no tables yet."));
    this.height = y;
    byId("inner").style.height = `${Math.max(y, 60)}px`;
    replace(byId("labels"), labels);
    this.draw();
  }

  isShown(row, wanted) {
    if (this.focus && !this.focus.has(row.table)) return false;
    if (wanted) return row.table.toLowerCase().includes(wanted);
    return !row.helper_of || this.unfolded.has(row.helper_of);
  }

  label(row, y, helpers) {
    const trouble = TROUBLE.filter((word) => row.counts[word]);
    const open = this.unfolded.has(row.table);
    const kind = row.helper_of ? "helper" : row.kind;
    return make(
      "div.label",
      {
        style: `top:${y}px`,
        "data-table": row.table,
        "data-kind": kind,
        "aria-selected": this.cursor?.table === row.table ? "true" : null,
        title: `${row.table}: ${kind}${row.length ? `, parts of ${length(row.length)}` : ""}. ${this.summary(row)}`,
      },
      helpers.length && !this.filter
        ? make("button.fold", {
            "aria-expanded": String(open),
            title: `${open ? "Hides" : "Shows"} ${plural(helpers.length, "generated helper")}`,
            onclick: () => this.fold(row.table),
          }, open ? "▾" : "▸")
        : make("span.fold"),
      make("button.name", { onclick: () => this.wanted.table(row.table) }, row.table),
      row.writer ? make("span.writer", { title: `being written by ${row.writer}` }) : null,
      row.late ? make("span.late", { title: `${duration(row.late)} past its deadline: see its freshness` }, "late") : null,
      trouble.length
        ? make("span.count", { "data-state": trouble[0], title: this.summary(row) }, `${row.counts[trouble[0]].toLocaleString()} ${trouble[0]}`)
        : null,
    );
  }

  summary(row) {
    const said = Object.entries(row.counts).map(([word, count]) => `${count.toLocaleString()} ${word}`);
    return said.length ? said.join(", ") : "nothing in this stretch of time";
  }

  fold(table) {
    if (!this.unfolded.delete(table)) this.unfolded.add(table);
    this.arrange();
  }

  draw() {
    if (!this.data) return;
    const scroll = byId("scroll");
    const canvas = byId("cells");
    const width = canvas.parentElement.clientWidth;
    if (!width) return;
    this.width = width;
    const { begin, end } = this.data;
    const top = scroll.scrollTop;
    const height = scroll.clientHeight;
    const lines = this.lines
      .filter(({ y }) => y + ROW > top && y < top + height)
      .map(({ row, y }) => ({ row, y: y - top }));
    const { cursor, selected, only, pulse } = this;
    drawCells(canvas, lines, { begin, end, width, height, cursor, selected, only, pulse });
    drawAxis(byId("axis"), begin, end, width, byId("axis").parentElement ? 34 : 0, cursor);
    this.building = lines.some(({ row }) => row.counts.building);
  }

  recolour() {
    readColours();
    this.draw();
  }

  // The cell at a point of the canvas.
  at(event) {
    const box = byId("cells").getBoundingClientRect();
    const y = event.clientY - box.top + byId("scroll").scrollTop;
    const line = this.lines.find((each) => y >= each.y && y < each.y + ROW);
    const x = event.clientX - box.left;
    if (!line || x < 0 || x > this.width) return null;
    const { begin, end } = this.data;
    return this.cell(line.row, begin + (x / this.width) * (end - begin));
  }

  cell(row, moment) {
    const whole = row.kind === "dimension";
    const k = whole ? row.first : Math.floor(moment / row.cell);
    const [begin, end] = whole ? [this.data.begin, this.data.end] : [k * row.cell, (k + 1) * row.cell];
    const [, , letter, changed] = runAt(row, k);
    return { table: row.table, begin, end, word: wordOf(letter), changed, row };
  }

  // Where a cell is on the screen: for tests, and for bringing it into sight.
  boxOf(table, moment) {
    const line = this.lines.find(({ row }) => row.table === table);
    const box = byId("cells").getBoundingClientRect();
    const { begin, end } = this.data;
    const found = this.cell(line.row, moment);
    const x = (at) => box.left + ((at - begin) / (end - begin)) * this.width;
    return { left: x(found.begin), right: x(found.end), y: box.top + line.y - byId("scroll").scrollTop + ROW / 2, word: found.word, changed: found.changed };
  }

  listen() {
    const canvas = byId("cells");
    byId("scroll").addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(byId("scroll"));
    let from = null;
    canvas.addEventListener("pointermove", (event) => {
      const found = this.at(event);
      if (from && found) {
        this.selected = this.stretch(from, this.cell(from.row, this.momentAt(event)));
        this.draw();
      }
      this.wanted.hover(from ? null : found, event);
    });
    canvas.addEventListener("pointerleave", () => this.wanted.hover(null));
    canvas.addEventListener("pointerdown", (event) => {
      from = event.button === 0 ? this.at(event) : null;
      if (!from) return;
      canvas.setPointerCapture(event.pointerId);
      this.selected = this.cursor = from;
      byId("heat").focus({ preventScroll: true });
      this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!from) return;
      const chosen = this.stretch(from, this.cell(from.row, this.momentAt(event)));
      from = null;
      this.choose(chosen);
    });
    byId("heat").addEventListener("keydown", (event) => this.key(event));
    byId("scroll").addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.wanted.zoom(event.deltaY > 0 ? 1.4 : 1 / 1.4, this.momentAt(event));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.wanted.pan(((event.deltaX || event.deltaY) / this.width) * 1.5);
      }
    }, { passive: false });
    byId("axis").addEventListener("pointermove", (event) => {
      if (this.data) event.target.title = utc(Math.round(this.momentAt(event)));
    });
    const calm = matchMedia("(prefers-reduced-motion: reduce)");
    setInterval(() => {
      if (!this.building || calm.matches || document.hidden) return;
      this.pulse = this.pulse === 1 ? 0.6 : 1;
      this.draw();
    }, 500);
  }

  momentAt(event) {
    const box = byId("cells").getBoundingClientRect();
    const { begin, end } = this.data;
    return begin + (Math.min(Math.max(0, event.clientX - box.left), this.width - 1) / this.width) * (end - begin);
  }

  stretch(one, other) {
    if (one.table !== other.table || one.row.kind === "dimension") return one;
    return { ...one, begin: Math.min(one.begin, other.begin), end: Math.max(one.end, other.end) };
  }

  choose(selection) {
    this.selected = selection;
    this.draw();
    this.wanted.open(selection);
  }

  key(event) {
    if (!this.data || event.target.matches("input, select")) return;
    const start = this.cursor && this.rows.get(this.cursor.table) ? this.cursor : null;
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
    if (event.key in steps && !event.ctrlKey) this.move(start, steps[event.key], event.shiftKey);
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") this.climb(start, event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Home") this.jump(start, this.data.begin);
    else if (event.key === "End") this.jump(start, this.data.end - 1);
    else if (event.key === "Enter" && start && event.target === byId("heat")) this.choose(this.selected?.table === start.table && event.shiftKey ? this.selected : start);
    else return;
    event.preventDefault();
  }

  move(start, by, extend) {
    if (!start) return this.jump(null, this.data.end - 1);
    const row = this.rows.get(start.table);
    const next = this.cell(row, start.begin + by * row.cell);
    if (extend) this.selected = this.stretch(this.selected?.table === row.table ? this.selected : start, next);
    this.put(next);
    if (extend) this.wanted.open(this.selected);
  }

  climb(start, by) {
    if (!start) return this.jump(null, this.data.end - 1);
    const at = this.lines.findIndex(({ row }) => row.table === start.table);
    const next = this.lines[Math.min(this.lines.length - 1, Math.max(0, at + by))];
    if (next) this.put(this.cell(next.row, start.row.kind === "dimension" ? this.data.end - 1 : start.begin));
  }

  jump(start, moment) {
    const row = start ? this.rows.get(start.table) : this.lines[0]?.row;
    if (row) this.put(this.cell(row, moment));
  }

  scrollTo(table) {
    const line = this.lines.find(({ row }) => row.table === table);
    const scroll = byId("scroll");
    if (line && line.y < scroll.scrollTop + ROW) scroll.scrollTop = Math.max(0, line.y - ROW);
    if (line && line.y + ROW > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = line.y + 2 * ROW - scroll.clientHeight;
  }

  put(cell) {
    this.cursor = cell;
    const { begin, end } = this.data;
    if (cell.row.kind !== "dimension" && (cell.begin < begin || cell.end > end)) {
      this.wanted.pan(cell.begin < begin ? -0.25 : 0.25);
    }
    this.scrollTo(cell.table);
    this.draw();
    say(`${cell.table}, ${cell.row.kind === "dimension" ? "all of it" : local(cell.begin)}, ${cell.word === "none" ? "nothing" : cell.word}`);
  }
}

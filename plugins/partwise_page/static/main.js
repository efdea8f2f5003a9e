// The page: what is shown follows from one state, the state follows from the link, and every few seconds from the ledger.
import { ask, askHeat, forgetHeat } from "./api.js";
import { byId, chip, differs, forget, make, replace } from "./dom.js";
import { HeatMap } from "./heat.js";
import { airflowLink, fromLink, rangeOf, toLink } from "./link.js";
import { MARKED, sample } from "./paint.js";
import { closePanel, openPart, openRange } from "./panel.js";
import { followTheme } from "./theme.js";
import { followZone, local, partText, plural, stretch, utc, zoneName } from "./time.js";

const EVERY = 5000;
const LONGEST = 50 * 365 * 86400;

/** @type {Record<string, any>} */
const state = { view: "heat", since: null, helpers: false, ...fromLink() };
let shown = null; // [begin, end] in seconds, or null for the newest parts
let known = ""; // what the open view was made from
let timer = 0;
let asked = 0; // how often the server was asked: an answer that comes after a newer question is dropped

const heat = new HeatMap({
  open: (selection) => select(selection),
  hover: (selection, event) => hover(selection, event),
  table: (name) => go({ view: "table", table: name, part: null, range: null }),
  pan: (share) => pan(share),
  zoom: (factor, moment) => zoom(factor, moment),
});
const actions = {
  within: () => within(),
  close: () => { closePanel(); heat.selected = null; go({ part: null, range: null, table: state.view === "heat" ? null : state.table }); },
  go: (table, part) => reveal(table, part),
  range: (table, range) => { Object.assign(state, { view: "heat", table, part: null, range }); toLink(state, true); start(); },
  table: (name) => go({ view: "table", table: name, part: null, range: null }),
  changed: () => refresh(),
  zoomTo: (begin, end) => look(begin, end),
};

const within = () => Number(state.since) || 86400;

// What somebody went to can be gone back from.
function go(change) {
  const moved = ["view", "table", "part", "range"].some((key) => key in change && (change[key] ?? null) !== (state[key] ?? null));
  Object.assign(state, change);
  notice("");
  toLink(state, moved);
  render();
}

function notice(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

async function refresh() {
  clearTimeout(timer);
  const mine = (asked += 1);
  try {
    const width = byId("cells").parentElement.clientWidth || 1000;
    const wanted = { cells: Math.max(20, Math.min(1500, Math.floor(width / MARKED))), within: within() };
    const data = await askHeat(shown ? { from: shown[0], to: shown[1], ...wanted } : wanted);
    if (mine !== asked) return;
    byId("live").dataset.state = "live";
    byId("live").textContent = "live";
    if (data) {
      heat.show(data);
      if (!performance.getEntriesByName("cells").length) performance.mark("cells");
      byId("stretch").textContent = zoneName();
      byId("stretch").title = `${local(data.begin)} to ${local(data.end)}; a cell is at least ${data.resolution} seconds`;
      legend(data.states, MORE.filter(({ word }) => data.rows.some((row) => /[a-z]/.test(row[word]))));
      replace(byId("working"), [...data.steps.map(stepping), ...data.backfills.map(working)]);
      if (known !== String(data.sequence)) {
        known = String(data.sequence);
        renderViews();
        reopen();
      }
      document.body.dataset.sequence = data.sequence;
    }
  } catch (why) {
    if (mine !== asked) return;
    byId("live").dataset.state = "lost";
    byId("live").textContent = why instanceof TypeError ? "not reachable" : why.message;
    if (!heat.data) replace(byId("labels"), make("p.nothing.problem", {}, why.message));
  }
  document.body.dataset.ready = "true";
  timer = setTimeout(() => (document.hidden ? later() : refresh()), EVERY);
}

const later = () => document.addEventListener("visibilitychange", refresh, { once: true });

// The panel again, as the ledger is now; a form that somebody fills in is left alone.
function reopen() {
  const panel = byId("panel");
  if (panel.hidden || panel.contains(document.activeElement) || panel.querySelector(".plan")?.childElementCount) return;
  openState();
}

// A step that takes long, with how far it is.
function stepping({ table, first, last, done, of, began }) {
  const span = first === null ? "" : ` ${first === last ? first : `${first}..${last}`}`;
  const found = chip("building", `${table}${span}: ${done.toLocaleString()} of ${of.toLocaleString()} parts`);
  found.title = `a step runs since ${local(began)}`;
  return found;
}

// A backfill that is under way, with a link to its run if Airflow carries it out.
function working({ table, first, last, holder }) {
  const text = `backfill of ${table} ${first === last ? first : `${first}..${last}`}`;
  const [who, run] = holder.split(/:(.*)/s);
  return chip("building", who === "airflow" ? airflowLink(`/dags/partwise_backfill/runs/${encodeURIComponent(run)}`, text) : text);
}

let legendFor = "";
// What a cell may bear beside its state; in the legend where there is one.
const MORE = [
  { word: "estimated", meaning: "not refreshed, but a fresh sample tells what a refresh would give" },
  { word: "mixed", meaning: "computed while inputs were not up to date, and not repaired since" },
];
function legend(known, more) {
  const states = [...known, ...more];
  const text = JSON.stringify(states);
  if (text === legendFor) return;
  legendFor = text;
  replace(byId("legend"), states.filter((each) => each.word !== "none").map((each) =>
    make("span.chip", { "data-state": each.word, title: each.meaning }, make("canvas"), each.word)));
  paintLegend();
}

function paintLegend() {
  for (const canvas of document.querySelectorAll("#legend canvas")) sample(canvas, canvas.parentElement.dataset.state);
}

function render() {
  for (const button of document.querySelectorAll("button[data-view]")) {
    button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
    if (button.dataset.view === "table") {
      button.hidden = !state.table;
      button.textContent = state.table ?? "Table";
    }
  }
  document.body.dataset.view = state.view;
  byId("heat").hidden = state.view === "lineage";
  byId("heat").dataset.small = String(state.view === "table");
  byId("lineage").hidden = state.view !== "lineage";
  byId("table").hidden = state.view !== "table";
  renderViews();
  openState();
}

let rendering = 0;
async function renderViews() {
  const mine = (rendering += 1);
  const current = () => mine === rendering;
  if (!heat.data) return;
  if (state.view === "table" && !heat.rows.has(state.table)) {
    // A DAG that is no table of ours, or a name that is gone: everything is shown.
    if (!state.dag) ask("rights", { table: state.table }).catch((why) => notice(why.message));
    Object.assign(state, { view: "heat", table: null });
    return render();
  }
  try {
    if (state.view === "table") {
      const { related } = await import("./flow.js");
      const { edges } = await ask("lineage", { helpers: true });
      if (!current()) return;
      heat.focus = related(state.table, edges);
      heat.arrange();
      const { showTable } = await import("./tab.js");
      const place = byId("table");
      const top = place.scrollTop;
      await showTable(place, state.table, { ...actions, current, close: () => go({ view: "heat", table: null, part: null, range: null }) });
      place.scrollTop = top;
      return;
    }
    if (heat.focus) {
      heat.focus = null;
      heat.arrange();
    }
    if (state.view === "lineage") {
      const { showLineage } = await import("./flow.js");
      await showLineage(byId("lineage"), state, { ...actions, current, helpers: (on) => go({ helpers: on }), full: (on) => go({ full: on }) });
    }
  } catch (why) {
    if (!current()) return;
    const place = byId(state.view === "table" ? "table" : "lineage");
    differs(place, null); // what it showed before is gone
    replace(place, make("p.problem", {}, why.message));
  }
}

// What the state says about the panel.
function openState() {
  const row = state.table ? heat.rows.get(state.table) : null;
  if (row && (state.part || (row.kind === "dimension" && state.view === "heat"))) openPart(state.table, state.part, actions);
  else if (row && state.range && row.kind !== "dimension") {
    const [begin, end] = rangeOf(state.range) ?? [];
    const last = begin === undefined ? 0 : Math.ceil(end / row.length) * row.length;
    if (last) openRange({ table: row.table, begin, end: last, row }, actions);
  } else closePanel();
}

function select(selection) {
  const { table, begin, end, row } = selection;
  const one = row.kind === "dimension" || end - begin <= row.length;
  const first = one && row.kind !== "dimension" ? partText(begin, row.length) : null;
  const range = one ? null : `${partText(begin, row.length)}..${partText(end - row.length, row.length)}`;
  go({ table, part: first, range, ...(row.kind === "dimension" ? { view: "heat" } : {}) });
}

// A part from a link in the panel: bring it into sight.
function reveal(table, part) {
  const row = heat.rows.get(table);
  if (state.view === "lineage") go({ view: "heat" });
  if (row?.helper_of) heat.unfolded.add(row.helper_of);
  Object.assign(state, { table, part, range: null });
  toLink(state, true);
  if (row && part) {
    const [begin] = rangeOf(part) ?? [];
    heat.arrange();
    heat.put(heat.cell(row, begin));
    heat.selected = heat.cursor;
    const { begin: from, end: to } = heat.data;
    if (begin < from || begin >= to) look(begin - (to - from) / 2, begin + (to - from) / 2);
  }
  render();
  if (!part) openPart(table, null, actions);
}

function look(begin, end) {
  const span = Math.min(Math.max(60, end - begin), LONGEST);
  const middle = (begin + end) / 2;
  shown = [Math.round(middle - span / 2), Math.round(middle + span / 2)];
  byId("span").value = "";
  return refresh();
}

function pan(share) {
  const { begin, end } = heat.data;
  look(begin + share * (end - begin), end + share * (end - begin));
}

function zoom(factor, moment) {
  const { begin, end } = heat.data;
  const around = moment ?? heat.cursor?.begin ?? (begin + end) / 2;
  const at = around >= begin && around <= end ? around : (begin + end) / 2;
  look(at - (at - begin) * factor, at + (end - at) * factor);
}

function newest() {
  shown = null;
  byId("span").value = "";
  forgetHeat();
  return refresh();
}

let hovering = 0;
function hover(selection, event) {
  const tip = byId("tip");
  clearTimeout(hovering);
  if (!selection || selection.word === "none") {
    tip.hidden = true;
    return;
  }
  const { table, begin, end, row, word, changed } = selection;
  const head = [make("b", {}, table), " ", chip(word), changed && word !== "repaired" ? [" ", chip("repaired", "changed")] : null];
  const whole = row.kind === "dimension";
  const times = whole ? null : [make("div", {}, stretch(begin, end)), make("div.quiet", {}, utc(begin))];
  replace(tip, make("div", {}, head), times);
  tip.hidden = false;
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 60)}px`;
  hovering = setTimeout(async () => {
    try {
      const found = await ask("cell", { table, from: begin, to: end, within: within() });
      const counts = Object.entries(found.counts);
      const said = found.count > 1 ? `${plural(found.count, "part")}: ${counts.map(([each, count]) => `${count} ${each}`).join(", ")}` : null;
      const rows = found.revision ? `${plural(found.rows, "row")}, revision ${found.revision}` : null;
      tip.append(...[said, rows, found.updated ? `last updated ${local(found.updated)}` : null].filter(Boolean).map((text) => make("div", {}, text)));
    } catch {
      // the tip stays as it is
    }
  }, 120);
}

function listen() {
  for (const button of document.querySelectorAll("button[data-view]")) button.onclick = () => go({ view: button.dataset.view });
  const time = { left: () => pan(-0.5), right: () => pan(0.5), out: () => zoom(2), in: () => zoom(0.5), newest };
  for (const button of document.querySelectorAll("[data-time]")) button.onclick = time[button.dataset.time];
  byId("span").onchange = (event) => {
    const span = Number(event.target.value);
    if (!span) return newest();
    const value = event.target.value;
    look(heat.data.end - span, heat.data.end).then(() => (byId("span").value = value));
  };
  if (state.since) byId("since").value = state.since;
  byId("since").onchange = (event) => { go({ since: event.target.value }); refresh(); };
  byId("only").onchange = (event) => { heat.only = event.target.checked; heat.draw(); };
  byId("search").oninput = (event) => {
    heat.filter = state.search = event.target.value;
    heat.arrange();
    if (state.view === "lineage") renderViews();
  };
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") return actions.close();
    if (event.target.matches?.("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { "/": () => byId("search").focus(), "+": time.in, "=": time.in, "-": time.out, "[": time.left, "]": time.right, 0: newest };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  addEventListener("popstate", () => {
    Object.assign(state, { view: "heat", table: null, part: null, range: null }, fromLink());
    toLink(state); // Airflow's address follows
    start();
  });
}

// Where the link points, if it names a part or a range; else the newest parts. What it names wrongly is said.
async function start() {
  const named = state.range ?? state.part;
  let range = named ? rangeOf(named) : null;
  let problem = "";
  if (named && !range) [range, problem] = await meant();
  shown = null;
  if (range) {
    const around = Math.max(range[1] - range[0], 1800) * (state.range ? 0.25 : 1);
    shown = [Math.floor(range[0] - around), Math.ceil(range[1] + around)];
  }
  await refresh();
  if (state.table) state.table = [...heat.rows.keys()].find((name) => name.toLowerCase() === state.table.toLowerCase()) ?? state.table;
  const row = heat.rows.get(state.table);
  if (heat.data && state.table && !row && !state.dag) problem ||= await ask("rights", { table: state.table }).then(() => "", (why) => why.message);
  if (row?.helper_of) {
    heat.unfolded.add(row.helper_of);
    heat.arrange();
  }
  render();
  notice(problem);
  if (!row) return;
  heat.cursor = range || state.view === "heat" ? heat.cell(row, range ? range[0] : heat.data.end - 1) : null;
  heat.selected = range ? { ...heat.cursor, end: Math.max(heat.cursor.end, state.range ? range[1] : 0) } : null;
  heat.scrollTo(row.table);
  heat.draw();
}

// A part that only the server can read, as #29850360; or why it cannot be read.
async function meant() {
  if (state.range) {
    const text = state.range;
    state.range = null;
    return [null, `range: '${text}' cannot be read; write A..B, for example 2026-10-03T10:00..2026-10-03T10:30, in UTC.`];
  }
  try {
    const { begin, end, part } = await ask("part", { table: state.table, part: state.part });
    state.part = part;
    return [[begin, end], ""];
  } catch (why) {
    return [null, why.message];
  }
}

followZone(() => {
  forget();
  heat.arrange();
  render();
});
followTheme(() => { heat.recolour(); paintLegend(); });
listen();
start();
window.partsPage = { boxOf: (table, moment) => heat.boxOf(table, moment), refresh, state }; // for tests and the curious

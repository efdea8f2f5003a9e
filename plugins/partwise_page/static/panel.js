// The panel at the right: one part, or a range of parts, and what can be done with it.
import { ask } from "./api.js";
import { backfillForm } from "./backfill.js";
import { byId, chip, differs, make, prose, replace, verdict } from "./dom.js";
import { partFlow } from "./flow.js";
import { airflowLink } from "./link.js";
import { ago, local, partText, plural, stretch, utc } from "./time.js";

const RUNS = 5; // newest revisions whose runs are named
let shown = 0;

export function closePanel() {
  shown += 1;
  byId("panel").hidden = true;
}

// `load` asks the server, `shape` makes elements of what it says; the same answer again leaves the panel as it is.
async function fill(title, subtitle, load, shape, wanted) {
  const mine = (shown += 1);
  const panel = byId("panel");
  const head = make("div.head", {},
    make("h2", {}, title, subtitle ? make("small", {}, subtitle) : null),
    make("button.close", { title: "Close (Esc)", "aria-label": "Close", onclick: wanted.close }, "✕"));
  const fresh = panel.hidden || panel.dataset.title !== title + subtitle;
  if (fresh) {
    replace(panel, head, make("div.content.waiting", {}, "…"));
    differs(panel, null);
  }
  panel.dataset.title = title + subtitle;
  panel.hidden = false;
  try {
    const found = await load();
    if (mine === shown && differs(panel, found)) replace(panel, head, make("div.content", {}, shape(found)));
  } catch (why) {
    if (mine === shown && differs(panel, why.message)) replace(panel, head, make("div.content", {}, make("p.problem", {}, why.message)));
  }
}

// wanted: {close(), go(table, part), range(table, range), table(name), changed(), within()}
export function openPart(table, part, wanted) {
  return fill(table, part ? ` ${part}` : "", () => ask("part", { table, part, within: wanted.within() }), (found) => {
    return [
      make("p.why", {}, found.state === "none" ? null : [chip(found.state), " "], found.mixed ? [chip("stale", "mixed"), " "] : null, prose(found.why)),
      facts([
        ["When", found.part ? make("span", { title: utc(found.begin) }, stretch(found.begin, found.end)) : null],
        ["Rows", found.rows?.toLocaleString()],
        ["Revision", found.revision],
        ["Last updated", moment(found.updated)],
        ["Due since", moment(found.since)],
        ["Because of", found.reason],
        ["Written by", found.writer],
      ]),
      failure(found),
      found.sampled && found.part ? estimate(table, found.part) : null,
      checks(found.checks),
      runs(found),
      make("h3", {}, "Lineage"),
      partFlow(found, wanted),
      lackedOf(found),
      changedOf(found),
      revisions(found.revisions),
      found.kind === "view" && found.part ? backfill(table, found.part, found.helper_of, wanted) : null,
      make("p.quiet", {}, make("button.link", { onclick: () => wanted.table(table) }, `Definition and charts of ${table}`)),
    ];
  }, wanted);
}

export function openRange(selection, wanted) {
  const { table, begin, end, row } = selection;
  const first = partText(begin, row.length);
  const last = partText(end - row.length, row.length);
  return fill(table, ` ${first}..${last}`, () => ask("cell", { table, from: begin, to: end, within: wanted.within() }), (found) => {
    const counts = Object.entries(found.counts);
    return [
      make("p.why", {}, `${plural(found.count, "part")} from ${local(begin)} to ${local(end)}.`),
      counts.length ? make("p", {}, counts.map(([word, count]) => [chip(word, `${count.toLocaleString()} ${word}`), " "])) : make("p", {}, "None of them exists."),
      facts([
        ["Rows", found.rows?.toLocaleString()],
        ["Highest revision", found.revision],
        ["Last updated", moment(found.updated)],
      ]),
      make("p", {}, make("button", { onclick: () => wanted.zoomTo(begin, end) }, "Zoom in")),
      row.kind === "view" ? backfill(table, found.parts, row.helper_of, wanted) : null,
    ];
  }, wanted);
}

// People ask for parts of a view; its helpers come along.
function backfill(table, range, view, wanted) {
  if (!view) return backfillForm(table, range, wanted);
  return make("p.helper", {}, `${table} is a helper: a backfill of `, make("button.link", { onclick: () => wanted.table(view) }, view),
    " computes it again with what it is computed from.");
}

function moment(seconds) {
  return seconds ? make("span", { title: utc(seconds) }, `${local(seconds)} (${ago(seconds)})`) : null;
}

function facts(lines) {
  return make("dl.facts", {}, lines.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function lackedOf(found) {
  const lacking = found.requires.filter((need) => need.missing.length);
  if (!lacking.length) return null;
  return make("p", {}, chip("missing", "waits for"), " ", lacking.map((need) => `${need.table}: ${need.missing.join(", ")}`).join("; "));
}

function changedOf(found) {
  const newer = found.computed_from.filter((item) => item.changed.length);
  if (!newer.length) return null;
  return make("p", {}, chip("stale", "changed since it was computed"), " ", newer.map((item) => `${item.table}: ${item.changed.join(", ")}`).join("; "));
}

// Why it failed, unless its checks say the same again.
function failure({ failure: why, checks: lines }) {
  if (!why || lines.some((line) => !line.ok && why.message.includes(line.message))) return null;
  return make("div.failure", {}, make("h3", {}, `Failed: ${why.kind}`), make("pre", {}, why.message));
}

// What the sample says of the part before it is refreshed; it takes a moment, so it comes after the rest.
function estimate(table, part) {
  const place = make("div.estimate", {});
  ask("estimate", { table, part }).then((found) => replace(place, ...estimated(found)), (why) => replace(place, make("p.quiet", {}, why.message)));
  return place;
}

function estimated(found) {
  const number = (value) => value === null ? "–" : value.toLocaleString(undefined, { maximumSignificantDigits: 6 });
  const row = (cells) => make("tr", {}, cells.map((cell) => make(typeof cell === "string" ? "td.number" : "td", {}, cell)));
  const half = ({ low, high }) => (high - low) / 2;
  const parts = [];
  if (found.lines.length) {
    parts.push(make("h3", {}, "Estimated, as if it were refreshed now"), make("table.lines", {},
      make("tr", {}, ["", "published", "estimate"].map((text) => make("th", {}, text))),
      found.lines.map((line) => row([line.column, number(line.published),
        line.estimate === null ? make("span.quiet", {}, line.why ?? "refused") : `${number(line.estimate)} ± ${number(half(line))}`]))),
    make("p.quiet", {}, `As of ${local(found.as_of)}.`));
  } else if (found.problem) parts.push(make("p.quiet", {}, `No estimate: ${found.problem}.`));
  if (found.compared.length) {
    parts.push(make("h3", {}, "Estimated before its refresh"), make("table.lines", {},
      make("tr", {}, ["", "estimate", "was", ""].map((text) => make("th", {}, text))),
      found.compared.map((line) => row([line.column, `${number(line.estimate)} ± ${number(half(line))}`, number(line.truth), line.covered ? "covered" : "missed"]))));
  }
  const cost = found.sample_seconds && found.refresh_seconds ? ` A part of the sample takes ${number(found.sample_seconds)} s, a refresh ${number(found.refresh_seconds)} s.` : "";
  if (found.coverage || cost) parts.push(make("p.quiet", {}, `${found.coverage ? `Covered so far: ${found.coverage}.` : ""}${cost}`));
  return parts;
}

// What is against the checks of the part, with a sample of its rows.
function checks(lines) {
  const bad = lines.filter((line) => !line.ok);
  if (!bad.length) return null;
  const by = bad[0].accepted_by;
  return make("div.checks", {},
    make("h3", {}, by ? `Checks, accepted by ${by}` : "Checks"),
    bad.map((line) => [
      make("p", {}, verdict(line), " ", line.message),
      line.rows.length ? make("pre", {}, line.rows.join("\n")) : null,
    ]));
}

function revisions(list) {
  if (!list.length) return null;
  return [
    make("h3", {}, "Revisions"),
    make("table.lines", {},
      make("tr", {}, ["", "rows", "when", "because of"].map((text) => make("th", {}, text))),
      list.map((line) => make("tr", {},
        make("td", {}, String(line.revision)),
        make("td.number", {}, line.rows.toLocaleString()),
        make("td", { title: utc(line.at) }, local(line.at)),
        make("td", {}, line.reason)))),
  ];
}

// The runs that wrote the newest revisions or met the failure, as they said themselves, and the logs of their tasks.
function runs(found) {
  const lines = new Map();
  const add = (writer, what) => {
    if (!writer) return;
    const key = [writer.dag, writer.run, writer.task, writer.map_index].join(" ");
    lines.set(key, [writer, [...(lines.get(key)?.[1] ?? []), what]]);
  };
  add(found.failure?.writer, "failed");
  for (const line of found.revisions.slice(0, RUNS)) add(line.writer, `revision ${line.revision}`);
  const now = found.run && !found.revisions.some((line) => line.writer?.run === found.run)
    ? make("li", {}, airflowLink(runPath(found.dag, found.run), found.run), " at work now") : null;
  if (!lines.size && !now) return null;
  return [make("h3", {}, "Runs"), make("ul.runs", {}, now, [...lines.values()].map(([writer, said]) => {
    const path = runPath(writer.dag, writer.run);
    const mapped = writer.map_index >= 0 ? `/mapped/${writer.map_index}` : "";
    return make("li", {}, airflowLink(path, writer.run), ` ${said.join(", ")} · `,
      airflowLink(`${path}/tasks/${encodeURIComponent(writer.task)}${mapped}`, "log"));
  }))];
}

const runPath = (dag, run) => `/dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(run)}`;

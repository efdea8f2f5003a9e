// The panel at the right: one part, or a range of parts, and what can be done with it.
import { ask, askAirflow } from "./api.js";
import { backfillForm } from "./backfill.js";
import { byId, chip, make, prose, replace } from "./dom.js";
import { partFlow } from "./flow.js";
import { airflowLink } from "./link.js";
import { ago, local, partText, plural, stretch, utc } from "./time.js";

const BACKFILL = "partwise_backfill";
let shown = 0;

export function closePanel() {
  shown += 1;
  byId("panel").hidden = true;
}

async function fill(title, subtitle, load, wanted) {
  const mine = (shown += 1);
  const panel = byId("panel");
  const head = make("div.head", {},
    make("h2", {}, title, subtitle ? make("small", {}, subtitle) : null),
    make("button.close", { title: "Close (Esc)", "aria-label": "Close", onclick: wanted.close }, "✕"));
  const before = panel.hidden ? null : panel.querySelector(".content");
  if (panel.hidden || panel.dataset.title !== title + subtitle) replace(panel, head, make("div.content.waiting", {}, "…"));
  panel.dataset.title = title + subtitle;
  panel.hidden = false;
  try {
    const content = await load();
    if (mine === shown) replace(panel, head, make("div.content", {}, content));
  } catch (why) {
    if (mine === shown) replace(panel, head, make("div.content", {}, make("p.problem", {}, why.message)));
  }
  return before;
}

// wanted: {close(), go(table, part), table(name), changed(), within()}
export function openPart(table, part, wanted) {
  return fill(table, part ? ` ${part}` : "", async () => {
    const found = await ask("part", { table, part, within: wanted.within() });
    const runs = make("div");
    if (found.kind !== "dimension") showRuns(runs, found);
    return [
      make("p.why", {}, found.state === "none" ? null : [chip(found.state), " "], prose(found.why)),
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
      checks(found.checks),
      runs,
      make("h3", {}, "Lineage"),
      partFlow(found, wanted.go),
      lackedOf(found),
      changedOf(found),
      revisions(found.revisions),
      found.kind === "view" && found.part ? backfillForm(table, found.part, wanted) : null,
      make("p.quiet", {}, make("button.link", { onclick: () => wanted.table(table) }, `Definition and charts of ${table}`)),
    ];
  }, wanted);
}

export function openRange(selection, wanted) {
  const { table, begin, end, row } = selection;
  const first = partText(begin, row.length);
  const last = partText(end - row.length, row.length);
  return fill(table, ` ${first}..${last}`, async () => {
    const found = await ask("cell", { table, from: begin, to: end, within: wanted.within() });
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
      row.kind === "view" ? backfillForm(table, found.parts, wanted) : null,
    ];
  }, wanted);
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

// What is against the checks of the part, with a sample of its rows.
function checks(lines) {
  const bad = lines.filter((line) => !line.ok);
  if (!bad.length) return null;
  const by = bad[0].accepted_by;
  return make("div.checks", {},
    make("h3", {}, by ? `Checks, accepted by ${by}` : "Checks"),
    bad.map((line) => [
      make("p", {}, chip(line.severity === "warn" ? "stale" : "failed", line.severity === "warn" ? "warns" : line.outcome), " ", line.message),
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

// The runs that wrote the newest revisions: those of its DAG, or backfills, that were under way at that moment.
async function showRuns(place, found) {
  const moments = found.revisions.slice(0, 3).map((line) => line.at);
  if (found.failure) moments.unshift(found.failure.at);
  const links = new Map();
  if (found.run) links.set(found.run, [found.dag, "running now"]);
  for (const at of moments) {
    const time = encodeURIComponent(new Date(at * 1000).toISOString());
    for (const dag of [found.dag, BACKFILL]) {
      const answer = await askAirflow(`dags/${encodeURIComponent(dag)}/dagRuns?limit=1&order_by=-start_date&start_date_lte=${time}&end_date_gte=${time}`);
      for (const run of answer?.dag_runs ?? []) if (!links.has(run.dag_run_id)) links.set(run.dag_run_id, [dag, run.state]);
      if (answer?.dag_runs?.length) break; // a backfill may be under way at the same time without having written it
    }
  }
  if (!links.size) return;
  const task = found.kind === "view" ? found.table : "load";
  replace(place, make("h3", {}, "Runs"), make("ul.runs", {}, [...links].map(([run, [dag, state]]) => {
    const path = `/dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(run)}`;
    const log = dag === BACKFILL ? null : [" · ", airflowLink(`${path}/tasks/${task}`, "log")];
    return make("li", {}, airflowLink(path, run), ` ${state}`, log);
  })));
}

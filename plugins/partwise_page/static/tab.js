// One table: its definition, the queries as they run, charts of its parts and steps, its sources' lateness, its checks.
import { ask } from "./api.js";
import { bars } from "./charts.js";
import { differs, make, prose, replace, verdict } from "./dom.js";
import { highlight } from "./sql.js";
import { ago, duration, local, plural, utc } from "./time.js";

const LISTED = 8;

export async function showTable(place, name, wanted) {
  const [found, changed] = await Promise.all([ask("table", { table: name }), ask("changes", { table: name, within: wanted.within() })]);
  if (!wanted.current() || !differs(place, [found, changed.parts])) return;
  replace(place,
    make("div.head", {},
      make("h2", {}, found.table, make("small", {}, ` ${found.kind}${found.length ? `, parts of ${found.length}` : ""}`)),
      make("button.close", { title: "Back to all tables", "aria-label": "Close", onclick: wanted.close }, "✕")),
    found.description ? make("p", {}, found.description) : null,
    found.problem ? make("p.problem", {}, found.problem) : null,
    make("dl.facts", {}, facts(found, wanted)),
    make("div.columns", {},
      make("div", {},
        chart("Rows per part", found.parts, {
          value: (point) => point.rows,
          text: (point) => `${point.part}: ${plural(point.rows, "row")}, revision ${point.revision}`,
          at: (point) => point.begin,
          click: (point) => wanted.go(name, point.part),
        }),
        found.kind === "view" || found.kind === "helper"
          ? chart("Seconds of computing per part", found.steps, {
              value: (step) => step.seconds / step.parts,
              text: (step) => `${local(step.at)}: ${plural(step.parts, "part")}, ${plural(step.rows, "row")} in ${duration(step.seconds)}`,
              at: (step) => step.at,
            })
          : null,
        changes(changed, wanted), found.lateness.map(lateness), checks(found)),
      make("div", {}, definition(found), found.queries.map((query) => [
        make("h3", {}, query.table === found.table ? query.title : `${query.table}: ${query.title}`), highlight(query.sql)]))));
}

function facts(found, wanted) {
  const names = (list) => list.map((name) => [make("button.link", { onclick: () => wanted.table(name) }, name), " "]);
  const lines = [
    ["Strategy", found.choice || null],
    ["Advice", found.advice || null],
    ["Many parts", found.many || null],
    ["Starts", found.start],
    ["Requires", found.requires.length ? found.requires.join(", ") : null],
    ["Feeds", found.feeds.length ? names(found.feeds) : null],
    ["Owner", found.owner],
    ["Tags", found.tags.length ? found.tags.join(", ") : null],
  ];
  const notes = found.notes.map((note) => ["Note", note]);
  return [...lines, ...notes].filter(([, value]) => value).map(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]);
}

function chart(title, points, shape) {
  if (!points.length) return [make("h3", {}, title), make("p.quiet", {}, "Nothing to show yet.")];
  return [make("h3", {}, title, make("small", {}, ` the last ${points.length}`)), bars(points, shape)];
}

// What an analyst looks at again: the newest changes, apart from parts that came to be.
function changes({ parts, more, table, since }, wanted) {
  const again = parts.filter((line) => line.revision > 1);
  if (!again.length) return null;
  const rest = again.length - LISTED;
  return [
    make("h3", {}, "Changed", make("small", {}, ` since ${local(since)}`)),
    make("table.lines.changes", {}, again.slice(0, LISTED).map((line) => make("tr", {},
      make("td", {}, line.part ? make("button.link", { onclick: () => wanted.go(table, line.part) }, line.part) : "all of it"),
      make("td.number", {}, plural(line.rows, "row")),
      make("td", { title: utc(line.at) }, ago(line.at)),
      make("td", {}, line.reason)))),
    rest > 0 ? make("p.quiet", {}, prose(`and ${rest}${more ? " or more" : ""} others; \`partwise changes ${table} --since ...\` lists them`)) : null,
  ];
}

// Shares are of the rows of a part when all have come; ages that no part has reached yet have none.
function lateness(source) {
  if (!source.rows || !source.curve.length) return null;
  const shown = source.curve.filter((delay) => delay.rows || delay.seconds === 0);
  const most = Math.max(...shown.map((delay) => delay.share ?? 0));
  return [
    make("h3", {}, `How late rows of ${source.source} come`),
    make("table.delays", {}, shown.map((delay) => make("tr", {},
      make("td", {}, delay.seconds === 0 ? delay.within : `within ${delay.within}`.replace("within longer", "later")),
      make("td.barcell", {}, make("span.bar", { style: `width:${(100 * (delay.share ?? 0)) / (most || 1)}%` })),
      make("td.number", {}, delay.share === null ? "?" : `${(100 * delay.share).toFixed(delay.share < 0.1 ? 1 : 0)} %`),
      make("td.number.quiet", { title: toCome(delay) }, delay.rows.toLocaleString())))),
    make("p.quiet", {}, `${plural(source.late, "row")} of ${source.rows.toLocaleString()} came for parts that existed already. `,
      prose(`\`partwise explain ${source.source}\` says what is still to come.`)),
  ];
}

function toCome(delay) {
  return delay.deliveries === null ? "" : `${delay.deliveries.toPrecision(2)} deliveries for each part come later than that`;
}

function checks(found) {
  if (!found.expectations.length && !found.checks.length) return null;
  return [
    make("h3", {}, "Checks"),
    make("ul", {}, found.expectations.map((name) => make("li", {}, make("code", {}, name)))),
    found.checks.length
      ? make("table.lines", {}, found.checks.map((line) => make("tr", {},
          make("td", {}, verdict(line)),
          make("td", {}, line.part ?? ""), make("td", {}, line.ok ? line.check : line.message))))
      : make("p.quiet", {}, "They have not run yet."),
  ];
}

function definition(found) {
  if (!found.definition) return null;
  return [make("h3", {}, "Definition", make("small", {}, ` ${found.file ?? ""}`)), make("pre.code", {}, found.definition)];
}

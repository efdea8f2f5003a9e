// Lineage, drawn: of all tables, and of one part in both directions.
import { ask } from "./api.js";
import { make, name, replace, svg } from "./dom.js";
import { ago, length, plural } from "./time.js";

const WIDE = 190;
const HIGH = 46;
const ACROSS = 270;
const DOWN = 62;

export async function showLineage(place, state, wanted) {
  const { nodes, edges } = await ask("lineage", { helpers: state.helpers || null });
  const spots = arrange(nodes, edges);
  const width = Math.max(...[...spots.values()].map((spot) => spot.x), 0) + WIDE + 40;
  const height = Math.max(...[...spots.values()].map((spot) => spot.y), 0) + HIGH + 40;
  const near = state.table ? related(state.table, edges) : null;
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "flow", role: "img", "aria-label": "Lineage of all tables" });
  for (const edge of edges) {
    const far = near && !(near.has(edge.source) && near.has(edge.view));
    const line = curve(spots.get(edge.source), spots.get(edge.view));
    drawn.append(svg("path", { d: line, class: far ? "edge far" : "edge" }, svg("title", {}, `${edge.view} reads ${edge.source}${edge.reads.join(", ")}`)));
  }
  for (const node of nodes) drawn.append(box(node, spots.get(node.table), near, state, wanted));
  const fold = make("label.quiet", {}, make("input", { type: "checkbox", checked: state.helpers, onchange: (event) => wanted.helpers(event.target.checked) }), " with generated helpers");
  replace(place, make("div.tools", {}, fold, make("span.quiet", {}, "Click a table for its definition and charts; its relatives stay in the light.")), make("div.canvas", {}, drawn));
}

// Columns by depth; in each column near to what is read, so that few lines cross.
function arrange(nodes, edges) {
  const columns = [];
  for (const node of nodes) (columns[node.depth] ??= []).push(node);
  const spots = new Map();
  const above = new Map();
  for (const edge of edges) above.set(edge.view, [...(above.get(edge.view) ?? []), edge.source]);
  columns.forEach((column, depth) => {
    const want = (node) => {
      const rows = (above.get(node.table) ?? []).map((name) => spots.get(name)?.y ?? 0);
      return rows.length ? rows.reduce((sum, y) => sum + y, 0) / rows.length : 0;
    };
    const ordered = depth ? [...column].sort((a, b) => want(a) - want(b)) : column;
    let free = 20;
    for (const node of ordered) {
      const y = Math.max(free, depth ? Math.round(want(node) / DOWN) * DOWN - ((ordered.length - 1) * DOWN) / 4 : free);
      spots.set(node.table, { x: 20 + depth * ACROSS, y });
      free = y + DOWN;
    }
  });
  return spots;
}

function related(table, edges) {
  const found = new Set([table]);
  for (const [from, to] of [["source", "view"], ["view", "source"]]) {
    const todo = [table];
    while (todo.length) {
      const name = todo.pop();
      for (const edge of edges) {
        if (edge[from] === name && !found.has(edge[to])) {
          found.add(edge[to]);
          todo.push(edge[to]);
        }
      }
    }
  }
  return found;
}

export { related };

function curve(a, b) {
  if (!a || !b) return "";
  const [x1, y1, x2, y2] = [a.x + WIDE, a.y + HIGH / 2, b.x, b.y + HIGH / 2];
  const middle = (x1 + x2) / 2;
  return `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`;
}

function box(node, spot, near, state, wanted) {
  const far = near && !near.has(node.table);
  const trouble = Object.entries(node.trouble).map(([word, count]) => `${count.toLocaleString()} ${word}`);
  const second = trouble[0] ?? (node.kind === "dimension" ? "loaded" : plural(node.parts, "part"));
  const open = () => wanted.table(node.table);
  return svg("g", {
    transform: `translate(${spot.x},${spot.y})`, class: `node ${far ? "far" : ""} ${node.table === state.table ? "chosen" : ""}`,
    "data-table": node.table, "data-kind": node.kind, tabindex: "0", role: "button",
    onclick: open, onkeydown: (event) => event.key === "Enter" && open(),
  },
  svg("title", {}, [node.table, node.length ? `parts of ${length(node.length)}, the newest is ${node.last ?? "not there yet"}` : node.kind, ...trouble, node.updated ? `updated ${ago(node.updated)}` : ""].filter(Boolean).join("\n")),
  svg("rect", { width: WIDE, height: HIGH, rx: 6, class: "box" }),
  svg("rect", { width: 5, height: HIGH - 12, x: 6, y: 6, rx: 2.5, "data-state": node.state, class: "state" }),
  svg("text", { x: 20, y: 19, class: "title" }, clip(node.table, 23)),
  svg("text", { x: 20, y: 36, class: "quiet" }, clip(`${node.helper_of ? "helper" : node.kind} · ${second}`, 27)));
}

const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// One part in the middle, what it was computed from at the left, what it feeds at the right.
export function partFlow(found, go) {
  const read = found.computed_from.length ? found.computed_from : found.requires;
  const side = (items, empty) =>
    items.length
      ? items.map((item) => make("li", {}, make("b", {}, name(item.table)), " ", partLinks(item, go)))
      : make("li.quiet", {}, empty);
  return make("div.partflow", {},
    make("ul", { "aria-label": "Computed from" }, side(read, found.kind === "view" ? "nothing yet" : "comes from outside")),
    make("div.arrow", { "aria-hidden": "true" }, "→"),
    make("div.middle", { "data-state": found.state }, make("b", {}, name(found.table)), make("br"), name(found.part ?? "all of it")),
    make("div.arrow", { "aria-hidden": "true" }, "→"),
    make("ul", { "aria-label": "Feeds" }, side(found.feeds, "nothing reads it")));
}

function partLinks(item, go) {
  if (item.whole) return make("button.link", { onclick: () => go(item.table, null) }, "all of it");
  if (!item.links.length) return item.parts.join(", ");
  const few = item.links.length <= 3 ? item.links : [item.links[0], item.links.at(-1)];
  const links = few.map((part) => make("button.link", {
    class: `link ${item.changed.includes(part) ? "changed" : ""}`, onclick: () => go(item.table, part),
    title: item.revisions?.[part] ? `revision ${item.revisions[part]} was read` : part,
  }, part.slice(-5).includes(":") ? part.slice(11) : part));
  return item.links.length <= 3 ? links.flatMap((link) => [link, " "]) : [links[0], " … ", links[1], ` (${item.count})`];
}

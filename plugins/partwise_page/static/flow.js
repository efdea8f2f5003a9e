// Lineage, drawn: of all tables, and of one part in both directions.
import { ask } from "./api.js";
import { differs, make, replace, svg } from "./dom.js";
import { ago, length, plural } from "./time.js";

const WIDE = 190;
const HIGH = 46;
const ACROSS = 270;
const DOWN = 62;

export async function showLineage(place, state, wanted) {
  const { nodes, edges } = await ask("lineage", { helpers: state.helpers || null });
  const wide = place.clientWidth - 34;
  if (!wanted.current() || !differs(place, [nodes, edges, state.table, state.helpers, state.full, state.search, wide])) return;
  const spots = arrange(nodes, edges);
  const width = Math.max(...[...spots.values()].map((spot) => spot.x), 0) + WIDE + 40;
  const height = Math.max(...[...spots.values()].map((spot) => spot.y), 0) + HIGH + 40;
  const near = inTheLight(nodes, edges, state);
  const scale = state.full ? 1 : Math.min(1, wide / width);
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: width * scale, height: height * scale, class: "flow", role: "img", "aria-label": "Lineage of all tables" });
  for (const edge of edges) {
    const far = near && !(near.has(edge.source) && near.has(edge.view));
    const line = curve(spots.get(edge.source), spots.get(edge.view));
    drawn.append(svg("path", { d: line, class: far ? "edge far" : "edge" }, svg("title", {}, `${edge.view} reads ${edge.source}${edge.reads.join(", ")}`)));
  }
  for (const node of nodes) drawn.append(box(node, spots.get(node.table), near, state, wanted));
  const fold = make("label.quiet", {}, make("input", { type: "checkbox", checked: state.helpers, onchange: (event) => wanted.helpers(event.target.checked) }), " with generated helpers");
  const full = wide < width ? make("label.quiet", {}, make("input", { type: "checkbox", checked: state.full, onchange: (event) => wanted.full(event.target.checked) }), " in full size") : null;
  replace(place, make("div.tools", {}, fold, full, make("span.quiet", {}, "Click a table for its definition and charts; its relatives stay in the light.")), make("div.canvas", {}, drawn));
}

// Who is searched for, or who is related to the table that was chosen; null: everybody.
function inTheLight(nodes, edges, state) {
  const wanted = (state.search ?? "").trim().toLowerCase();
  if (wanted) return new Set(nodes.map((node) => node.table).filter((table) => table.toLowerCase().includes(wanted)));
  return state.table ? related(state.table, edges) : null;
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

function curve(a, b, size = { wide: WIDE, high: HIGH }) {
  if (!a || !b) return "";
  const [x1, y1, x2, y2] = [a.x + size.wide, a.y + size.high / 2, b.x, b.y + size.high / 2];
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

// One part in the middle, what it is computed from at the left, what it feeds at the right.
const PART = { wide: 134, high: 46 };
const [BETWEEN, APART, MOST] = [31, 9, 7];

export function partFlow(found, wanted) {
  const sides = [found.upstream, found.downstream].map((items) => (items.length > MOST ? [...items.slice(0, MOST - 1), { more: items.length - MOST + 1 }] : items));
  const high = Math.max(...sides.map((items) => items.length), 1) * (PART.high + APART) - APART;
  const spots = (items, column) => {
    const top = (high - items.length * (PART.high + APART) + APART) / 2;
    return items.map((item, at) => ({ x: column * (PART.wide + BETWEEN), y: top + at * (PART.high + APART) }));
  };
  const [left, [middle], right] = [spots(sides[0], 0), spots([found], 1), spots(sides[1], 2)];
  const lines = svg("svg", { width: 3 * PART.wide + 2 * BETWEEN, height: high, class: "flow", "aria-hidden": "true" },
    left.map((spot) => svg("path", { d: curve(spot, middle, PART), class: "edge" })),
    right.map((spot) => svg("path", { d: curve(middle, spot, PART), class: "edge" })));
  const place = ({ x, y }) => `left:${x}px;top:${y}px;width:${PART.wide}px;height:${PART.high}px`;
  const boxes = (items, places, label) => make("ul", { "aria-label": label }, items.map((item, at) => make("li.partbox", { style: place(places[at]) },
    item.more ? make("span.quiet", {}, `and ${item.more} more`) : [make("b", { title: titleOf(item) }, item.table), make("span", {}, partLinks(item, wanted))])));
  const none = (column, text) => make("p.quiet.none", { style: place(spots([text], column)[0]) }, text);
  return make("div.partflow", { style: `height:${high}px` }, lines,
    sides[0].length ? boxes(sides[0], left, "Computed from") : none(0, found.kind === "view" ? "nothing yet" : "comes from outside"),
    make("div.partbox.middle", { "data-state": found.state, style: place(middle) }, make("b", { title: found.table }, found.table), make("span", {}, found.part ?? "all of it")),
    sides[1].length ? boxes(sides[1], right, "Feeds") : none(2, "nothing reads it"));
}

const titleOf = (item) => (item.through.length ? `${item.table}, through ${item.through.join(", ")}` : item.table);

function partLinks(item, wanted) {
  if (item.whole) return make("button.link", { onclick: () => wanted.go(item.table, null) }, "all of it");
  if (!item.links.length) {
    const range = item.parts.length === 1 ? item.parts[0] : `${item.parts[0].split("..")[0]}..${item.parts.at(-1).split("..").at(-1)}`;
    return make("button.link", { title: range, onclick: () => wanted.range(item.table, range) }, plural(item.count, "part"));
  }
  const few = item.links.length <= 2 ? item.links : [item.links[0], item.links.at(-1)];
  const links = few.map((part) => make("button.link", {
    class: `link ${item.changed.includes(part) ? "changed" : ""}`, onclick: () => wanted.go(item.table, part),
    title: item.revisions?.[part] ? `${part}: revision ${item.revisions[part]} was read` : part,
  }, part.slice(-5).includes(":") ? part.slice(11) : part));
  return item.links.length <= 2 ? links.flatMap((link) => [link, " "]) : [links[0], " … ", links[1], ` (${item.count})`];
}

// What the page shows, as a link: #table=..&part=..&range=A..B&view=..; and ways into the rest of Airflow.
import { base } from "./api.js";
import { make } from "./dom.js";
import { parseUtc } from "./time.js";

const KEYS = ["view", "table", "part", "range", "since"];

export function fromLink() {
  const found = {};
  const given = new URLSearchParams(location.hash.slice(1));
  for (const key of KEYS) if (given.get(key)) found[key] = given.get(key);
  const dag = new URLSearchParams(location.search).get("dag");
  if (dag && !found.table) Object.assign(found, { table: dag, view: found.view ?? "table", dag });
  return found;
}

// `moved`: as a step of its own, for the browser's button "back".
export function toLink(state, moved = false) {
  const hash = new URLSearchParams();
  for (const key of KEYS) if (state[key] && state[key] !== "heat") hash.set(key, state[key]);
  const text = `#${hash.toString().replaceAll("%3A", ":")}`;
  if (text !== (location.hash || "#")) {
    const address = text === "#" ? location.pathname + location.search : text;
    if (moved) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }
  try {
    // Airflow's own address shows the same, so that it can be copied.
    if (parent !== window && parent.location.pathname.includes("/plugin/parts")) {
      const path = `${base()}/plugin/parts${location.pathname.slice(base().length)}`;
      parent.history.replaceState(parent.history.state, "", path + (text === "#" ? "" : text));
    }
  } catch {
    // not in Airflow
  }
}

// A range of a link as seconds, the end not included; parts have lengths, so one part is as long as its text is exact.
export function rangeOf(text) {
  const [first, last = first] = text.split("..");
  const begin = parseUtc(first);
  const end = parseUtc(last);
  if (begin === null || end === null) return null;
  const exact = last.length <= 10 ? 86400 : last.length <= 16 ? 60 : 1;
  return end + exact > begin ? [begin, end + exact] : null;
}

// Inside of Airflow a frame may not navigate the window around it, but it may press a link in it.
export function airflowLink(path, text) {
  const href = base() + path;
  return make("a", {
    href,
    onclick: (event) => {
      let outside = null;
      try {
        outside = parent !== window ? parent.document : null;
      } catch {
        return;
      }
      if (!outside || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const link = outside.createElement("a");
      link.href = href;
      outside.body.append(link);
      link.click();
      link.remove();
    },
  }, text);
}

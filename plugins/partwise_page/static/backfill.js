// "Backfill this range": first what it would do, then the button that does it.
import { ask, askAirflow, send } from "./api.js";
import { chip, make, replace } from "./dom.js";
import { airflowLink } from "./link.js";
import { duration, plural } from "./time.js";

const EVERY = 2000;
const PATIENCE = 30;
const OVER = { success: ["fresh", "finished"], failed: ["failed", "failed"] };
const WORDS = { "requested": "is recomputed", "needed first": "is needed first", follows: "follows, where what it reads changes" };

export function backfillForm(table, range, wanted) {
  const result = make("div.plan");
  const field = make("input", { value: range, "aria-label": "Range", size: "34", spellcheck: "false" });
  const upstream = make("input", { type: "checkbox" });
  const downstream = make("input", { type: "checkbox", checked: true });
  const values = () => ({ table, range: field.value, upstream: upstream.checked, downstream: downstream.checked });
  const plan = make("button", { type: "submit" }, "Show the plan");
  const form = make("form.backfill", {
    onsubmit: async (event) => {
      event.preventDefault();
      plan.disabled = true;
      try {
        const [found, rights] = await Promise.all([ask("backfill", values()), ask("rights", { table })]);
        replace(result, shown(found, rights, () => start(values(), result, wanted)));
      } catch (why) {
        replace(result, make("p.problem", {}, why.message));
      }
      plan.disabled = false;
    },
    oninput: () => replace(result),
  },
  make("h3", {}, "Backfill this range"),
  make("p", {}, field),
  make("p.quiet", {}, make("label", {}, upstream, " also what it is computed from "), make("label", {}, downstream, " and what follows")),
  plan,
  result);
  return form;
}

function shown(found, rights, go) {
  return [
    make("table.lines", {},
      make("tr", {}, ["table", "parts", "", "time"].map((text) => make("th", {}, text))),
      found.lines.map((line) => make("tr", {},
        make("td", {}, line.table),
        make("td.number", { title: line.parts }, line.count.toLocaleString()),
        make("td", {}, WORDS[line.why] ?? line.why),
        make("td.number", {}, duration(line.seconds))))),
    found.notes.map((note) => make("p", {}, note)),
    rights.backfill
      ? make("p", {}, make("button.primary", { onclick: (event) => { event.preventDefault(); event.target.disabled = true; go(); } },
          `Backfill ${plural(found.parts, "part")}`))
      : make("p.quiet", {}, "You have read-only access to this view."),
  ];
}

async function start(values, result, wanted) {
  try {
    const run = await send("backfill", values);
    follow(run, result, wanted);
    wanted.changed();
  } catch (why) {
    replace(result, make("p.problem", {}, why.message));
  }
}

// Says how the run goes until it is over, or until the panel shows something else.
async function follow(run, result, wanted) {
  const path = `dags/${run.dag}/dagRuns/${encodeURIComponent(run.run)}`;
  const link = airflowLink(`/dags/${run.dag}/runs/${encodeURIComponent(run.run)}`, run.run);
  const place = make("span");
  const line = make("p.started", { role: "status" }, place, " ", link);
  replace(place, chip("building", "started"));
  replace(result, line);
  for (let missed = 0; line.isConnected && missed < PATIENCE; ) {
    const found = await askAirflow(path);
    missed = found ? 0 : missed + 1; // it may be starting again, or not be there at all
    const over = OVER[found?.state];
    if (found) replace(place, over ? chip(...over) : chip("building", found.state));
    if (over) return wanted.changed();
    await new Promise((go) => setTimeout(go, EVERY));
  }
}

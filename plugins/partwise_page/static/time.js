// Times for people, in the zone that they chose in Airflow, else in the browser's; UTC where exactness matters.
const KEY = "timezone"; // of Airflow's choice in localStorage, which this frame shares with it
/** @type {Intl.DateTimeFormatOptions} */
const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
/** @type {Record<string, Intl.DateTimeFormatOptions>} */
const SHAPES = {
  day: { month: "short", day: "numeric" },
  clock: CLOCK,
  exact: { ...CLOCK, second: "2-digit" },
  full: { year: "numeric", month: "short", day: "numeric", ...CLOCK, second: "2-digit" },
  brief: { month: "short", day: "numeric", ...CLOCK },
  month: { month: "short", year: "numeric" },
};
let zone = null;
let formats = {};
let fields = null;

/** @type {[number, string][]} */
const UNITS = [[604800, "week"], [86400, "day"], [3600, "hour"], [60, "minute"]];

function use(name) {
  zone = name;
  formats = Object.fromEntries(Object.entries(SHAPES).map(([key, shape]) => [key, new Intl.DateTimeFormat(undefined, { ...shape, timeZone: name })]));
  fields = new Intl.DateTimeFormat("en-US-u-ca-iso8601", {
    timeZone: name, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
  });
}

function chosen() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  try {
    const stored = JSON.parse(localStorage.getItem(KEY));
    return stored ? new Intl.DateTimeFormat(undefined, { timeZone: stored }).resolvedOptions().timeZone : own;
  } catch {
    return own; // storage may be forbidden, and anything may stand in it
  }
}

use(chosen());
export const zoneName = () => zone;

export function followZone(changed) {
  addEventListener("storage", (event) => {
    if (event.key !== KEY || chosen() === zone) return;
    use(chosen());
    changed();
  });
}

const text = (format, seconds) => formats[format].format(new Date(seconds * 1000));

export const brief = (seconds) => text("brief", seconds);
export const local = (seconds) => text("full", seconds);
// From one moment to another; the day is said once if it is the same.
export function stretch(begin, end) {
  const same = Math.floor(wall(begin) / 86400) === Math.floor(wall(end) / 86400);
  return `${local(begin)} – ${text(same ? "exact" : "full", end)}`;
}
export const utc = (seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;

export function ago(seconds, now = Date.now() / 1000) {
  const past = now - seconds;
  if (past < 0) return "just now";
  for (const [length, word] of UNITS.slice(1)) {
    const count = Math.floor(past / length);
    if (count >= 1) return `${count} ${word}${count > 1 ? "s" : ""} ago`;
  }
  return past < 10 ? "just now" : `${Math.floor(past)} seconds ago`;
}

export function length(seconds) {
  for (const [unit, word] of UNITS) {
    if (seconds % unit === 0) return plural(seconds / unit, word);
  }
  return plural(seconds, "second");
}

export const plural = (count, word) => `${count.toLocaleString()} ${word}${count === 1 ? "" : "s"}`;

export function duration(seconds) {
  if (seconds === null) return "unknown";
  if (seconds < 1) return "under a second";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

// A part as the server writes it.
export function partText(begin, partLength) {
  const text = new Date(begin * 1000).toISOString();
  return text.slice(0, partLength % 86400 === 0 ? 10 : partLength % 60 === 0 ? 16 : 19);
}

export function parseUtc(text) {
  const match = /^(\d{4,})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?)?$/.exec(text.trim());
  if (!match) return null;
  const [, y, m, d, h = 0, min = 0, s = 0] = match;
  return Date.UTC(+y, +m - 1, +d, +h, +min, +s) / 1000;
}

// What clocks show at a moment, counted in seconds as if it were UTC.
function wall(seconds) {
  const found = Object.fromEntries(fields.formatToParts(new Date(seconds * 1000)).map(({ type, value }) => [type, +value]));
  const shown = new Date(0);
  shown.setUTCFullYear(found.year, found.month - 1, found.day);
  return shown.setUTCHours(found.hour, found.minute, found.second) / 1000;
}

// The moment near to this one at which clocks show a multiple of `step`: they may have been put forward or back meanwhile.
function onStep(at, step) {
  for (let again = 0; again < 2; again += 1) {
    const over = ((wall(at) % step) + step) % step;
    at += over > step / 2 ? step - over : -over;
  }
  return at;
}

const STEPS = [60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600];

// Ticks of an axis, on round local times: [{at, text, strong}].
export function ticks(begin, end, width) {
  const wanted = (end - begin) / Math.max(2, width / 90);
  const step = STEPS.find((each) => each >= wanted);
  if (!step) return months(begin, end, wanted);
  const found = [];
  for (let at = onStep(Math.floor(begin), step); at < end; at = onStep(at + step, step)) {
    if (at < begin) continue;
    const midnight = wall(at) % 86400 === 0;
    found.push({ at, text: text(step >= 86400 || midnight ? "day" : "clock", at), strong: midnight });
  }
  return found;
}

function months(begin, end, wanted) {
  const every = Math.max(1, Math.round(wanted / 2629800));
  const found = [];
  const first = new Date(wall(begin) * 1000);
  for (let n = 1; ; n += every) {
    const shown = Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + n, 1) / 1000;
    const at = onStep(2 * shown - wall(shown), 86400);
    if (at >= end) return found;
    found.push({ at, text: text("month", at), strong: new Date(shown * 1000).getUTCMonth() === 0 });
  }
}

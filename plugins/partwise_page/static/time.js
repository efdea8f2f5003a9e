// Times for people, in the viewer's zone; UTC where exactness matters.
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const full = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});
const exact = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const month = new Intl.DateTimeFormat(undefined, { month: "short", year: "numeric" });
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export const local = (seconds) => full.format(new Date(seconds * 1000));
// From one moment to another; the day is said once if it is the same.
export function stretch(begin, end) {
  const [a, b] = [new Date(begin * 1000), new Date(end * 1000)];
  const same = a.toDateString() === b.toDateString();
  return `${full.format(a)} – ${same ? exact.format(b) : full.format(b)}`;
}
export const utc = (seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;

export function ago(seconds, now = Date.now() / 1000) {
  const past = now - seconds;
  if (past < 0) return "just now";
  for (const [length, word] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
    const count = Math.floor(past / length);
    if (count >= 1) return `${count} ${word}${count > 1 ? "s" : ""} ago`;
  }
  return past < 10 ? "just now" : `${Math.floor(past)} seconds ago`;
}

export function length(seconds) {
  for (const [unit, word] of [[604800, "week"], [86400, "day"], [3600, "hour"], [60, "minute"]]) {
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
  return Date.UTC(+y, m - 1, +d, +h, +min, +s) / 1000;
}

const STEPS = [60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600];

// Ticks of an axis, on round local times: [{at, text, strong}].
export function ticks(begin, end, width) {
  const wanted = (end - begin) / Math.max(2, width / 90);
  const step = STEPS.find((each) => each >= wanted);
  if (!step) return months(begin, end, wanted);
  const found = [];
  const offset = new Date(begin * 1000).getTimezoneOffset() * 60;
  for (let at = Math.ceil((begin - offset) / step) * step + offset; at < end; at += step) {
    const date = new Date(at * 1000);
    const midnight = date.getHours() === 0 && date.getMinutes() === 0;
    found.push({ at, text: step >= 86400 || midnight ? day.format(date) : clock.format(date), strong: midnight });
  }
  return found;
}

function months(begin, end, wanted) {
  const every = Math.max(1, Math.round(wanted / 2629800));
  const found = [];
  const date = new Date(begin * 1000);
  let at = new Date(date.getFullYear(), date.getMonth() + 1, 1);
  while (at.getTime() / 1000 < end) {
    found.push({ at: at.getTime() / 1000, text: month.format(at), strong: at.getMonth() === 0 });
    at = new Date(at.getFullYear(), at.getMonth() + every, 1);
  }
  return found;
}

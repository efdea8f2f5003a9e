// Elements without innerHTML: names and messages come from people and are only ever text.
export function make(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "style") element.style.cssText = value; // as an attribute the page's own policy would refuse it
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

// Whether an element would show something else than it does: what is the same is left alone, with whatever is selected in it.
let made = new WeakMap();
export function differs(element, data) {
  const text = JSON.stringify(data);
  if (made.get(element) === text) return false;
  made.set(element, text);
  return true;
}
export const forget = () => { made = new WeakMap(); };

export function chip(word, text = word) {
  return make("span.chip", { "data-state": word }, make("i"), text);
}

// What became of one check of a part.
export function verdict(line) {
  if (line.ok) return chip("fresh", "passed");
  return line.severity === "warn" ? chip("stale", "warns") : chip("failed", line.outcome);
}

// A name may be broken behind its underscores, and a part before its time of day; nowhere else.
export function name(text) {
  return text.split(/(?<=_)(?=[^_])|(?=T\d)/).flatMap((piece, at) => (at ? [make("wbr"), piece] : [piece]));
}

// What stands between back-ticks is to be typed.
export function prose(text) {
  return text.split("`").map((piece, at) => (at % 2 ? make("code", {}, piece) : piece));
}

export function say(text) {
  byId("spoken").textContent = text;
}

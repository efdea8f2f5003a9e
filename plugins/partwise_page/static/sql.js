// SQL with its words in colour: enough to read it by, no more.
import { make } from "./dom.js";

const KEYWORDS = new Set(`select from where group by having order join left right full outer inner cross on using as and or not
in is null like between case when then else end union all distinct over partition rows range with lateral view explode
limit interval cast exists window pattern initialize update asc desc true false filter qualify values`.split(/\s+/));
const TOKEN = /(--[^\n]*|\/\*[\s\S]*?\*\/)|('(?:[^'\\]|\\.|'')*')|(\b\d+(?:\.\d+)?\b)|([A-Za-z_]\w*)(?=\s*\()|([A-Za-z_]\w*)|(\[[^\]]*\])/g;

export function highlight(text) {
  const code = make("pre.code.sql");
  let last = 0;
  for (const match of text.matchAll(TOKEN)) {
    code.append(text.slice(last, match.index));
    const [whole, comment, string, number, call, word, reference] = match;
    const kind = comment ? "comment" : string ? "string" : number ? "number" : reference ? "reference"
      : KEYWORDS.has((call ?? word ?? "").toLowerCase()) ? "keyword" : call ? "call" : null;
    code.append(kind ? make(`span.${kind}`, {}, whole) : whole);
    last = match.index + whole.length;
  }
  code.append(text.slice(last));
  return code;
}

// Parses the page's modules and links them: a typing error, or an import of a name that its file does not export, is
// reported with its place. Needs only Node: node --experimental-vm-modules tools/check_page.mjs
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import vm from "node:vm";

const folder = resolve(process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), "../plugins/partwise_page/static"));
const modules = new Map();

function load(file) {
  if (!modules.has(file)) modules.set(file, new vm.SourceTextModule(readFileSync(file, "utf8"), { identifier: file }));
  return modules.get(file);
}

let failed = 0;
for (const name of readdirSync(folder).filter((name) => name.endsWith(".js"))) {
  try {
    const module = load(join(folder, name));
    if (module.status === "unlinked") await module.link((wanted, from) => load(resolve(dirname(from.identifier), wanted)));
  } catch (why) {
    console.error(`${name}: ${why.stack.split("\n").slice(0, 5).join("\n")}`);
    failed = 1;
  }
}
process.exitCode = failed;

#!/bin/sh
# Checks the page's JavaScript with what is there: types with tsc, else syntax and imports with Node, else nothing.
cd "$(dirname "$0")/.." || exit 1
if command -v tsc >/dev/null 2>&1; then
    exec tsc -p tools/page_types.json
elif command -v node >/dev/null 2>&1; then
    exec node --no-warnings --experimental-vm-modules tools/check_page.mjs
fi

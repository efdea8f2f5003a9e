#!/bin/sh
# Removes what runs leave behind: caches, generated pages, and the example that `make run` serves from .run/, with the data
# that its feed made. The set-up stays (make distclean removes it), so does whatever git knows, and so do the warehouse and
# the ledger of this folder: they may hold somebody's data.
cd "$(dirname "$0")/.." || exit 1
rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log build ./*.egg-info data_docs coverage .coverage
served="$(cat .run/.partwise/lock 2>/dev/null)"
if [ -n "$served" ] && kill -0 "$served" 2>/dev/null; then
    echo "clean: .run is being served by process $served, so it stays"
else
    rm -rf .run
fi
# Only Python's own folders, and none inside the set-up or git.
find . \( -path ./.venv -o -path ./.git \) -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

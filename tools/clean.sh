#!/bin/sh
# Removes what runs leave behind. The set-up stays (make distclean removes it), and so does whatever git knows.
cd "$(dirname "$0")/.." || exit 1
rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log build ./*.egg-info
# Only Python's own folders, and none inside the set-up or git.
find . \( -path ./.venv -o -path ./.git \) -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

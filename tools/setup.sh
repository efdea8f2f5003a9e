#!/bin/sh
# Sets up the project, once: virtual environment, Java, Delta's jars. A sound set-up is recognised shortly.
# This part only finds a Python to run the rest with. PYTHON=... chooses one.
cd "$(dirname "$0")/.." || exit 1

NEEDS="Partwise needs Python 3.11, 3.12 or 3.13"
version() { "$1" -c 'import sys; sys.stdout.write("Python %d.%d" % sys.version_info[:2])' 2>/dev/null || echo "not a Python that starts"; }
fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }

if [ -n "$PYTHON" ]; then
    if ! fits "$PYTHON"; then
        echo "$NEEDS, and PYTHON=$PYTHON is $(version "$PYTHON")." >&2
        exit 1
    fi
    python=$PYTHON
elif fits .venv/bin/python; then
    python=.venv/bin/python
else
    python=
    for candidate in python3 python3.13 python3.12 python3.11 python; do
        if fits "$candidate"; then python=$candidate; break; fi
    done
    if [ -z "$python" ]; then
        echo "$NEEDS, and python3 here is $(version python3); install one, or name it: make setup PYTHON=/path/to/python3.12" >&2
        exit 1
    fi
fi
# -I: no user site, no PYTHON* variables; nothing of the user's can get in the way.
exec "$python" -I tools/setup "$@"

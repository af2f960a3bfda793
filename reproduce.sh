#!/usr/bin/env bash
# The one entry point: ./reproduce.sh VERB ... (./reproduce.sh --help lists the verbs).
# The first use makes .venv with the locked dependencies. PYTHON chooses the interpreter
# (3.11 or newer). Relative paths are read in the current folder, so there is no `cd`.
set -euo pipefail
# Resolved, so that a symbolic link to this file works.
root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

stamp=$root/.venv/locked
if ! cmp -s "$root/requirements.lock" "$stamp"; then
    echo "Setting up .venv with the locked dependencies (a few minutes, once) ..." >&2
    "${PYTHON:-python3}" -m venv "$root/.venv"
    "$root/.venv/bin/python" -m pip install --quiet --no-compile \
        --disable-pip-version-check --require-hashes -r "$root/requirements.lock"
    cp "$root/requirements.lock" "$stamp"
fi
# With -P, folders of these names in the current folder are never imported.
PYTHONPATH=$root exec "$root/.venv/bin/python" -P -m benchmarks "$@"

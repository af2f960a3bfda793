#!/usr/bin/env bash
# The one entry point: ./reproduce.sh VERB ... (./reproduce.sh --help lists the verbs).
# First use makes .venv with the locked dependencies; everything else is
# `python -m benchmarks`. PYTHON chooses the interpreter (3.11 or newer).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stamp=.venv/locked
if ! cmp -s requirements.lock "$stamp"; then
    echo "Setting up .venv with the locked dependencies (a few minutes, once) ..." >&2
    "${PYTHON:-python3}" -m venv .venv
    .venv/bin/python -m pip install --quiet --no-compile --disable-pip-version-check \
        --require-hashes -r requirements.lock
    cp requirements.lock "$stamp"
fi
exec .venv/bin/python -m benchmarks "$@"

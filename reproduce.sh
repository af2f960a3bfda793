#!/bin/sh
# The one entry point: ./reproduce.sh VERB ... (./reproduce.sh --help lists the verbs).
# The first use makes .venv with the locked dependencies. PYTHON chooses the interpreter
# (3.11 or newer). Relative paths are read in the current folder, so there is no `cd`.
# Any POSIX shell runs it, so `sh reproduce.sh` works too.
set -eu
# Resolved, so that a symbolic link to this file works.
root=$(dirname "$(readlink -f "$0")")
venv=$root/.venv
lock='import fcntl, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("Another process sets up .venv; waiting for it ...", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)'

fail() {
    echo "error: $1" >&2
    exit 2
}

is_ready() {
    [ -x "$venv/bin/python" ] && [ ! -e "$venv/unfinished" ] &&
        cmp -s "$root/requirements.lock" "$venv/locked"
}

check_python() {
    other="PYTHON=/path/to/python ./reproduce.sh names another one"
    command -v "$1" >/dev/null ||
        fail "there is no $1: install Python 3.11 or newer; $other"
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$1 must be Python 3.11 or newer; $other"
    "$1" -c 'import ensurepip, fcntl, venv' 2>/dev/null ||
        fail "$1 has no module venv: install it (Debian: apt install python3-venv); $other"
}

# Nothing is unpacked where there is no room for it. What is there was measured: .venv
# takes 6.2 GB on Linux, and 1.2 GB without the CUDA build of torch.
check_room() {
    needed=3
    [ "$(uname -s)" = Linux ] && needed=7
    # What an earlier set-up left there is written over.
    held=$(du -sk "$venv" | cut -f1)
    found=$(df -Pk "$venv" | awk "NR == 2 { print int((\$4 + $held) / 1000000) }")
    [ "${found:-$needed}" -ge "$needed" ] ||
        fail "the set-up needs $needed GB of disk space for $venv, and there are $found GB"
}

# Install the packages of the lock whose lines an awk pattern takes. Their archives lie
# beside them, not in /tmp, and pip keeps no copies of them.
install() {
    awk "/^[^ #]/ { keep = $1 } keep" "$root/requirements.lock" >"$venv/part" &&
        mkdir -p "$venv/tmp" &&
        TMPDIR=$venv/tmp "$venv/bin/python" -m pip install --quiet --no-compile --no-deps \
            --no-cache-dir --disable-pip-version-check --require-hashes $again -r "$venv/part"
}

set_up() {
    rm -rf "$venv/tmp"
    [ -e "$venv/locked" ] || check_room
    # What a broken set-up left is not trusted: all packages are installed over it.
    again=
    if [ -e "$venv/unfinished" ]; then
        echo "The last set-up of .venv did not finish; it is done again." >&2
        again=--ignore-installed
    fi
    echo "Setting up .venv with the locked dependencies (a few minutes, once) ..." >&2
    touch "$venv/unfinished" || return
    # venv keeps links to an interpreter that is gone.
    [ -x "$venv/bin/python" ] || rm -f "$venv"/bin/python*
    "$python" -m venv "$venv" || return
    # Large ones first and by themselves: at the end, few archives lie beside all packages.
    install '/^(nvidia|cuda)/' && install '/^(torch|triton)/' &&
        install '!/^(nvidia|cuda|torch|triton)/' || return
    rm -rf "$venv/tmp" "$venv/part"
    cp "$root/requirements.lock" "$venv/locked" && rm "$venv/unfinished"
}

if ! is_ready; then
    [ -f "$root/requirements.lock" ] || fail "expected a checkout in $root"
    python=${PYTHON:-python3}
    check_python "$python"
    mkdir -p "$venv" 2>/dev/null && touch "$venv/lock" 2>/dev/null ||
        fail "$venv must be a writable folder"
    # One process sets up, others wait. The lock ends with the last process that has it.
    exec 9>"$venv/lock"
    "$python" -c "$lock" || fail "$venv/lock cannot be locked"
    is_ready || set_up || fail "the set-up of .venv did not finish, for the reason above; \
the next ./reproduce.sh does it again"
    exec 9>&-
fi
# With -P, folders of these names in the current folder are never imported.
PYTHONPATH=$root exec "$venv/bin/python" -P -m benchmarks "$@"

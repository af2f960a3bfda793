"""`reproduce.sh`: any shell, and a set-up that breaks half-way is done again."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import groupby

import pytest

from benchmarks.runs.paths import ROOT

SHELLS = [name for name in ("sh", "dash", "bash", "busybox") if shutil.which(name)]

FAKE = f"""#!/bin/sh
# Stands for an interpreter: it notes its calls, and breaks where it is told to.
case "$*" in
-c*) [ "$BREAK" = old ] && case "$2" in *version_info*) exit 1;; esac
     [ "$BREAK" = bare ] && case "$2" in *ensurepip*) exit 1;; esac
     exec "{sys.executable}" "$@";;
"-m venv"*) echo venv >>"$LOG"
    mkdir -p "$3/bin"
    [ "$BREAK" = venv ] && exit 1
    cp "$0" "$3/bin/python";;
"-m pip"*) echo "pip $*" >>"$LOG"
    [ "$BREAK" = pip ] && {{ echo "No space left on device" >&2; exit 1; }}
    [ "$BREAK" = killed ] && kill -9 $PPID && exit 1
    sleep "${{PAUSE:-0}}";;
*) echo "run $*" >>"$LOG";;
esac
"""


DISK = """#!/bin/sh
# Stands for a disk with so many GB of free space.
echo Filesystem 1024-blocks Used Available Capacity Mounted on
echo /dev/disk 99000000 0 ${FREE}000000 0% "/the disk"
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout without an environment, and an interpreter that makes none."""
    folder = tmp_path / "the checkout"
    folder.mkdir()
    for name in ("reproduce.sh", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    python = tmp_path / "the python"
    python.write_text(FAKE)
    python.chmod(0o755)
    disk = tmp_path / "bin" / "df"
    disk.parent.mkdir()
    disk.write_text(DISK)
    disk.chmod(0o755)
    return folder


def settings(checkout, **more):
    python = str(checkout.with_name("the python"))
    log = str(checkout.with_name("log"))
    path = f"{checkout.with_name('bin')}{os.pathsep}{os.environ['PATH']}"
    own = {"PYTHON": python, "LOG": log, "BREAK": "", "FREE": "9", "PATH": path}
    return os.environ | own | more


def call(checkout, *command, **more):
    return subprocess.run(
        command or [checkout / "reproduce.sh", "list", "a b"],
        env=settings(checkout, **more),
        capture_output=True,
        text=True,
    )


def calls(checkout):
    """What the interpreter was called for, since this was asked last.

    Packages are installed in three calls, which are one here.
    """
    log = checkout.with_name("log")
    text = log.read_text() if log.exists() else ""
    log.unlink(missing_ok=True)
    made = [
        "pip again" if "--ignore-installed" in line else line.split()[0]
        for line in text.splitlines()
    ]
    return [each for each, _ in groupby(made)]


@pytest.mark.parametrize("shell", SHELLS)
def test_any_shell_sets_up_once(checkout, shell):
    link = checkout.with_name("a link")
    link.symlink_to(checkout / "reproduce.sh")
    command = [shell, *(["sh"] if shell == "busybox" else []), str(link), "list"]
    ended = call(checkout, *command)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.splitlines() == [
        "Setting up .venv with the locked dependencies (a few minutes, once) ..."
    ]
    assert calls(checkout) == ["venv", "pip", "run"]
    assert call(checkout, *command).stderr == ""
    assert calls(checkout) == ["run"]


def test_arguments_arrive_as_they_are(checkout):
    assert call(checkout).returncode == 0
    assert "run -P -m benchmarks list a b" in checkout.with_name("log").read_text()


@pytest.mark.parametrize(
    ("broken", "code"), [("venv", 2), ("pip", 2), ("killed", -signal.SIGKILL)]
)
def test_a_set_up_that_breaks_is_told_and_done_again(checkout, broken, code):
    ended = call(checkout, BREAK=broken)
    assert ended.returncode == code
    if code == 2:
        assert ended.stderr.splitlines()[-1] == (
            "error: the set-up of .venv did not finish, for the reason above; the next "
            "./reproduce.sh does it again"
        )
    assert "run" not in calls(checkout)
    again = call(checkout)
    assert again.returncode == 0, again.stderr
    told = "The last set-up of .venv did not finish; it is done again."
    assert told in again.stderr.splitlines()
    assert calls(checkout) == ["venv", "pip again", "run"]
    assert call(checkout).stderr == ""


def test_a_changed_lock_and_a_lost_interpreter_are_set_up_again(checkout):
    call(checkout)
    with (checkout / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    calls(checkout)
    assert call(checkout).returncode == 0
    assert calls(checkout) == ["venv", "pip", "run"]
    python = checkout / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python")
    assert call(checkout).returncode == 0
    assert calls(checkout) == ["venv", "pip", "run"]


def test_an_update_that_broke_is_not_taken_for_the_old_state(checkout):
    call(checkout)
    lock = checkout / "requirements.lock"
    old = lock.read_text()
    lock.write_text(old + "# changed\n")
    assert call(checkout, BREAK="pip").returncode == 2
    lock.write_text(old)
    calls(checkout)
    assert call(checkout).returncode == 0
    assert calls(checkout) == ["venv", "pip again", "run"]


def test_a_disk_without_room_is_one_sentence_before_anything_is_made(checkout):
    ended = call(checkout, FREE="2")
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    place = re.escape(str(checkout / ".venv"))
    text = (
        rf"error: the set-up needs \d GB of disk space for {place}, and there are 2 GB"
    )
    assert re.fullmatch(text, line)
    assert calls(checkout) == []
    assert call(checkout).returncode == 0
    # A changed lock changes a few packages.
    with (checkout / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    assert call(checkout, FREE="2").returncode == 0


def test_every_package_of_the_lock_is_installed_once(checkout):
    parts = checkout.with_name("parts")
    python = checkout.with_name("the python")
    noted = f'"-m pip"*) for last; do :; done; cat "$last" >>"{parts}";'
    python.write_text(FAKE.replace('"-m pip"*)', noted))
    assert call(checkout).returncode == 0
    names = [line for line in parts.read_text().splitlines() if line[:1].isalnum()]
    lock = (ROOT / "requirements.lock").read_text().splitlines()
    assert sorted(names) == sorted(line for line in lock if line[:1].isalnum())
    assert names[0].startswith("cuda") and not (checkout / ".venv" / "tmp").exists()


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"PYTHON": "no-such-python"},
            "there is no no-such-python: install Python 3.11",
        ),
        ({"BREAK": "old"}, "the python must be Python 3.11 or newer; PYTHON=/path"),
        ({"BREAK": "bare"}, "the python has no module venv: install it (Debian: apt"),
    ],
)
def test_an_interpreter_that_does_not_do_is_one_sentence(checkout, more, text):
    ended = call(checkout, **more)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: ") and text in line
    assert not (checkout / ".venv").exists()


def test_what_is_no_folder_or_no_checkout_is_one_sentence(checkout, tmp_path):
    (checkout / ".venv").write_text("a file")
    ended = call(checkout)
    assert ended.stderr == f"error: {checkout}/.venv must be a writable folder\n"
    assert ended.returncode == 2
    copied = tmp_path / "reproduce.sh"
    shutil.copy(checkout / "reproduce.sh", copied)
    ended = call(checkout, copied)
    assert ended.stderr == f"error: expected a checkout in {tmp_path}\n"
    assert not (tmp_path / ".venv").exists()


def start(checkout, **more):
    return subprocess.Popen(
        [checkout / "reproduce.sh", "list"],
        env=settings(checkout, **more),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(path):
    for _ in range(500):
        if path.exists() and "pip" in path.read_text():
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} did not come")


def test_of_two_at_once_one_sets_up_and_the_other_waits(checkout):
    first = start(checkout, PAUSE="0.5")
    wait_for(checkout.with_name("log"))
    second = start(checkout)
    told = [process.communicate()[1] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    assert "Another process sets up .venv; waiting for it ..." in told[1]
    assert calls(checkout) == ["venv", "pip", "run"]


def test_an_interrupt_ends_a_set_up_and_one_that_waits(checkout):
    first = start(checkout, PAUSE="5")
    wait_for(checkout.with_name("log"))
    second = start(checkout)
    assert second.stderr.readline().startswith("Another process")
    for process in (second, first):
        os.killpg(process.pid, signal.SIGINT)
        told = process.communicate()[1]
        assert process.returncode in (130, -signal.SIGINT)
        assert "Traceback" not in told
    calls(checkout)
    assert "done again" in call(checkout).stderr

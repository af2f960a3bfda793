"""Output that nobody reads or that cannot be written, and interrupts at any moment."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from benchmarks import __main__ as process
from benchmarks.__main__ import main
from benchmarks.execution.processes import uninterrupted
from benchmarks.runs.paths import ROOT

COMMAND = [sys.executable, "-P", "-m", "benchmarks"]
LIGHT = ("list --names losses", "--help", "tabel3")
"""Commands that import no torch; what they do with streams is what all verbs do."""
STOPPED = f"stopped; {process.KEPT}\n"


def shell(line, **more):
    """Run a line of bash in which $M is the program, and return what it leaves."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "M": f"'{sys.executable}' -P -m benchmarks",
    }
    return subprocess.run(
        ["bash", "-c", line],
        env=environment | more,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("verb", LIGHT)
def test_streams_that_are_closed_full_or_unread(verb):
    """One shell for all of them: each line is the exit code and a sentence, if any."""
    more = {"PYTHONUNBUFFERED": "1"} if "--names" in verb else {}
    ended = shell(
        f"""
        eval $M {verb} >&-; echo "closed $?"
        eval $M {verb} 2>&- >/dev/null; echo "no errors $?"
        eval $M {verb} </dev/null <&- >/dev/null; echo "no input $?"
        eval $M {verb} >/dev/full; echo "full $?"
        eval $M {verb} >/dev/null 2>/dev/full; echo "full errors $?"
        eval $M {verb} | true; echo "unread ${{PIPESTATUS[0]}}"
        """,
        **more,
    )
    codes = dict(line.rsplit(" ", 1) for line in ended.stdout.splitlines())
    usual = "2" if verb == "tabel3" else "0"
    assert codes.pop("full") == "2"
    assert codes.pop("unread") == ("2" if verb == "tabel3" else "141")
    assert set(codes.values()) == {usual}, codes
    told = ended.stderr
    assert "Traceback" not in told and "Exception ignored" not in told
    if verb != "tabel3":
        assert "error: the output cannot be written (No space left" in told


def test_a_verb_that_prints_much_ends_when_nobody_reads():
    ended = shell("eval $M list | head -n 1; echo ${PIPESTATUS[0]}")
    first, code = ended.stdout.splitlines()
    assert first == "experiments"
    assert code in ("0", "141")
    assert ended.stderr == ""


def test_an_encoding_without_our_signs_is_no_traceback():
    code = "import benchmarks.__main__ as p; p.begin(); print('\\u03c6 \\udcff')"
    ended = shell(f'"$P" -c "{code}"', PYTHONIOENCODING="ascii", P=sys.executable)
    assert ended.stdout == "\\u03c6 \\udcff\n", ended.stderr


class Broken:
    """A stream that cannot be written."""

    def __init__(self, error):
        self.error = error

    def write(self, text):
        return len(text)

    def flush(self):
        raise self.error

    def fileno(self):
        return self.file.fileno()


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (OSError(28, "No space left on device"), 2, "the output cannot be written"),
        (OSError(5, "Input/output error"), 2, "(Input/output error)"),
    ],
)
def test_output_that_fails_is_told_apart(
    monkeypatch, capsys, tmp_path, error, code, text
):
    stream = Broken(error)
    with (tmp_path / "out").open("w") as stream.file:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["list", "--names", "losses"]) == code
    told = capsys.readouterr().err
    assert text in told and len(told.splitlines()) == (1 if text else 0)


@pytest.mark.parametrize("code", [1, 5, 13, 20, 21, 32, 36, 40])
def test_what_the_machine_refuses_is_one_sentence(monkeypatch, capsys, code):
    """A broken pipe (32) of something else than the output is an error, too."""

    def refused(options):
        raise OSError(code, os.strerror(code), "/some/file")

    monkeypatch.setattr("benchmarks.cli.verbs.listing.run", refused)
    assert main(["list"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: the machine refused what was ")
    assert os.strerror(code) in line and "/some/file" in line


def interrupted(after, *arguments):
    """Return the code and the errors of a command interrupted after some seconds."""
    started = subprocess.Popen(
        [*COMMAND, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(after)
    started.send_signal(signal.SIGINT)
    told = started.communicate()[1]
    return started.returncode, told


@pytest.mark.parametrize("after", [0.15, 0.3, 0.6, 1.0])
def test_an_interrupt_while_modules_are_imported(after):
    assert interrupted(after, "verify", "table3") == (130, STOPPED)


def test_an_ignored_interrupt_stays_ignored():
    ended = shell("trap '' INT; eval $M list & sleep 0.2; kill -INT $!; wait $!")
    assert ended.returncode == 0
    assert ended.stdout.startswith("experiments\n")


def test_an_interrupt_raises_while_a_verb_runs_and_ends_at_once_around_it(monkeypatch):
    ends = []
    monkeypatch.setattr(process.os, "_exit", ends.append)
    monkeypatch.setattr(process.os, "write", lambda *_: None)
    before = signal.signal(signal.SIGINT, process._end)
    try:
        with pytest.raises(KeyboardInterrupt), process.interruptible():
            signal.raise_signal(signal.SIGINT)
            time.sleep(1)
        signal.raise_signal(signal.SIGINT)
        assert ends == [130]
    finally:
        signal.signal(signal.SIGINT, before)


class InterruptedByTestError(Exception):
    """Raised by the handler: a real KeyboardInterrupt would end the test process."""


def test_processes_started_uninterrupted_get_no_interrupt():
    """Not even before their first line, and this process gets its own afterwards."""

    def handler(*_):
        raise InterruptedByTestError

    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('alive')"
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(InterruptedByTestError), uninterrupted():
            command = [sys.executable, "-S", "-c", code]
            ended = subprocess.run(command, capture_output=True, text=True)
            # To this thread: any other would take it at once.
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            assert ended.stdout == "alive\n"
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())

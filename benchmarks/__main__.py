"""The process of a command, `./reproduce.sh VERB` or `python -m benchmarks VERB`.

Streams, interrupts and errors, from arguments to exit code.

An interrupt may come at any moment, so nothing that takes time to import is imported
before `begin`.
"""

import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

INTERRUPTED, PIPE_CLOSED = 130, 141
"""Exit codes, as shells give them: 128 and the number of SIGINT or SIGPIPE."""
FAILED = 2
"""Exit code of a command that was wrong, or could not be done."""
KEPT = "finished runs are kept, the same command goes on"
STREAMS = {0: "stdin", 1: "stdout", 2: "stderr"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code.

    An expected error becomes one sentence on stderr. So does whatever the machine
    refuses: a full disk, a file without permission, an output that nobody reads.
    """
    try:
        return _answer(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        tell(f"stopped; {KEPT}")
        return INTERRUPTED
    except OSError as error:
        return _refused(error)
    except _expected_errors() as error:
        tell(f"error: {error}")
        return FAILED
    finally:
        drop_unwritable()


def _answer(arguments: Sequence[str]) -> int:
    from importlib import import_module

    from benchmarks.cli.parser import parse
    from benchmarks.runs.paths import make_variables_absolute

    try:
        options = parse(arguments)
    except SystemExit:
        # After help, of which argparse does not say that it could not be written.
        unread = output_failure()
        if unread is not None:
            raise unread from None
        raise
    # Worker processes inherit the variables of folders.
    for name, folder in (("DATA", options.data), ("STORE", options.store)):
        if folder:
            os.environ[f"METRICOPT_{name}"] = folder
    make_variables_absolute()
    verb = import_module(f"benchmarks.cli.verbs.{options.module}")
    with interruptible():
        code = int(getattr(verb, options.function)(options))
        sys.stdout.flush()
    return code


def _refused(error: OSError) -> int:
    """Say what the machine refuses and return the exit code.

    Raises:
        OSError: if it is no answer of the operating system, but a defect.
    """
    from benchmarks.runs.paths import FULL_DISK

    unread = output_failure()
    if unread is not None:
        if unread.errno == errno.EPIPE:
            # Nobody reads on, as in `list | head`: no error, so there is no sentence.
            return PIPE_CLOSED
        tell(f"error: the output cannot be written ({unread.strerror}); {KEPT}")
    elif error.errno in FULL_DISK:
        tell(f"error: the disk is full ({error}); {KEPT}")
    elif error.errno is not None:
        tell(f"error: the machine refused what was needed ({error}); {KEPT}")
    else:
        raise error
    return FAILED


def _expected_errors() -> tuple[type[Exception], ...]:
    """Return the errors that are meant for the user, of modules that are imported."""
    kinds = {
        "benchmarks.cli.parser": "UsageError",
        "metricopt.errors": "MetricOptError",
    }
    known = ((sys.modules.get(module), name) for module, name in kinds.items())
    return tuple(getattr(module, name) for module, name in known if module)


class Watched:
    """A stream that remembers why it could not be written.

    Only it knows: the error of a full or closed output names no file, and there may be
    nothing left to flush.

    Args:
        stream: what everything is handed on to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text."""
        with self._watched():
            return self._stream.write(text)

    def flush(self) -> None:
        """Write what is buffered."""
        with self._watched():
            self._stream.flush()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failure = error
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def begin() -> None:
    """Prepare this process: streams that work, and an end at once when interrupted.

    Until a verb runs there is nothing to tidy up, and an exception would be lost in
    compiled modules that are being imported. An ignored interrupt stays ignored: shells
    start background jobs so.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
    for number, name in STREAMS.items():
        try:
            os.fstat(number)
        except OSError:
            # Closed, as by `>&-`: without this, the next file would take its number.
            os.open(os.devnull, os.O_RDWR)
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
    # Folders may have names that the terminal cannot show.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.stdout, sys.stderr = Watched(sys.stdout), Watched(sys.stderr)  # type: ignore[assignment]


@contextmanager
def interruptible() -> Iterator[None]:
    """Let an interrupt raise KeyboardInterrupt while a verb runs, which tidies up."""
    if signal.getsignal(signal.SIGINT) is not _end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _end)


def tell(text: str) -> None:
    """Print a line on stderr, if anybody can read it."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def output_failure() -> OSError | None:
    """Return why what was printed could not be written; None if it was."""
    failures = [_failure(stream) for stream in (sys.stdout, sys.stderr)]
    return next((failure for failure in failures if failure is not None), None)


def drop_unwritable() -> None:
    """Drop what cannot be written, so that the flush at exit does not fail on it."""
    for stream in (sys.stdout, sys.stderr):
        if _failure(stream) is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _failure(stream: TextIO) -> OSError | None:
    try:
        stream.flush()
    except OSError as error:
        return error
    return getattr(stream, "failure", None)


def _end(number: int, frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, f"stopped; {KEPT}\n".encode())
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    begin()
    sys.exit(main())

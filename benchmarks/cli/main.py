"""The command line from the arguments to the exit code."""

import errno
import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cli.parser import parse
from benchmarks.cli.process import (
    INTERRUPTED,
    KEPT,
    PIPE_CLOSED,
    drop_unwritable,
    interruptible,
    output_failure,
    tell,
)
from benchmarks.cli.usage import UsageError
from benchmarks.runs.paths import FULL_DISK, make_variables_absolute

FAILED = 2
"""Exit code of a command that was wrong, or could not be done."""


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
    try:
        options = parse(arguments)
    except SystemExit:
        # After help, of which argparse does not say that it could not be written.
        unread = output_failure()
        if unread is not None:
            raise unread from None
        raise
    _choose_folders(options)
    verb = importlib.import_module(f"benchmarks.cli.verbs.{options.module}")
    with interruptible():
        code = int(verb.run(options))
        sys.stdout.flush()
    return code


def _refused(error: OSError) -> int:
    """Say what the machine refuses and return the exit code.

    Raises:
        OSError: if it is no answer of the operating system, but a defect.
    """
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


def _choose_folders(options: Namespace) -> None:
    """Set the environment variables of folders, which worker processes inherit."""
    for name, folder in (("DATA", options.data), ("STORE", options.store)):
        if folder:
            os.environ[f"METRICOPT_{name}"] = str(Path(folder))
    make_variables_absolute()


def _expected_errors() -> tuple[type[Exception], ...]:
    """Return the errors that are meant for the user.

    Called when an exception arrives. An error of metricopt can only arrive after its
    import, so nothing is imported here.
    """
    module = sys.modules.get("metricopt.errors")
    return (UsageError,) if module is None else (UsageError, module.MetricOptError)

"""The command line from the arguments to the exit code."""

import errno
import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cli.parser import parse
from benchmarks.cli.usage import UsageError
from benchmarks.runs.paths import make_variables_absolute

FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
KEPT = "finished runs are kept, the same command goes on"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code.

    An expected error becomes one sentence on stderr.
    """
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        _choose_folders(options)
        verb = importlib.import_module(f"benchmarks.cli.verbs.{options.module}")
        code = int(verb.run(options))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print(f"stopped; {KEPT}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Nobody reads on, as in `list | head`; the flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        print(f"error: the disk is full ({error}); {KEPT}", file=sys.stderr)
        return 2
    except _expected_errors() as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


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

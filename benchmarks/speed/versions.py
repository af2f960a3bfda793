"""`finetune` of this version and of another: `python -m benchmarks.speed.versions REV`.

REV is anything that git resolves, such as a tag. Its library is written to a temporary
folder, and two processes with one thread do every piece of work in turn, one with each.
A machine may slow down meanwhile, so the median of the ratios within turns counts.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, closing
from io import BytesIO
from pathlib import Path
from statistics import median

from tqdm import tqdm

from benchmarks.runs.paths import ROOT
from benchmarks.speed import finetune_work
from benchmarks.speed.measurement import Line, as_table
from metricopt.errors import ConfigError

Lines = list[Line]
TURNS = 7
"""Turns of every piece of work."""


def library_of(revision: str, folder: Path) -> Path:
    """Write the library as it was in a revision into a folder, and return the folder.

    Raises:
        ConfigError: if git does not know the revision.
    """
    command = ["git", "-C", str(ROOT), "archive", revision, "metricopt"]
    found = subprocess.run(command, capture_output=True, check=False)
    if found.returncode:
        said = found.stderr.decode(errors="replace").strip()
        raise ConfigError(f"REV must be a revision of this repository: {said}")
    with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


class Worker:
    """A process that does the work with one version of the library, in one thread.

    Args:
        library: the folder in which it lies.
    """

    def __init__(self, library: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(library), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", finetune_work.__file__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, name: str) -> float:
        """Do a piece of work once, and return the seconds it took.

        Raises:
            ConfigError: if the library of this version cannot do it.
        """
        assert self._process.stdin and self._process.stdout
        try:
            print(name, file=self._process.stdin, flush=True)
            return float(self._process.stdout.readline())
        except (BrokenPipeError, ValueError):
            raise ConfigError(f"this version cannot do {name!r}: see above") from None

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def lines_of(name: str, revision: str, pairs: Sequence[tuple[float, float]]) -> Lines:
    """Return the lines of one piece of work, from seconds before and after."""
    before, after = (median(seconds) for seconds in zip(*pairs, strict=True))
    ratios = sorted(new / old for old, new in pairs)
    spread = f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    return [
        (f"{name}, {revision}", f"{before:.2f} s"),
        ("  this version", f"{after:.2f} s"),
        ("  this version over the other", spread),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both versions in turn, print a table and return 0."""
    given = sys.argv[1:] if arguments is None else arguments
    if len(given) != 1:
        print("usage: python -m benchmarks.speed.versions REV", file=sys.stderr)
        return 2
    lines: Lines = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        trees = [library_of(given[0], Path(folder)), ROOT]
        workers = [stack.enter_context(closing(Worker(tree))) for tree in trees]
        turns = [(name, turn) for name in finetune_work.WORK for turn in range(TURNS)]
        pairs = defaultdict(list)
        for name, _ in tqdm(turns, unit="turn"):
            old, new = (worker.seconds(name) for worker in workers)
            pairs[name].append((old, new))
        for name, found in pairs.items():
            lines += lines_of(name, given[0], found)
    print(as_table(lines))
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except ConfigError as error:
        raise SystemExit(f"{error}") from None

"""`finetune` of this version and of another: `python -m benchmarks.speed.versions REV`.

REV is anything that git resolves, such as a tag. Its library is written to a temporary
folder, and both libraries do the same work in turn, in fresh processes with one thread.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from benchmarks.runs.paths import ROOT
from benchmarks.speed.measurement import Measurement, as_table
from metricopt.errors import ConfigError

REPEATS = 3
"""Turns of every version; the best counts."""
WORK = Path(__file__).with_name("finetune_work.py")


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


def seconds_of(library: Path) -> dict[str, float]:
    """Return the seconds of each piece of work, done with the library in a folder."""
    environment = os.environ | {"PYTHONPATH": str(library), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", str(WORK)]
    found = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    measured: dict[str, float] = json.loads(found.stdout)
    return measured


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both versions in turn, print a table and return 0."""
    given = sys.argv[1:] if arguments is None else arguments
    if len(given) != 1:
        print("usage: python -m benchmarks.speed.versions REV", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        trees = [library_of(given[0], Path(folder)), ROOT]
        turns = [[seconds_of(tree) for tree in trees] for _ in range(REPEATS)]
    lines = []
    for name in turns[0][0]:
        before, after = (min(turn[at][name] for turn in turns) for at in (0, 1))
        lines += [
            Measurement(f"{name}, {given[0]}", f"{before:.2f} s"),
            Measurement("  this version", f"{after:.2f} s"),
            Measurement("  this version over the other", f"{after / before:.2f}"),
        ]
    print(as_table(lines))
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except ConfigError as error:
        raise SystemExit(f"{error}") from None

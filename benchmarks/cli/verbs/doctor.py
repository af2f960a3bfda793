"""The verb `doctor`: what this machine has, what is missing, and how to get it.

Whatever needs an installed package is imported only after all packages were found.
"""

import importlib.util
import os
import platform
import re
import textwrap
import tomllib
from argparse import Namespace
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path

from benchmarks.cli import catalogue
from benchmarks.runs.environment import commit
from benchmarks.runs.paths import NEEDED_GIGABYTES, ROOT, free_gigabytes, roots

WIDTH = 100


def run(options: Namespace) -> int:
    """Print one screen and return 1 if something needed is missing."""
    found, missing = packages(needed())
    _show("python", platform.python_version())
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    _show("cores", f"{os.cpu_count()}; OMP_NUM_THREADS {threads}")
    _show("commit", commit() or "not a git checkout")
    _show("packages", ", ".join(found))
    if missing:
        remedy = "delete .venv and run ./reproduce.sh again"
        return _conclude([f"{', '.join(missing)} missing; {remedy}"])
    _show("GPU", _gpu())
    _detectron2()
    print(f"\n{_folders()}\n\n{_data_sets()}")
    print("runs download missing data; ./reproduce.sh data fetch does so now\n")
    return _conclude(lacks_space(roots().values()))


def needed() -> list[str]:
    """Return the names of the packages that pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = (re.match(r"[\w.-]+", text) for text in texts)
    return sorted({name[0] for name in names if name}, key=str.lower)


def packages(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the installed packages with their versions, and the missing ones."""
    found, missing = [], []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    return found, missing


def lacks_space(folders: Iterable[Path]) -> list[str]:
    """Return a sentence for each folder whose disk has too little free space."""
    return [
        f"the disk of {folder} has {free_gigabytes(folder):.1f} GB free, "
        f"less than {NEEDED_GIGABYTES:.0f} GB"
        for folder in folders
        if free_gigabytes(folder) < NEEDED_GIGABYTES
    ]


def _show(name: str, text: str) -> None:
    line = textwrap.fill(
        text,
        WIDTH,
        initial_indent=name.ljust(12),
        subsequent_indent=" " * 12,
        break_on_hyphens=False,
        break_long_words=False,
    )
    print(line)


def _conclude(problems: Sequence[str]) -> int:
    for problem in problems:
        print(f"problem: {problem}")
    print(f"not ready: {len(problems)} problems" if problems else "ready")
    return 1 if problems else 0


def _gpu() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "none"


def _detectron2() -> None:
    from benchmarks.networks.detection.detectron2_back_end import (
        INSTALL,
        check_installed,
    )
    from metricopt.errors import ConfigError

    if importlib.util.find_spec("detectron2") is None:
        _show("detectron2", "optional, not installed; install it with")
        # The commands have lines of their own, so that they can be copied.
        print("\n".join(f"  {command}" for command in INSTALL))
        return
    try:
        check_installed()
    except ConfigError as error:
        _show("detectron2", str(error))
    else:
        _show("detectron2", "installed")


def _folders() -> str:
    """Return each folder with the free space of its disk and what it holds."""
    from benchmarks.report.render import align
    from benchmarks.runs.artifacts import RUNS, cache_kinds

    held = cache_kinds()
    sizes = {"runs": held.pop(RUNS)[1]}
    sizes["cache"] = sum(size for _, size in held.values())
    rows = [("folder", "path", "free GB", "held MB")]
    for name, folder in roots().items():
        size = f"{sizes[name] / 1e6:,.0f}" if name in sizes else "-"
        rows.append((name, str(folder), f"{free_gigabytes(folder):.0f}", size))
    return align(rows)


def _data_sets() -> str:
    """Return each data set with the state of its variants, two on a line.

    What the suite draws for itself is always there, and left out.
    """
    from benchmarks.data.read_source import DrawnSource
    from benchmarks.data.registry import find_any
    from benchmarks.report.render import align

    rows = []
    for name in catalogue.data_sets():
        source = find_any(name)
        if isinstance(source, DrawnSource):
            continue
        states = [(s.variant.name, s.state) for s in source.status()]
        rows.append((name, ", ".join(f"{part} {state}" for part, state in states)))
    half = (len(rows) + 1) // 2
    pairs = zip_longest(rows[:half], rows[half:], fillvalue=("", ""))
    heading = ("data set", "state") * 2
    return align([heading, *((*left, *right) for left, right in pairs)])

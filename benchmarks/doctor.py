"""The verb `doctor`: what this machine has, what is missing, and how to get it."""

import importlib.util
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.cells import note_value
from benchmarks.datasets import find_source, source_names
from benchmarks.environment import commit
from benchmarks.paths import free_gigabytes, roots
from benchmarks.records import read_jsonl
from benchmarks.render import align

PACKAGES = ("torch", "torchvision", "gpytorch", "scikit-learn", "cma", "pandas", "timm")
NEEDED_GIGABYTES = 2.0
DETECTRON2 = (
    "pip install 'git+https://github.com/facebookresearch/detectron2.git' "
    "--no-build-isolation"
)


def examine(results: Path) -> int:
    """Print the examination; return 1 if something needed is missing."""
    problems: list[str] = []
    print(align([("what", "found"), *_machine(problems)]))
    print()
    print(align([("data set", "variant", "state"), *_data()]))
    print()
    health = _value_functions(results)
    if health:
        print("Value functions: rank correlation with the metric on held-out")
        print("trajectories, mean over the committed records")
        print(align([("experiment", "column", "row", "Spearman"), *health]))
        print()
    for problem in problems:
        print(f"problem: {problem}")
    print("ready" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


def _machine(problems: list[str]) -> list[tuple[str, str]]:
    import torch

    rows = [
        ("python", platform.python_version()),
        ("cores", str(os.cpu_count())),
        ("GPU", torch.cuda.get_device_name() if torch.cuda.is_available() else "none"),
        ("commit", commit() or "not a git checkout"),
    ]
    for name in PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            rows.append((name, "missing"))
            problems.append(f"{name} is missing: run ./reproduce.sh once more")
    found = importlib.util.find_spec("detectron2") is not None
    rows.append(("detectron2", "found" if found else f"optional; {DETECTRON2}"))
    for what, folder in roots().items():
        free = free_gigabytes(folder)
        rows.append((what, f"{folder} ({free:.0f} GB free)"))
        if free < NEEDED_GIGABYTES:
            problems.append(f"{folder} has {free:.1f} GB free, less than 2 GB")
    return rows


def _data() -> list[tuple[str, str, str]]:
    return [
        (name, status.variant.name, status.state)
        for name in source_names()
        for status in find_source(name).status()
    ]


def _value_functions(results: Path) -> list[tuple[str, str, str, str]]:
    """Return the mean Spearman correlation of every committed value function."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for path in sorted(results.glob("*/*/records.jsonl")):
        for record in read_jsonl(path):
            value = note_value(record, "spearman")
            if value is not None:
                place = (record.spec.experiment, record.spec.column, record.spec.row)
                found.setdefault(place, []).append(value)
    return [
        (*place, f"{sum(values) / len(values):.2f} ({len(values)})")
        for place, values in sorted(found.items())
    ]

"""Rebuild committed tables and figures from their records and name every difference."""

import io
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report.layout import TableLayout
from benchmarks.report.page import build
from benchmarks.runs.record import RunRecord
from benchmarks.runs.store import jsonl, read_jsonl
from metricopt.errors import MetricOptError
from metricopt.files import told

PIXEL_TOLERANCE = 8
"""Levels of 255 a pixel may differ by: processors round antialiased edges apart."""
PIXEL_SHARE = 1e-4
"""Share of the pixels that may differ by more."""


def verify(
    layout: TableLayout,
    folder: str | Path,
    *,
    reference: Sequence[RunRecord] | None = None,
) -> list[str]:
    """Return what is wrong with a report, one sentence per file, empty if nothing.

    Text must agree byte by byte, figures pixel by pixel within a small tolerance, and
    `records.jsonl` with its own canonical form.

    Args:
        layout: the experiment.
        folder: such as `results/table3/local`.
        reference: the committed records the report was written with, see
            `write_report`.
    """
    folder = Path(folder)
    try:
        records = read_jsonl(folder / "records.jsonl")
    except MetricOptError as error:
        return [str(error)]
    try:
        expected = build(layout, records, reference=reference)
    except Exception as error:  # noqa: BLE001 - whatever forged records may raise
        return [f"{folder}: its records make no report ({told(error)}); restore them"]
    expected["records.jsonl"] = jsonl(records).encode()
    problems = [_compare(folder / name, expected[name]) for name in sorted(expected)]
    known = {folder / name for name in expected}
    problems += [
        f"{path} is no file of this report"
        for path in sorted(folder.glob("*"))
        if path not in known and not path.name.startswith(".")
    ]
    return [problem for problem in problems if problem]


def _compare(path: Path, expected: bytes) -> str:
    if not path.is_file():
        return f"{path} is missing"
    found = path.read_bytes()
    if found == expected:
        return ""
    if path.suffix == ".png":
        return _compare_pixels(path, found, expected)
    return _first_difference(path, found, expected)


def _first_difference(path: Path, found: bytes, expected: bytes) -> str:
    wanted = expected.decode().splitlines()
    present = found.decode(errors="replace").splitlines()
    for number, (want, have) in enumerate(zip(wanted, present, strict=False), start=1):
        if want != have:
            column = _first_place(want, have)
            return (
                f"{path} line {number} column {column + 1}: "
                f"expected {_around(want, column)!r}, found {_around(have, column)!r}"
            )
    if len(wanted) == len(present):
        return f"{path} differs in its line ends"
    return f"{path} has {len(present)} lines, expected {len(wanted)}"


def _first_place(left: str, right: str) -> int:
    pairs = zip(left, right, strict=False)
    same = [one == other for one, other in pairs]
    return same.index(False) if False in same else len(same)


def _around(line: str, column: int) -> str:
    return line[max(0, column - 20) : column + 20]


def _compare_pixels(path: Path, found: bytes, expected: bytes) -> str:
    import numpy as np
    from matplotlib.image import imread

    try:
        have = imread(io.BytesIO(found), format="png")
    except Exception as error:  # noqa: BLE001 - Pillow raises many kinds
        return f"{path} is no readable PNG: {error}"
    want = imread(io.BytesIO(expected), format="png")
    if have.shape != want.shape:
        return f"{path} has the shape {have.shape}, expected {want.shape}"
    apart = np.abs(have - want).max(axis=-1) > PIXEL_TOLERANCE / 255
    if apart.mean() <= PIXEL_SHARE:
        return ""
    row, column = np.argwhere(apart)[0]
    return (
        f"{path} differs in {int(apart.sum())} of {apart.size} pixels, "
        f"first in row {row}, column {column}"
    )

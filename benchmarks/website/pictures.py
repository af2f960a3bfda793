"""Figures of a report that no chart of its page shows, small enough for the site."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from benchmarks.website.reports import Report

KINDS = {
    "surfaces": "Training loss and test metric on planes through solutions",
    "paths_to_solutions": "Training loss and test metric on the way to each solution",
    "adaptation": "Support loss, gradient norm and query accuracy over inner steps",
    "task_errors": "Errors of all new tasks, in order",
    "claims": "Claimed gains with their intervals, against the true ones",
    "gain_over_mismatch": "Gain against how well the loss ranks as the metric does",
    "gain_over_size": "Gain over the base row by the number of observed examples",
}
"""Kinds of figures that are shown, with their captions, in their order on a page."""
COLOURS = 64
"""Colours that are kept: flat ones, and the blends at their edges."""


@dataclass(frozen=True)
class Picture:
    """A figure as the site holds it.

    Attributes:
        file: where, within the site.
        caption: what it shows.
        width, height: in pixels.
        content: WebP without loss of what the colours keep.
    """

    file: str
    caption: str
    width: int
    height: int
    content: bytes


def pictures_of(report: Report) -> list[Picture]:
    """Return the figures of the committed report."""
    return [
        _read(report.name, path, caption)
        for kind, words in KINDS.items()
        for path, caption in _named(report, kind, words)
    ]


def _named(report: Report, kind: str, words: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of a kind, of all blocks together or of each, with captions."""
    labels = {
        f"{kind}.png": "",
        **{f"{kind}-{block.name}.png": block.label for block in report.layout.blocks},
    }
    found = [name for name in labels if (report.figures / name).is_file()]
    for name in found:
        also = f": {labels[name]}" if len(found) > 1 else ""
        yield report.figures / name, f"{words}{also}."


def _read(report: str, path: Path, caption: str) -> Picture:
    content = io.BytesIO()
    with Image.open(path) as image:
        flat = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        flat.convert("RGB").save(content, "WEBP", lossless=True)
        width, height = image.size
    file = f"data/{report}-{path.stem}.webp"
    return Picture(file, caption, width, height, content.getvalue())

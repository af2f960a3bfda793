"""Find the files of a data set in its folder."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.data.files.download import COMPRESSIONS
from benchmarks.data.files.variants import DataFile, Variant

Found = dict[Path, DataFile]
"""Local files by path, each with its description."""


def local_path(folder: Path, file: DataFile) -> Path | None:
    """Return the local copy of a file, packed or not, or None if there is none."""
    candidates = (folder / (file.stem + suffix) for suffix in COMPRESSIONS)
    return next((path for path in candidates if path.is_file()), None)


def find_complete(folder: Path, spec: Variant) -> Found | None:
    """Return the files of the first complete form of a variant, or None.

    A variant that is embedded in a dependency has no files: its result is empty.
    """
    for form in spec.forms:
        found = {path: file for file in form if (path := local_path(folder, file))}
        if len(found) == len(form):
            return found
    return None


def missing_names(folder: Path, spec: Variant) -> list[str]:
    """Return the names of the missing files of a variant.

    If some files of a form are there, its other files are missing. If no form has any
    file, all official files are missing.
    """
    for form in spec.forms:
        missing = [file.stem for file in form if not local_path(folder, file)]
        if len(missing) < len(form):
            return missing
    return [file.stem for file in spec.files]


def listed(names: Sequence[str], joint: str) -> str:
    """Join names for a message. More than two become the first one and a number."""
    if len(names) > 2:
        return f"{names[0]} and {len(names) - 1} more"
    return joint.join(names)

"""Checksums of files."""

import hashlib
from pathlib import Path

from metricopt.errors import DataError


def wrong_checksum(path: Path, kind: str, expected: str) -> str | None:
    """Say how the checksum of a file differs from the expected one, or return None.

    Args:
        path: path of the file.
        kind: such as `sha256`.
        expected: in hexadecimal, or its first digits.
    """
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, kind).hexdigest()
    same = actual.startswith(expected.lower())
    return None if same else f"expected {kind} {expected}, got {actual}"


def require_md5(path: Path, expected: str, remedy: str) -> None:
    """Check a file.

    Args:
        path: path of the file.
        expected: expected md5 in hexadecimal.
        remedy: what to do if it is another one.

    Raises:
        DataError: if it is missing, or another one.
    """
    try:
        wrong = wrong_checksum(path, "md5", expected)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}; {remedy}") from error
    if wrong:
        raise DataError(f"{path} is not the expected file: {wrong}; {remedy}")

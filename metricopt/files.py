"""How files are read and written: complete, or not at all."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import safe_open
from torch import Tensor

from metricopt.errors import ConfigError, DataError

LARGEST_TEXT = 1 << 30
"""Bytes of a text file. What is larger is none of ours."""


class Tensors(NamedTuple):
    """What a safetensors file holds: tensors and texts, each by name."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]


def read_text(path: Path) -> str:
    """Return the content of a text file in UTF-8.

    Raises:
        FileNotFoundError: if there is no such file.
        DataError: if it cannot be read as such; the message names the file.
    """
    if _size(path) > LARGEST_TEXT:
        raise DataError(f"{path} must be a text file of at most {LARGEST_TEXT:,} bytes")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} must be a text file in UTF-8: {error}") from error


def read_tensors(path: Path) -> Tensors:
    """Return the content of a safetensors file.

    Raises:
        FileNotFoundError: if there is no such file.
        DataError: if it cannot be read as such; the message names the file.
    """
    with _opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return Tensors(tensors, file.metadata() or {})


def read_metadata(path: Path) -> dict[str, str]:
    """Return the texts in a safetensors file, without its tensors; see above."""
    with _opened(path) as file:
        return dict(file.metadata() or {})


def user_path(path: str | os.PathLike[str]) -> Path:
    """Return a path that a user gave, which may begin with their home, "~"."""
    return Path(os.path.expanduser(path))


def read_own(path: Path, writer: str) -> Tensors:
    """Return the content of a safetensors file of a user, which `writer` wrote.

    Raises:
        ConfigError: if it is missing or cannot be read as such.
    """
    try:
        return read_tensors(path)
    except FileNotFoundError as error:
        raise ConfigError(f"there is no file {path}") from error
    except DataError as error:
        raise ConfigError(f"{path} was not written by {writer}: {error}") from error


def told(error: Exception) -> str:
    """Return what an exception says, in one line; its kind if it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees all of it or nothing.

    The temporary file lies in the same folder, since a rename is atomic only within
    one file system. Missing folders are made.

    Raises:
        OSError: if that fails. It names the file or folder: a full disk would name
            none, and nobody has heard of the temporary file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _write(path, content)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    _size(path)
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except Exception as error:  # safetensors and torch raise many kinds
        raise DataError(
            f"{path} is no complete safetensors file: {told(error)}"
        ) from error


def _write(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private; these follow the user's umask.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _size(path: Path) -> int:
    """Return the bytes of a file.

    Raises:
        FileNotFoundError: if there is no such file.
        DataError: if it is something else, such as a folder or a pipe.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"
        raise DataError(f"{path} must be a file, got {kind}")
    return status.st_size


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask

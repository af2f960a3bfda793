"""Photographs as RGB, at one size: decoded once, into a file, or whenever needed."""

import hashlib
import io
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from tqdm import tqdm

from benchmarks.data.files.readers import NAMED, Reader, told
from benchmarks.runs.paths import cache_root
from metricopt.errors import DataError
from metricopt.files import write_atomically

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP")
"""Formats of photographs. Some other formats of Pillow start a program."""
FEWEST, MOST = 2, 1 << 26
"""Pixels of the shorter side, and of an image. A file of a megabyte can claim a
gigabyte; several threads decode at a time."""
Array = np.ndarray[Any, Any]
Pixels = Callable[[Tensor], Tensor]
"""Square images of one size by their places: bytes, uint8, [n, side, side, 3]."""
LIMIT = 8 * 2**30
"""Bytes of the greatest file of decoded images."""
AT_ONCE, THREADS = 256, 8
REVISION = 3
"""Raised when the way images are decoded or kept changes."""


def rgb(reader: Reader, path: str) -> Image.Image:
    """Return an image as RGB, whether it was grey, CMYK or of a palette.

    What is transparent keeps the colour it has in the file, as torchvision reads it.

    Raises:
        DataError: if it cannot be read, is no image, is cut off, has 16 bits a channel,
            or has too few or too many pixels; the message names it.
    """
    content = reader.read(path)
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            _check(image)
            # Pillow warns where transparent colours of a palette become RGB at once.
            transparent = image.mode == "P" and "transparency" in image.info
            return (image.convert("RGBA") if transparent else image).convert("RGB")
    except UnidentifiedImageError as error:
        raise DataError(
            f"{reader.where(path)} does not decode: expected an image as "
            f"{', '.join(FORMATS)}, got {_beginning(content)}"
        ) from error
    except Exception as error:  # Pillow raises many kinds
        where = reader.where(path)
        raise DataError(f"{where} does not decode: {told(error)}") from error


def _check(image: Image.Image) -> None:
    """Check what the header of an image says, before a pixel is decoded.

    Raises:
        ValueError: if it has too few or too many pixels, or 16 bits a channel.
    """
    wide, high = image.size
    if min(wide, high) < FEWEST or wide * high > MOST:
        raise ValueError(
            f"expected sides of {FEWEST} pixels or more and {MOST:,} pixels or less, "
            f"got {wide:,} x {high:,}"
        )
    if image.mode.startswith("I"):
        # Pillow would cut off what is above 255: nearly all becomes white.
        raise ValueError(f"expected 8 bits a channel, got the mode {image.mode}")


def _beginning(content: bytes) -> str:
    return f"a file beginning with {content[:12]!r}" if content else "an empty file"


@dataclass(frozen=True, eq=False)
class ReadImages:
    """Images of any sizes, read one by one.

    Attributes:
        label: name of the data set, for records and captions.
        digest: sha256 of what says which images these are, and of their sizes.
        paths: paths of the N images, relative to the data set.
        reader: reads their files, and knows what to do where one is damaged.
    """

    label: str
    digest: str
    paths: tuple[str, ...]
    reader: Reader

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, place: int) -> Image.Image:
        """Return an image as RGB; see `rgb`."""
        return rgb(self.reader, self.paths[place])


def kept_at(array: Array, places: Tensor) -> Tensor:
    """Return images [n, side, side, 3] of an array of all, which a file may hold."""
    return torch.from_numpy(array[places.cpu().numpy()])


def decoded_at(images: ReadImages, side: int, places: Tensor) -> Tensor:
    """Return images [n, side, side, 3], decoded now by several threads.

    Raises:
        DataError: if one does not decode.
    """
    found, failures = _decode(images, places.tolist(), side)
    if failures:
        raise _refusal(images, failures)
    return torch.from_numpy(found)


def kept_bytes(count: int, side: int, limit: int = LIMIT) -> int:
    """Return the bytes of the file of so many decoded images, 0 if it is too large."""
    size = count * side * side * 3
    return size if size <= limit else 0


def pixels(images: ReadImages, side: int, *, limit: int = LIMIT) -> Pixels:
    """Return images at a size: from a file if it is not too large, made now if needed.

    Otherwise they are decoded whenever they are needed.

    Raises:
        DataError: if images do not decode: all are tried, some are named, and counted.
    """
    if not kept_bytes(len(images), side, limit):
        _try_all(images)
        return partial(decoded_at, images, side)
    name = f"{images.label}-{side}-{images.digest[:16]}-v{REVISION}.npy"
    path = cache_root() / "decoded" / name
    shape = (len(images), side, side, 3)
    found = _mapped(path, shape)
    if found is None:
        _write(images, shape, path)
        found = np.load(path, mmap_mode="r")
    return partial(kept_at, found)


def square(image: Image.Image, side: int) -> Image.Image:
    """Return an image stretched to a square: nothing is cut off, proportions change.

    Photographs of cars are twice as wide as high; the middle alone lacks both ends.

    Source: Song et al., CVPR 2016.
    """
    return image.resize((side, side), Image.Resampling.BICUBIC)


def _try_all(images: ReadImages) -> None:
    """Decode every image once in the life of a cache, before any work needs one."""
    mark = cache_root() / "decoded" / f"{images.label}-{images.digest[:16]}.tried"
    if mark.exists():
        return
    tried = _batches(images, 1, f"trying {images.label}")
    failures = [failure for _, failed in tried for failure in failed]
    if failures:
        raise _refusal(images, failures)
    write_atomically(mark, b"")


def _mapped(path: Path, shape: tuple[int, ...]) -> Array | None:
    """Return a file of decoded images, None if there is none or it is damaged.

    It ends in the digest of its array. A warning names a damaged one.

    Raises:
        DataError: if it is a folder.
    """
    if not path.exists():
        return None
    if path.is_dir():
        raise DataError(f"{path} must be a file, got a folder; delete it")
    try:
        found: Array = np.load(path, mmap_mode="r")
        with path.open("rb") as file:
            file.seek(-hashlib.sha256().digest_size, os.SEEK_END)
            expected = file.read()
    except Exception as error:  # noqa: BLE001 - numpy raises many kinds
        return _damaged(path, told(error))
    if (
        not isinstance(found, np.ndarray)
        or found.dtype != np.uint8
        or found.shape != shape
    ):
        return _damaged(path, f"expected bytes of shape {shape}")
    if hashlib.sha256(found).digest() != expected:
        return _damaged(path, "its content has another digest")
    return found


def _damaged(path: Path, why: str) -> None:
    warnings.warn(
        f"the cached file {path} is damaged and not used: {why}", stacklevel=2
    )


def _write(images: ReadImages, shape: tuple[int, ...], path: Path) -> None:
    """Decode all images into a file, which appears only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    failures: list[str] = []
    digest = hashlib.sha256()
    try:
        # Written and not mapped: a map on a full disk would end the process.
        with os.fdopen(handle, "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            about = f"decoding {images.label}"
            for found, failed in _batches(images, shape[1], about):
                file.write(found)
                digest.update(found)
                failures += failed
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        if failures:
            raise _refusal(images, failures)
        os.chmod(part, 0o644)
        os.replace(part, path)
    finally:
        Path(part).unlink(missing_ok=True)


def _batches(
    images: ReadImages, side: int, about: str
) -> Iterator[tuple[Array, list[str]]]:
    """Yield all images and what does not decode, some at a time, with a bar."""
    with tqdm(total=len(images), unit="image", desc=about) as bar:
        for start in range(0, len(images), AT_ONCE):
            places = range(start, min(start + AT_ONCE, len(images)))
            yield _decode(images, places, side)
            bar.update(len(places))


def _decode(
    images: ReadImages, places: Sequence[int], side: int
) -> tuple[Array, list[str]]:
    """Return images [n, side, side, 3], black where one does not decode, and those."""
    failures = []

    def one(place: int) -> Array:
        try:
            return np.asarray(square(images.read(place), side))
        except DataError as error:
            failures.append(str(error))
            return np.zeros((side, side, 3), np.uint8)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(one, places))
    return np.stack(found), sorted(failures)


def _refusal(images: ReadImages, failures: Sequence[str]) -> DataError:
    named = "; ".join(failures[:NAMED])
    return DataError(
        f"{len(failures)} of {len(images)} images of {images.label} do not decode "
        f"({named}); {images.reader.remedy}"
    )

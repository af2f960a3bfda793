"""An image file as RGB, whatever it was before."""

import io

from PIL import Image, UnidentifiedImageError

from benchmarks.data.files.readers import Reader
from benchmarks.data.files.refusal import told
from metricopt.errors import DataError

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP")
"""Formats of photographs. Some other formats of Pillow start a program."""
FEWEST, MOST = 2, 1 << 26
"""Pixels of the shorter side, and of an image. A file of a megabyte can claim a
gigabyte; several threads decode at a time."""


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

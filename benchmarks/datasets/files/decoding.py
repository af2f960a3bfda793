"""An image file as RGB, whatever it was before."""

import io

from PIL import Image

from benchmarks.datasets.files.readers import Reader
from metricopt.errors import DataError


def rgb(reader: Reader, path: str) -> Image.Image:
    """Return an image as RGB, whether it was grey, CMYK or of a palette.

    Raises:
        DataError: if it cannot be read, is no image, or is cut off; the message names
            it.
    """
    content = reader.read(path)
    try:
        with Image.open(io.BytesIO(content)) as image:
            return image.convert("RGB")
    except Exception as error:  # Pillow raises many kinds
        raise DataError(f"{path} does not decode: {error}") from error

"""Pictures that records keep."""

import base64
import io

from PIL import Image

QUALITY = 85


def jpeg(image: Image.Image) -> str:
    """Return an image as JPEG, in base64."""
    content = io.BytesIO()
    image.save(content, "JPEG", quality=QUALITY)
    return base64.b64encode(content.getvalue()).decode()

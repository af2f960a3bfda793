"""Shapes drawn by a program, for the smoke tiers: no file is needed."""

import colorsys
import io
import math
import random

from PIL import Image, ImageDraw

SIDE = 40
"""Pixels of a side."""
CORNERS = (3, 4, 5, 6, 8, 40)
"""Corners of the shapes, which are polygons; the last one is a disc."""
HUES = 6


def shape_png(hue: int, shape: int, name: str) -> bytes:
    """Return a shape of a hue, anywhere, of any size, on a ground of any colour.

    Args:
        hue: in [0, `HUES`).
        shape: place in `CORNERS`.
        name: decides all that is random.
    """
    content = io.BytesIO()
    _draw(hue, shape, random.Random(name)).save(content, "PNG")
    return content.getvalue()


def _draw(hue: int, shape: int, chance: random.Random) -> Image.Image:
    image = Image.new("RGB", (SIDE, SIDE), _colour(chance.random(), 0.5, chance))
    draw = ImageDraw.Draw(image)
    for _ in range(12):
        x, y = chance.randrange(SIDE), chance.randrange(SIDE)
        spot = _colour(chance.random(), 0.5, chance)
        draw.ellipse((x, y, x + 6, y + 6), fill=spot)
    size = chance.uniform(8, 14)
    x, y = (chance.uniform(size, SIDE - size) for _ in range(2))
    turn, corners = chance.uniform(0, math.tau), CORNERS[shape]
    angles = [turn + math.tau * corner / corners for corner in range(corners)]
    points = [(x + size * math.cos(a), y + size * math.sin(a)) for a in angles]
    tone = (hue + chance.uniform(-0.25, 0.25)) / HUES
    draw.polygon(points, fill=_colour(tone, 0.9, chance))
    return image


def _colour(
    hue: float, saturation: float, chance: random.Random
) -> tuple[int, int, int]:
    parts = colorsys.hsv_to_rgb(hue % 1, saturation, chance.uniform(0.5, 1))
    red, green, blue = (round(255 * part) for part in parts)
    return red, green, blue

"""Class folders with a few photographs, as those of ImageNet are."""

import io
import random

from PIL import Image

CLASSES = ("n01440764", "n02102040", "n02979186")


def jpeg(mode="RGB", side=12, seed=0):
    """The bytes of an image whose middle is of a colour of its own."""
    chance = random.Random(seed)
    channels = len(Image.new(mode, (1, 1)).getbands())
    colour = tuple(chance.randrange(256) for _ in range(channels))
    image = Image.new(mode, (side, side + 4), colour if channels > 1 else colour[0])
    content = io.BytesIO()
    image.save(content, "JPEG")
    return content.getvalue()


def write_folders(root, *, train=4, test=2, classes=CLASSES):
    """Write `train/CLASS` and `val/CLASS` with so many images of every class."""
    for part, count in (("train", train), ("val", test)):
        for place, name in enumerate(classes):
            folder = root / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                path = folder / f"{name}_{number}.JPEG"
                path.write_bytes(jpeg(seed=100 * place + number))
    return root

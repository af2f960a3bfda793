"""CIFAR-100: 32x32 colour photographs of a hundred kinds of things.

A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009; the author's
archive of binary files.
"""

import io
import tarfile
from collections.abc import Sequence

import numpy as np

from benchmarks.data.contract import DATASETS, Arrays, DataSource
from benchmarks.data.files.variants import DataFile, Variant

TRAIN_EXAMPLES, TEST_EXAMPLES = 50_000, 10_000
LABELS = 2
"""Bytes before an image: its superclass, and its class."""

_CLASSES = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle
bowl boy bridge bus butterfly camel can castle caterpillar cattle
chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur
dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard
lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain
mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree
plain plate poppy porcupine possum rabbit raccoon ray road rocket
rose sea seal shark shrew skunk skyscraper snail snake spider
squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor
train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""


@DATASETS.register("cifar100")
class Cifar100(DataSource):
    """All 60,000 images: 50,000 of the training part, then 10,000 of the test part.

    Inputs are bytes from 0 to 255, channels last, shape [60000, 32, 32, 3]. The archive
    is known by its published checksum, not by a digest of its arrays.
    """

    name = "cifar100"
    classes = tuple(_CLASSES.split())
    specs = (
        Variant(
            name="full",
            shape=(TRAIN_EXAMPLES + TEST_EXAMPLES, 32, 32, 3),
            class_counts=(600,) * 100,
            digest="",
            train_rows=TRAIN_EXAMPLES,
            files=(
                DataFile(
                    "cifar-100-binary.tar.gz",
                    ("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",),
                    md5="03b5dce01913d631647c71ecec9e9cb8",
                ),
            ),
        ),
    )

    def _parse(self, contents: Sequence[bytes]) -> Arrays:
        spec = self.specs[0]
        rows = (spec.train_rows or 0, spec.shape[0] - (spec.train_rows or 0))
        try:
            with tarfile.open(fileobj=io.BytesIO(contents[0])) as archive:
                parts = [
                    self._read(archive, f"{split}.bin", count)
                    for split, count in zip(("train", "test"), rows, strict=True)
                ]
        except tarfile.TarError as error:
            raise ValueError(f"it is not a whole tar archive: {error}") from error
        images, labels = zip(*parts, strict=True)
        return np.concatenate(images), np.concatenate(labels)

    def _read(self, archive: tarfile.TarFile, name: str, rows: int) -> Arrays:
        """Return the images and labels of one file, in its order."""
        height, width, channels = self.specs[0].shape[1:]
        size = LABELS + height * width * channels
        try:
            file = archive.extractfile(f"cifar-100-binary/{name}")
        except KeyError as error:
            raise ValueError(f"{name} is missing") from error
        content = b"" if file is None else file.read(rows * size + 1)
        if len(content) != rows * size:
            raise ValueError(
                f"expected {rows} images of {size} bytes in {name}, got "
                f"{len(content)} bytes or more"
            )
        table = np.frombuffer(content, np.uint8).reshape(rows, size)
        labels = table[:, LABELS - 1].astype(np.int64)
        if labels.max() >= len(self.classes):
            found = f"{name} has the label {labels.max()}"
            raise ValueError(f"expected labels 0 to {len(self.classes) - 1}, {found}")
        # All red values of an image, then all green, then all blue ones.
        images = table[:, LABELS:].reshape(rows, channels, height, width)
        return images.transpose(0, 2, 3, 1), labels

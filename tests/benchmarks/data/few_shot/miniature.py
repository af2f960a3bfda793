"""Official few-shot data sets in miniature: the same files, with fewer classes."""

import hashlib
import io
import zipfile
import zlib

import numpy as np
from PIL import Image

from benchmarks.data.few_shot.miniimagenet import MiniImageNet
from benchmarks.data.few_shot.omniglot import Omniglot
from benchmarks.data.folders.imagenet import ImageNet
from tests.benchmarks.data.folders.class_folders import jpeg


def png(seed):
    """The bytes of a drawing of one bit a pixel."""
    ink = np.random.default_rng(seed).random((105, 105)) < 0.1
    content = io.BytesIO()
    Image.fromarray(~ink).save(content, "PNG")
    return content.getvalue()


def archive(path, members):
    """Write a zip file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)


def characters(top, alphabets, *, each=2, drawings=2):
    """The members of an archive of Omniglot: a few characters of every alphabet."""
    return {
        f"{top}/{alphabet}/character{place:02}/{place:04}_{number:02}.png": png(
            zlib.crc32(f"{alphabet} {place} {number}".encode())
        )
        for alphabet in alphabets
        for place in range(1, each + 1)
        for number in range(1, drawings + 1)
    }


def write_omniglot(root, monkeypatch, *, each=2, drawings=2):
    """Write both archives of Omniglot, with an alphabet each."""
    for top, alphabet in (
        ("images_background", "Balinese"),
        ("images_evaluation", "Angelic"),
    ):
        members = characters(top, [alphabet], each=each, drawings=drawings)
        archive(root / Omniglot.folder / f"{top}.zip", members)
    monkeypatch.setattr(Omniglot, "expected", (2 * each * drawings, 2 * each))


def lines(name, places):
    """What a list of miniImageNet says of some images of a class."""
    return [f"{name}{place:08}.jpg,{name}" for place in places]


def write_list(root, part, listed, monkeypatch):
    """Write a list of miniImageNet, which becomes the published one."""
    text = "filename,label\n" + "".join(f"{line}\n" for line in listed)
    (root / MiniImageNet.folder).mkdir(exist_ok=True)
    (root / MiniImageNet.folder / f"{part}.csv").write_text(text)
    md5 = hashlib.md5(text.encode()).hexdigest()
    monkeypatch.setattr(MiniImageNet, "lists", MiniImageNet.lists | {part: md5})


def write_miniimagenet(root, monkeypatch, classes, *, numbers, places):
    """Write the lists of miniImageNet, and their classes in ImageNet.

    Args:
        root: data root.
        monkeypatch: forgets later what is expected.
        classes: names of the classes of every part.
        numbers: numbers of the images of a class in ImageNet.
        places: which images of a class are listed, from 1 on.
    """
    counts = [len(names) for names in classes.values()]
    expected = (sum(counts) * len(places), *counts)
    monkeypatch.setattr(MiniImageNet, "expected", expected)
    monkeypatch.setattr(MiniImageNet, "each", len(places))
    monkeypatch.setattr(ImageNet, "expected", (sum(counts) * len(numbers), 0, 0))
    for part, names in classes.items():
        listed = [line for name in names for line in lines(name, places)]
        write_list(root, part, listed, monkeypatch)
        for name in names:
            folder = root / ImageNet.folder / "train" / name
            folder.mkdir(parents=True)
            for number in numbers:
                (folder / f"{name}_{number}.JPEG").write_bytes(jpeg(seed=number))

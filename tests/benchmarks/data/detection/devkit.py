"""A small VOCdevkit in a folder, a zip file or tar files."""

import tarfile
import zipfile

from PIL import Image

CLASSES = ("disc", "square")
YEAR = "VOC2007"


def xml(*objects, size=(40, 30)):
    """An annotation; objects are (class, (xmin, ymin, xmax, ymax), difficult)."""
    parts = []
    for name, (x1, y1, x2, y2), difficult in objects:
        parts.append(
            f"<object><name>{name}</name><difficult>{difficult}</difficult><bndbox>"
            f"<xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax><ymax>{y2}</ymax>"
            "</bndbox></object>"
        )
    wide, high = size
    return (
        f"<annotation><size><width>{wide}</width><height>{high}</height></size>"
        f"{''.join(parts)}</annotation>"
    )


def write_devkit(
    folder, *, train=3, test=2, year=YEAR, lists=("trainval", "test"), difficult=1
):
    """Images of 40 x 30 pixels with a disc each, the last one of training without."""
    root = folder / year
    for part in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (root / part).mkdir(parents=True, exist_ok=True)
    names = [f"{number:06}" for number in range(train + test)]
    for number, name in enumerate(names):
        Image.new("RGB", (40, 30), (number * 20,) * 3).save(
            root / "JPEGImages" / f"{name}.jpg"
        )
        objects = [("disc", (1, 1, 10, 20), 0), ("square", (5, 5, 40, 30), difficult)]
        text = xml(*objects[: 0 if number == train - 1 else 2])
        (root / "Annotations" / f"{name}.xml").write_text(text)
    for part, own in zip(lists, (names[:train], names[train:]), strict=True):
        path = root / "ImageSets" / "Main" / f"{part}.txt"
        path.write_text("".join(f"{name}\n" for name in own))
    return folder


def tarred(folder, path, root="VOCdevkit"):
    """A tar file of a folder."""
    with tarfile.open(path, "w") as archive:
        archive.add(folder, root)
    return path


def zipped(folder, path, root="VOCdevkit"):
    """A zip file of a folder."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, f"{root}/{file.relative_to(folder)}")
    return path

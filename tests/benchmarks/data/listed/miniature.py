"""A small data set in exactly the layout of Stanford Online Products."""

import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

HEADER = "image_id class_id super_class_id path"
GROUPS = ("bicycle", "cabinet", "chair")


def write_miniature(folder: Path, *, train=(6, 3), test=(4, 3), side=40) -> Path:
    """Write lists and images of (classes, images of each) for either part."""
    chance = np.random.default_rng(0)
    image, kind = 0, 0
    for name, (classes, each) in (("train", train), ("test", test)):
        lines = [HEADER]
        for _ in range(classes):
            kind += 1
            group = (kind - 1) % len(GROUPS)
            colour = chance.integers(0, 256, 3)
            for number in range(each):
                image += 1
                path = f"{GROUPS[group]}_final/{kind:012d}_{number}.JPG"
                lines.append(f"{image} {kind} {group + 1} {path}")
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shape = (side, side + 4 * number, 3)
                noise = chance.integers(-30, 31, shape)
                pixels = np.clip(colour + noise, 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(folder / path)
        (folder / f"Ebay_{name}.txt").write_text("\n".join(lines) + "\n")
    (folder / "Ebay_info.txt").write_text("not read\n")
    return folder


def zipped(folder: Path, archive: Path, inner: str) -> Path:
    """Pack a folder as the official archive is packed."""
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                file.write(path, f"{inner}/{path.relative_to(folder).as_posix()}")
    return archive

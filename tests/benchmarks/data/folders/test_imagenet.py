"""ImageNet from its official archives, in miniature."""

import hashlib
import io
import tarfile

import numpy as np
import pytest
import scipy.io
from torchvision.datasets import imagenet

from benchmarks.data.folders.imagenet import ImageNet
from metricopt.errors import DataError
from tests.benchmarks.data.folders.class_folders import CLASSES, jpeg, write_folders

TRAINED, TESTED = 3, 4


def tar(path, members, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path.read_bytes()


def devkit(tmp_path, truths):
    """The meta data and the classes of the validation images."""
    names = ("ILSVRC2012_ID", "WNID", "words", "gloss", "num_children")
    synsets = np.zeros((len(CLASSES), 1), dtype=[(name, "O") for name in names])
    for place, name in enumerate(CLASSES):
        synsets[place, 0] = (place + 1, name, f"class {place}", "", 0)
    meta = tmp_path / "meta.mat"
    scipy.io.savemat(meta, {"synsets": synsets})
    lines = "\n".join(str(each + 1) for each in truths) + "\n"
    inside = "ILSVRC2012_devkit_t12/data"
    return [
        (f"{inside}/meta.mat", meta.read_bytes()),
        (f"{inside}/ILSVRC2012_validation_ground_truth.txt", lines.encode()),
    ]


@pytest.fixture
def archives(tmp_path, monkeypatch):
    """A data root with the three archives, whose checksums are the expected ones."""
    folder = tmp_path / "data" / "imagenet"
    folder.mkdir(parents=True)
    truths = [2, 0, 1, 0]
    inner = [
        (
            f"{name}.tar",
            tar(
                tmp_path / "one.tar",
                [
                    (f"{name}_{number}.JPEG", jpeg(seed=number))
                    for number in range(TRAINED)
                ],
            ),
        )
        for name in CLASSES
    ]
    images = [
        (f"ILSVRC2012_val_{place + 1:08}.JPEG", jpeg(seed=place))
        for place in range(TESTED)
    ]
    made = {
        "train": tar(folder / "ILSVRC2012_img_train.tar", inner),
        "val": tar(folder / "ILSVRC2012_img_val.tar", images),
        "devkit": tar(
            folder / "ILSVRC2012_devkit_t12.tar.gz", devkit(tmp_path, truths), "w:gz"
        ),
    }
    known = {
        name: (imagenet.ARCHIVE_META[name][0], hashlib.md5(content).hexdigest())
        for name, content in made.items()
    }
    monkeypatch.setattr(imagenet, "ARCHIVE_META", known)
    monkeypatch.setattr(ImageNet, "expected", (9, 4, 3))
    return tmp_path / "data"


def test_the_official_archives_are_unpacked(archives):
    left = archives / "imagenet" / "train.part" / "n01440764"
    left.mkdir(parents=True)  # by a fetch that was cut off
    ImageNet().fetch(archives, progress=False)
    images = ImageNet().load(archives, offline=True)
    assert (len(images), images.train_rows, images.classes) == (13, 9, CLASSES)
    assert images.targets[9:].tolist() == [0, 0, 1, 2]
    assert images.paths[9].endswith("ILSVRC2012_val_00000002.JPEG")
    assert ImageNet().fetch(archives) == []
    assert not list((archives / "imagenet").glob("*.part"))


def test_missing_archives_are_named_with_the_steps(archives):
    (archives / "imagenet" / "ILSVRC2012_img_val.tar").unlink()
    said = r"needs ILSVRC2012_img_val.tar in .*account at https://image-net.org"
    with pytest.raises(DataError, match=said):
        ImageNet().fetch(archives)


def test_another_archive_is_refused(archives):
    path = archives / "imagenet" / "ILSVRC2012_img_train.tar"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(DataError, match=r"cannot be unpacked: The archive .*corrupted"):
        ImageNet().fetch(archives)
    assert not (archives / "imagenet" / "train").exists()


def test_without_a_file_the_command_is_named(tmp_path):
    with pytest.raises(DataError, match=r"run `./reproduce.sh data fetch imagenet`"):
        ImageNet().load(tmp_path, offline=True)


def test_unpacked_folders_will_do(tmp_path, monkeypatch):
    monkeypatch.setattr(ImageNet, "expected", (12, 6, 3))
    write_folders(tmp_path / "imagenet")
    assert ImageNet().load(tmp_path, offline=True).classes == CLASSES
    assert ImageNet().status(tmp_path)[0].state == "present"


@pytest.mark.parametrize(("classes", "got"), [(CLASSES[:2], 2), ((*CLASSES, "n9"), 4)])
def test_another_number_of_classes_is_refused(classes, got, tmp_path, monkeypatch):
    monkeypatch.setattr(ImageNet, "expected", (12, 6, 3))
    write_folders(tmp_path / "imagenet", classes=classes)
    with pytest.raises(DataError, match=f"of 3 classes, got .* of {got} classes"):
        ImageNet().load(tmp_path, offline=True)

"""Class folders: what is in them, and what is said where something is wrong."""

import zipfile

import pytest

from benchmarks.cli.catalogue import data_sets
from benchmarks.data.files.readers import FolderReader
from benchmarks.data.folders.contract import FOLDERS, in_folders
from benchmarks.data.folders.imagenette_subset import ImagenetteSubset
from benchmarks.data.registry import all_names, find_any
from benchmarks.runs.paths import data_root
from metricopt.errors import DataError
from tests.benchmarks.data.folders.class_folders import CLASSES, jpeg, write_folders

A_CLASS = CLASSES[0]


def loaded(root):
    return in_folders(FolderReader(root), "miniature")


def test_training_comes_first_and_classes_are_in_alphabetical_order(tmp_path):
    write_folders(tmp_path)
    (tmp_path / "train" / A_CLASS / "notes.txt").write_text("no image")
    (tmp_path / "classes.csv").write_text("wnid,name")
    images = loaded(tmp_path)
    assert images.classes == CLASSES
    assert (len(images), images.train_rows) == (18, 12)
    assert images.targets.tolist() == [*[0] * 4, *[1] * 4, *[2] * 4, 0, 0, 1, 1, 2, 2]
    assert images.paths[0] == f"train/{A_CLASS}/{A_CLASS}_0.JPEG"
    assert images.paths[-1].startswith("val/")
    assert images.read(0).size == (12, 16)
    assert images.read(0).getpixel((0, 0)) != images.read(1).getpixel((0, 0))


def test_the_digest_depends_on_names_and_sizes(tmp_path):
    before = loaded(write_folders(tmp_path)).digest
    assert loaded(tmp_path).digest == before
    (tmp_path / "val" / A_CLASS / "more.jpg").write_bytes(jpeg())
    assert loaded(tmp_path).digest != before


def test_another_number_of_images_is_refused(tmp_path, monkeypatch):
    folder = write_folders(tmp_path / "in", test=1)
    target = tmp_path / "imagenet_subset" / ImagenetteSubset.archive
    target.parent.mkdir()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("classes.csv", "wnid,name")
        for path in sorted(folder.rglob("*.JPEG")):
            archive.write(path, path.relative_to(folder))
    expected = r"1,000 images to train and 250 to test, of 10 classes, got 12 .* and 3"
    with pytest.raises(DataError, match=expected):
        ImagenetteSubset().load(tmp_path, offline=True)
    monkeypatch.setattr(ImagenetteSubset, "expected", (12, 3, 3))
    with pytest.raises(DataError, match="must have the digest"):
        ImagenetteSubset().load(tmp_path, offline=True)


def test_a_subset_without_its_file_says_what_to_do(tmp_path):
    with pytest.raises(
        DataError, match=f"needs {ImagenetteSubset.archive} in .*copy the file there"
    ):
        ImagenetteSubset().fetch(tmp_path)


def test_every_kind_of_data_set_is_found_by_name():
    assert {"a9a", "sop", "voc07", "voc07+12", "imagenet"} <= set(all_names())
    assert isinstance(find_any("imagenette-subset"), ImagenetteSubset)
    assert set(FOLDERS) <= set(all_names())
    assert sorted(data_sets()) == sorted(all_names())


def test_real_files():
    source = ImagenetteSubset()
    if source.status()[0].state == "missing":
        pytest.skip(f"{source.name} is not in {data_root()}")
    images = source.load(offline=True)
    assert images.targets[: images.train_rows].bincount().tolist() == [100] * 10
    assert images.read(1_249).size == (96, 96)

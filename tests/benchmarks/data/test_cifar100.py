"""CIFAR-100: the author's archive, and what is wrong with others."""

import gzip
import io
import tarfile
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.data.cifar100 import Cifar100
from benchmarks.data.files.variants import DataFile, Variant, array_digest
from metricopt.errors import ConfigError, DataError

ARCHIVE = "cifar-100-binary.tar.gz"
IMAGES = np.random.default_rng(0).integers(0, 256, (9, 4, 4, 3), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2, 2, 1, 0])


class Tiny(Cifar100):
    name = "tiny100"
    classes = ("a", "b", "c")
    specs = (
        Variant(
            name="full",
            shape=(9, 4, 4, 3),
            class_counts=(3, 3, 3),
            digest=array_digest(IMAGES, LABELS),
            train_rows=6,
            files=(DataFile(ARCHIVE),),
        ),
    )


def rows(images, labels):
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    columns = [np.full((len(images), 1), 7), labels[:, None], planes]
    return np.concatenate(columns, 1).astype(np.uint8).tobytes()


MEMBERS = {
    "train.bin": rows(IMAGES[:6], LABELS[:6]),
    "test.bin": rows(IMAGES[6:], LABELS[6:]),
}


def archive(members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as file:
        for name, content in {"fine_label_names.txt": b"a", **members}.items():
            entry = tarfile.TarInfo(f"cifar-100-binary/{name}")
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))

    def load(content):
        (tmp_path / "tiny100").mkdir()
        (tmp_path / "tiny100" / ARCHIVE).write_bytes(content)
        return Tiny().load(tmp_path)

    return load


def test_images_and_fine_labels_come_in_their_order(load):
    data = load(archive(MEMBERS))
    np.testing.assert_array_equal(data.inputs, IMAGES)
    np.testing.assert_array_equal(data.targets, LABELS)
    assert data.train_rows == 6
    assert len(data.digest) == 64


def other(**members):
    return archive(MEMBERS | {f"{name}.bin": part for name, part in members.items()})


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (other(test=b""), "expected 3 images of 50 bytes in test.bin, got 0 bytes"),
        (other(train=MEMBERS["train.bin"] + b"x"), "got 301 bytes or more"),
        (other(train=MEMBERS["train.bin"][:-1]), "in train.bin, got 299 bytes"),
        (
            other(test=rows(IMAGES[6:], np.array([2, 1, 9]))),
            "expected labels 0 to 2, test.bin has the label 9",
        ),
        (
            other(test=rows(IMAGES[6:], np.array([2, 1, 1]))),
            r"expected \(3, 3, 3\) examples per class, got \(2, 4, 3\)",
        ),
        (archive({"train.bin": MEMBERS["train.bin"]}), r"test\.bin is missing"),
        (gzip.compress(b"text", mtime=0), "not a whole tar archive"),
        (
            gzip.compress(gzip.decompress(archive(MEMBERS))[:700], mtime=0),
            r"not a whole tar archive|got \d+ bytes",
        ),
    ],
)
def test_another_content_is_refused(load, content, wrong):
    with pytest.raises(DataError, match=wrong):
        load(content)


def test_without_a_digest_the_files_have_checksums():
    (official,) = Cifar100.specs
    assert not official.digest
    with pytest.raises(ConfigError, match="needs a digest, or an md5"):
        replace(official, files=(DataFile(ARCHIVE),))
    assert len(set(Cifar100.classes)) == 100

"""CIFAR-10: three forms of the same images give the same arrays."""

import hashlib
import io
import os
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.cli.verbs import data as data_verbs
from benchmarks.data.cifar10 import TRAIN_EXAMPLES, Cifar10
from metricopt.errors import DataError
from tests.benchmarks.data.cifar10_forms import (
    FORMS,
    IMAGES,
    INPUTS,
    LABELS,
    TARGETS,
    TEST,
    TRAIN,
    Tiny,
    archive,
    arrays,
    batches,
    python2_pickle,
)

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def write(tmp_path):
    """Write files into the folder of the data set, and return the data root."""

    def write(content):
        (tmp_path / "tiny").mkdir(exist_ok=True)
        for name, data in content.items():
            (tmp_path / "tiny" / name).write_bytes(data)
        return tmp_path

    return write


def checked(md5, *urls):
    """Give the archive a checksum, and addresses."""
    source, official = Tiny(), Tiny.specs[0]
    file = replace(official.files[0], md5=md5, urls=urls)
    source.specs = (replace(official, files=(file,)),)
    return source


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_arrays(write, form):
    root = write(FORMS[form])
    for data in (Tiny().load(root), Tiny().load(root), Tiny().verify(root)):
        assert (data.variant, data.label, data.train_rows) == ("full", "tiny", 24)
        assert (data.inputs.dtype, data.targets.dtype) == (torch.uint8, torch.int64)
        np.testing.assert_array_equal(data.inputs, INPUTS)
        np.testing.assert_array_equal(data.targets, TARGETS)
        assert data.digest == Tiny.specs[0].digest


def test_forms_are_tried_in_order(write, capsys, monkeypatch):
    monkeypatch.setattr(data_verbs, "find_any", lambda name: Tiny())
    for form, first in [
        ("sheets", "train_cat_00000.webp"),
        ("arrays", "cifar10.npz"),
        ("archive", "cifar-10-python.tar.gz"),
    ]:
        root = write(FORMS[form])
        (status,) = Tiny().status(root)
        where = str(root / "tiny" / first)
        assert (status.state, status.where) == ("present", where)
        assert data_verbs.verify(["tiny"], root=root) == 0
        line = capsys.readouterr().out.splitlines()[1]
        assert line.split() == ["tiny", "full", "36", "present", where, "ok"]


def test_names_of_the_official_sheets():
    names = [file.stem for file in Cifar10.specs[0].alternatives[-1]]
    assert len(names) == 60
    assert names[:2] == ["train_airplane_00000.webp", "train_airplane_01000.webp"]
    assert names[49:51] == ["train_truck_49000.webp", "test_airplane_00000.webp"]
    assert names[-1] == "test_truck_09000.webp"
    assert Cifar10.specs[0].train_rows == TRAIN_EXAMPLES == 50_000


def test_archive_is_checked_before_it_is_read(write):
    content = FORMS["archive"]["cifar-10-python.tar.gz"]
    md5 = hashlib.md5(content).hexdigest()
    root = write(FORMS["archive"] | FORMS["arrays"])
    assert checked(md5).load(root).digest == Tiny.specs[0].digest
    write({"cifar-10-python.tar.gz": content[:-1]})
    with pytest.raises(DataError) as caught:
        checked(md5).load(root)
    path = root / "tiny" / "cifar-10-python.tar.gz"
    got = hashlib.md5(content[:-1]).hexdigest()
    assert str(caught.value) == (
        f"{path} is not the expected file: expected md5 {md5}, got {got}; "
        "delete it and run `./reproduce.sh data fetch tiny`"
    )


def test_download_is_checked(write, tmp_path):
    content = FORMS["archive"]["cifar-10-python.tar.gz"]
    (tmp_path / "mirror").write_bytes(content)
    address = (tmp_path / "mirror").as_uri()
    with pytest.raises(DataError, match=r"expected md5 0{32}, got "):
        checked("0" * 32, address).fetch(tmp_path)
    assert Tiny().status(tmp_path)[0].state == "missing"
    md5 = hashlib.md5(content).hexdigest()
    assert checked(md5, address).load(tmp_path).digest == Tiny.specs[0].digest


def test_pickle_that_calls_something_else(write, tmp_path):
    class Call:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    members = batches() | {"data_batch_3": pickle.dumps(Call(), protocol=2)}
    root = write({"cifar-10-python.tar.gz": archive(members)})
    text = r"data_batch_3: expected plain arrays, and it asks for posix.mkdir\); delete"
    with pytest.raises(DataError, match=text):
        Tiny().load(root)
    assert not (tmp_path / "made").exists()


def other_batch(name, content):
    members = batches() | {name: content}
    return archive({key: data for key, data in members.items() if data is not None})


WHOLE = batches()["test_batch"]
NARROW = python2_pickle(np.zeros((12, 300), np.uint8), LABELS[TEST])


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (other_batch("test_batch", None), "test_batch: .*filename .* not found"),
        (other_batch("test_batch", WHOLE[:-40]), r"test_batch: pickle data was trunc"),
        (other_batch("test_batch", b"text"), "test_batch: "),
        (
            other_batch("test_batch", pickle.dumps({})),
            "expected a dictionary with data",
        ),
        (
            other_batch("test_batch", pickle.dumps([])),
            "expected a dictionary with data",
        ),
        (other_batch("data_batch_2", NARROW), "cannot reshape array of size 3600"),
        (
            other_batch("data_batch_2", WHOLE),
            r"train images uint8 \(24, 4, 4, 3\), got",
        ),
    ],
)
def test_wrong_archives_are_refused(write, content, wrong):
    root = write({"cifar-10-python.tar.gz": content})
    with pytest.raises(DataError, match=f"gz cannot be parsed .*{wrong}.*; delete it"):
        Tiny().load(root)


CHANGED = IMAGES[TRAIN].copy()
CHANGED[0, 0, 0, 0] ^= 1
DAMAGED = bytearray(arrays())
DAMAGED[200] ^= 0xFF


def no_array():
    """Pack four members, one of which is no array."""
    packed = io.BytesIO(arrays(y_test=None))
    with zipfile.ZipFile(packed, "a") as file:
        file.writestr("y_test.npy", b"")
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (no_array(), r"parsed \(one of its members is no array\)"),
        (arrays()[:-30], r"parsed \(it is not a whole npz file\)"),
        (b"no archive", r"parsed \(it is not a whole npz file\)"),
        (bytes(DAMAGED), r"parsed \(it is a damaged npz file: Bad CRC-32 .*\)"),
        (
            arrays(x_test=None),
            r"it lacks an array: expected x_train, y_train, x_test, y_test, got x_t",
        ),
        (arrays(y_test=np.array([{}] * 12)), "allow_pickle=False"),
        (
            arrays(x_train=np.zeros((24, 3, 4, 4), np.uint8)),
            r"train images uint8 \(24, 4, 4, 3\), got uint8 of shape \(24, 3, 4, 4\)",
        ),
        (arrays(x_test=IMAGES[TEST] / 255), r"expected test images .*, got float64 of"),
        (arrays(x_test=IMAGES[:11]), r"got uint8 of shape \(11, 4, 4, 3\)"),
        (arrays(y_train=LABELS[:23]), r"24 train labels, integers, got int64 of .*23"),
        (arrays(y_test=LABELS[TEST] / 1), "12 test labels, integers, got float64"),
        (arrays(y_train=LABELS[TRAIN] - 1), "train labels 0 to 1, got -1 to 0"),
        (arrays(y_test=LABELS[TEST] * 2), "test labels 0 to 1, got 0 to 2"),
        (arrays(y_test=np.full(12, 2**63 - 1)), "expected test labels 0 to 1"),
        (
            arrays(y_test=LABELS[TEST] * 0),
            r"is not tiny \(full\): expected \(18, 18\) examples per class, got \(24",
        ),
        (arrays(x_train=CHANGED), r"is not tiny \(full\): expected the digest \w{64}"),
    ],
)
def test_wrong_arrays_are_refused(write, content, wrong):
    root = write({"cifar10.npz": content})
    with pytest.raises(DataError, match=f"cifar10.npz .*{wrong}.*; delete it and run"):
        Tiny().load(root)


def test_missing_sheets_are_named(write):
    lost = {"train_dog_00018.webp", "test_cat_00000.webp"}
    some = {k: v for k, v in FORMS["sheets"].items() if k not in lost}
    root = write(some)
    text = "needs train_dog_00018.webp and test_cat_00000.webp in .*tiny; run"
    with pytest.raises(DataError, match=text):
        Tiny().load(root, offline=True)
    assert Tiny().status(root)[0].state == "missing"
    (root / "tiny" / "train_cat_00000.webp").unlink()
    with pytest.raises(DataError, match=r"needs train_cat_00000\.webp and 2 more"):
        Tiny().load(root, offline=True)

"""Safetensors files of the library and of the suite that are damaged: one sentence."""

import json
import os
import struct

import pytest
import torch
from safetensors.torch import save

from benchmarks.data.files.variants import (
    array_digest,
    read_arrays,
    write_arrays,
)
from benchmarks.problems.pretrained import weights as released
from benchmarks.runs.artifacts import Artifact, artifact_path, get_or_make
from benchmarks.runs.codec import digest_of
from metricopt import DynamicBias, load_known, load_phi, save_known, save_phi
from metricopt.errors import ConfigError, DataError
from metricopt.files import read_tensors, read_text
from metricopt.methods.known import KnownStatistics, KnownValueFunction
from tests.metricopt import adapter_networks
from tests.robustness.hostile import LONGEST, within

pytestmark = pytest.mark.usefixtures("own_cache")
SOUND = save({"phi": torch.ones(5)}, {"format": "metricopt-phi-1"})


def headed(header, content=b""):
    """A safetensors file with any header."""
    return struct.pack("<Q", len(header)) + header + content


def claiming(shape, end, kind="F32"):
    entry = {"dtype": kind, "shape": shape, "data_offsets": [0, end]}
    return headed(json.dumps({"phi": entry}).encode(), bytes(20))


DAMAGED = {
    "empty": b"",
    "zeros": b"\0" * 100,
    "text": b"phi = 1\n",
    "torn in the header": SOUND[:30],
    "torn in the numbers": SOUND[:-3],
    "too long": SOUND + b"\0",
    "a header of 2^63 bytes": b"\xff" * 7 + b"\x7f" + SOUND[8:],
    "no UTF-8": headed(b'{"ph\xff":{}}'),
    "deep": headed(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "a list": headed(b"[]"),
    "100 TB": claiming([25 * 10**12], 10**14),
    "an overflow": claiming([2**62, 2**62], 20),
    "a negative size": claiming([-5], 20),
    "another size": claiming([4], 20),
    "a type nobody has": claiming([5], 20, "F33"),
}


def one_sentence(caught, path):
    text = str(caught.value)
    assert str(path) in text
    assert text.isprintable() and len(text) < LONGEST, text


@pytest.fixture(scope="module")
def adapter():
    return DynamicBias(adapter_networks.mlp(), size=5)


@pytest.mark.parametrize("name", DAMAGED)
def test_every_loading_function_names_a_damaged_file(tmp_path, adapter, name):
    path = tmp_path / "file.safetensors"
    path.write_bytes(DAMAGED[name])
    loading = (
        (ConfigError, "not written by save_phi", lambda: load_phi(path, adapter)),
        (ConfigError, "not written by save_known", lambda: load_known(path)),
        (DataError, "file.safetensors", lambda: read_tensors(path)),
    )
    for kind, said, load in loading:
        with within(megabytes=500), pytest.raises(kind, match=said) as caught:
            load()
        one_sentence(caught, path)


def test_a_folder_a_pipe_and_nothing_are_named(tmp_path, adapter):
    folder, pipe, nothing = (tmp_path / name for name in "abc")
    folder.mkdir()
    os.mkfifo(pipe)
    for path in (folder, pipe, nothing, pipe / "below"):
        for load in (lambda path: load_phi(path, adapter), load_known):
            with within(seconds=5), pytest.raises(ConfigError) as caught:
                load(path)
            one_sentence(caught, path)


@pytest.mark.parametrize(
    "phi",
    [
        torch.ones(5, dtype=torch.int64),
        torch.tensor([1.0, 2.0, torch.nan, 0.0, 0.0]),
        torch.tensor([1.0, 2.0, torch.inf, 0.0, 0.0]),
        torch.ones(5, dtype=torch.complex64),
        torch.ones(5, dtype=torch.bool),
    ],
)
def test_phi_of_other_numbers_is_refused(tmp_path, adapter, phi):
    path = tmp_path / "phi.safetensors"
    save_phi(path, phi, adapter)
    with pytest.raises(ConfigError, match="must hold finite floating-point numbers"):
        load_phi(path, adapter)


GROUPS, COSTS = {"counts": torch.ones(3, 2)}, torch.tensor([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("groups", "costs", "text"),
    [
        (GROUPS, COSTS[:2], "counts must hold finite numbers of every query"),
        (GROUPS, COSTS[None], "costs must hold"),
        (GROUPS, COSTS * torch.nan, "costs must hold"),
        ({"counts": torch.ones(3)}, COSTS, "counts must hold"),
        ({"counts": torch.full((3, 2), torch.inf)}, COSTS, "counts must hold"),
    ],
)
def test_statistics_that_do_not_go_together_are_refused(tmp_path, groups, costs, text):
    path = tmp_path / "known.safetensors"
    save_known(path, KnownStatistics(groups, costs))
    with pytest.raises(ConfigError, match=text):
        load_known(path)


@pytest.mark.parametrize(
    "scale",
    ["{", "[]", '{"high": 1e999}', '{"low": 1}', '{"low": "0"}', '{"most": 2}'],
)
def test_statistics_with_a_damaged_scale_are_refused(tmp_path, scale):
    path = tmp_path / "known.safetensors"
    metadata = {"format": "metricopt-known-statistics-1", "scale": scale}
    path.write_bytes(save({**GROUPS, "costs": COSTS}, metadata))
    with pytest.raises(ConfigError, match="is damaged, no part of it") as caught:
        load_known(path)
    one_sentence(caught, path)


@pytest.mark.parametrize(
    "changes",
    [
        {"facts": "{"},
        {"facts": "[" * 100_000},
        {"facts": "[1]"},
        {"facts": '{"size": "5"}'},
        {"facts": '{"size": 1e999}'},
        {"adapter": "1"},
        {"adapter": None},
    ],
)
def test_a_value_function_with_damaged_facts_is_refused(tmp_path, changes):
    path = tmp_path / "known.safetensors"
    save_known(path, KnownValueFunction({"a": torch.ones(2)}, {"size": 5.0}))
    assert load_known(path).facts == {"size": 5.0}
    metadata = {"format": "metricopt-known-phi-1", "facts": "{}", "adapter": "{}"}
    metadata = {k: v for k, v in (metadata | changes).items() if v is not None}
    path.write_bytes(save({"a": torch.ones(2)}, metadata))
    with pytest.raises(
        ConfigError, match="is damaged, no part of it is used"
    ) as caught:
        load_known(path)
    one_sentence(caught, path)


ARTIFACTS = {
    **DAMAGED,
    "no metadata": save({"a": torch.ones(2)}),
    "no facts": save({"a": torch.ones(2)}, {"fact": "{}"}),
    "facts that are a list": save({"a": torch.ones(2)}, {"facts": "[]"}),
    "deep facts": save({"a": torch.ones(2)}, {"facts": "[" * 100_000}),
}


@pytest.mark.parametrize("name", ARTIFACTS)
def test_a_damaged_artifact_is_told_and_made_again(name):
    path = artifact_path("theta", 1)
    path.parent.mkdir(parents=True)
    path.write_bytes(ARTIFACTS[name])
    made = Artifact({"a": torch.zeros(2)}, {"made": 2})
    with pytest.warns(
        UserWarning, match=f"{path.name} is damaged and counts as not made"
    ):
        assert get_or_make("theta", 1, lambda: made) == made
    kept = get_or_make("theta", 1, lambda: pytest.fail("it was there"))
    assert kept.facts == made.facts


def test_a_folder_in_the_place_of_an_artifact_is_told_before_it_is_made():
    artifact_path("theta", 1).mkdir(parents=True)
    with pytest.raises(DataError, match="must be a file, got a folder; delete it"):
        get_or_make("theta", 1, lambda: pytest.fail("hours of training"))


def test_damaged_arrays_count_as_absent(tmp_path):
    path = tmp_path / "arrays.safetensors"
    inputs, targets = torch.ones(3, 2), torch.ones(3)
    digest = array_digest(inputs.numpy(), targets.numpy())
    write_arrays(path, "m", (inputs, targets, digest))
    assert read_arrays(path, "m")[2] == digest
    fresh = {"fingerprint": "m", "digest": digest}
    for content in (*DAMAGED.values(), save({"inputs": torch.ones(3)}, fresh)):
        path.write_bytes(content)
        assert read_arrays(path, "m") is None
    path.unlink()
    path.mkdir()
    assert read_arrays(path, "m") is None


WEIGHTS = save({"a": torch.ones(2)}, {"spec": digest_of({"depth": 8})})
RECORDS = [b"", b"{", b"\xff", b"[" * 100_000, b"[]", b"1", b"{}", b"null"]
SOUND_RECORD = json.dumps({"spec": {"depth": 8}, "weights": "0"}).encode()
RELEASED = [
    (WEIGHTS, record, r"net\.json is not a record .* with") for record in RECORDS
]


@pytest.mark.parametrize(
    ("weights", "record", "said"),
    [
        *RELEASED,
        (WEIGHTS[:-2], SOUND_RECORD, "not a complete safetensors file; restore"),
    ],
)
def test_damaged_weights_or_records_that_were_released_are_named(
    tmp_path, monkeypatch, weights, record, said
):
    monkeypatch.setattr(released, "RELEASED", tmp_path)
    (tmp_path / "net.safetensors").write_bytes(weights)
    (tmp_path / "net.json").write_bytes(record)
    with pytest.raises(DataError, match=f"{said} .*git"):
        released.read_released("net", digest_of({"depth": 8}))


def test_a_text_of_100_terabytes_is_not_read(tmp_path):
    path = tmp_path / "records.jsonl"
    with path.open("wb") as file:
        file.truncate(10**13)
    with within(megabytes=500), pytest.raises(DataError, match="must be a text file"):
        read_text(path)

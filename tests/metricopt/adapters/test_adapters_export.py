"""phi files: round trip, what they are checked for, and atomic writing."""

import hashlib
import os
import struct
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.export import fingerprint, load_phi, save_phi, state_digest
from metricopt.adapters.film import FiLM
from metricopt.adapters.output_offsets import OutputOffsets
from metricopt.errors import ConfigError, ShapeError
from metricopt.reading.meaning import Meaning
from metricopt.reading.outputs import Standard
from tests.metricopt import adapter_networks as networks
from tests.metricopt.adapter_networks import IMAGES, resnet


def _film(weights=0, **settings):
    network = networks.randomise(networks.ResNet(), weights)
    return FiLM(network, IMAGES, **({"size": 6} | settings))


def test_round_trip_gives_the_same_network(tmp_path):
    phi = torch.randn(6)
    path = tmp_path / "phi.safetensors"
    first = _film()
    save_phi(path, phi.clone().requires_grad_(), first)
    second = _film()
    loaded = load_phi(path, second)
    assert torch.equal(loaded, phi)
    assert not loaded.requires_grad
    with first.attach(phi), second.attach(loaded):
        assert torch.equal(first.network(IMAGES), second.network(IMAGES))
    assert path.stat().st_size < 2000
    assert os.listdir(tmp_path) == [path.name]


def test_dynamic_bias_round_trip(tmp_path):
    adapter = DynamicBias(networks.mlp(), size=3)
    path = tmp_path / "phi"
    save_phi(path, torch.arange(3.0), adapter)
    save_phi(path, torch.arange(3.0, dtype=torch.float64) + 1, adapter)
    expected = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    assert torch.equal(load_phi(str(path), adapter), expected)


SITES = r'sites \["stage2.bn2"\], .* sites \["stem.1"\]'


@pytest.mark.parametrize(
    ("size", "settings", "message"),
    [
        (6, {"size": 7}, "saved for size 6, but this adapter has size 7"),
        (6, {"sites": ["stem.1"]}, SITES),
        (6, {"form": "direct", "size": None}, "saved for size 6, .* has size 32"),
        (
            32,
            {"form": "direct", "size": 32},
            "saved for form generator, .* form direct",
        ),
        (6, {"seed": 1}, "saved for seed 0, but this adapter has seed 1"),
        (6, {"weights": 1}, r"saved for theta [0-9a-f]{64}, but this"),
    ],
)
def test_another_adapter_is_refused(tmp_path, size, settings, message):
    path = tmp_path / "phi"
    adapter = _film(size=size)
    save_phi(path, torch.zeros(size), adapter)
    with pytest.raises(ConfigError, match=message):
        load_phi(path, _film(**settings))
    with pytest.raises(ConfigError, match=r"saved for adapter FiLM, .* DynamicBias"):
        load_phi(path, DynamicBias(adapter.network, size=size))
    adapter.network.stem[1].running_mean[0] += 1e-6
    with pytest.raises(ConfigError, match="saved for theta"):
        load_phi(path, adapter)


@pytest.mark.parametrize(
    ("meaning", "named"),
    [
        (Meaning(link="softmax"), "link softmax"),
        (Meaning(layout="tokens"), "layout tokens"),
    ],
)
def test_offsets_of_outputs_with_another_meaning_are_refused(tmp_path, meaning, named):
    network = networks.mlp()
    inner = DynamicBias(network, size=3)
    vectors = torch.zeros(2, network[0].in_features)
    saved, plain = OutputOffsets(inner, vectors, meaning), OutputOffsets(inner, vectors)
    phi = torch.linspace(-1, 1, saved.size)
    path = tmp_path / "phi"
    save_phi(path, phi, saved)
    with pytest.raises(ConfigError, match=f"saved for {named}, but .* None"):
        load_phi(path, plain)
    assert torch.equal(load_phi(path, OutputOffsets(inner, vectors, meaning)), phi)
    save_phi(path, phi, plain)
    with pytest.raises(ConfigError, match=f"None, but this adapter has {named}"):
        load_phi(path, saved)
    # What adds nothing to a phi may differ.
    stored = OutputOffsets(inner, vectors, Meaning(stored=torch.uint8))
    assert torch.equal(load_phi(path, stored), phi)
    save_phi(path, phi, stored)
    assert torch.equal(load_phi(path, plain), phi)


def test_phi_in_units_of_a_spread_is_loaded_in_those_of_the_outputs(tmp_path):
    network, path = networks.mlp(), tmp_path / "phi"
    inner = DynamicBias(network, size=3)
    vectors = torch.zeros(2, network[0].in_features)
    values = Meaning("values", "numbers")
    plain = OutputOffsets(inner, vectors, values, scaled=True)
    count = plain.outputs
    centre, unit = tuple(map(float, range(count))), (2.0,) * count
    meaning = replace(values, standard=Standard(centre, unit))
    saved = OutputOffsets(inner, vectors, meaning, scaled=True)
    phi = torch.linspace(-1, 1, saved.size)
    save_phi(path, phi, saved)
    assert torch.equal(load_phi(path, saved), phi)
    found = load_phi(path, plain)
    assert torch.equal(found[:3], phi[:3])
    for ours, theirs in zip(plain.affine(found), saved.affine(phi), strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
    other = replace(values, standard=Standard(centre, (3.0,) * count))
    with pytest.raises(ConfigError, match=r"saved for unit 2 .* has unit 3 "):
        load_phi(path, OutputOffsets(inner, vectors, other, scaled=True))
    save_phi(path, phi, plain)
    with pytest.raises(ConfigError, match="saved for centre None"):
        load_phi(path, saved)
    texts = plain.describe() | {"centre": "x", "unit": "1"}
    save_file({"phi": phi}, path, metadata=texts)
    with pytest.raises(ConfigError, match=r"phi is damaged: could not .*'x'; save phi"):
        load_phi(path, plain)


def test_the_home_folder_has_its_short_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    save_phi("~/phi", torch.zeros(6), _film())
    assert (tmp_path / "phi").is_file()
    with pytest.raises(ConfigError, match="there is no file ~nobody-of-this-name"):
        load_phi("~nobody-of-this-name", _film())
    assert torch.equal(load_phi("~/phi", _film()), torch.zeros(6))


def test_other_files_are_refused(tmp_path):
    adapter = _film()
    with pytest.raises(ConfigError, match=r"there is no file .*absent"):
        load_phi(tmp_path / "absent", adapter)
    save_file({"other": torch.zeros(6)}, tmp_path / "other")
    with pytest.raises(ConfigError, match="other was not written by save_phi"):
        load_phi(tmp_path / "other", adapter)
    save_file({"phi": torch.zeros(6)}, tmp_path / "bare")
    with pytest.raises(ConfigError, match="bare was saved for format None"):
        load_phi(tmp_path / "bare", adapter)


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    adapter = _film()
    path = tmp_path / "phi"
    save_phi(path, torch.ones(6), adapter)
    with pytest.raises(ShapeError, match=r"phi must have shape \[6\], got \(5,\)"):
        save_phi(path, torch.zeros(5), adapter)

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("metricopt.files.os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save_phi(path, torch.zeros(6), adapter)
    assert torch.equal(load_phi(path, adapter), torch.ones(6))
    assert os.listdir(tmp_path) == ["phi"]


def test_the_digest_of_a_state_is_that_of_headings_and_bytes():
    state = {
        "second": torch.arange(6.0).view(2, 3).t(),
        "first": torch.tensor(3, dtype=torch.int64),
        "none": "no tensor",
    }
    parts = [
        b"first torch.int64 ()\n",
        struct.pack("<q", 3),
        b"second torch.float32 (3, 2)\n",
        struct.pack("<6f", 0, 3, 1, 4, 2, 5),
    ]
    assert state_digest(state) == hashlib.sha256(b"".join(parts)).hexdigest()
    parts[0], parts[2] = b"first()", b"second(3, 2)"
    expected = hashlib.sha256(b"".join(parts)).hexdigest()
    assert state_digest(state, "{name}{shape}") == expected


def test_fingerprint_is_that_of_the_values():
    same = [fingerprint(resnet()) for _ in range(2)]
    assert same[0] == same[1]
    half = resnet().to(torch.bfloat16)
    assert fingerprint(half) != same[0]

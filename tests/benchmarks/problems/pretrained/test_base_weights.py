"""Base weights: found, checked, and those of torchvision complete."""

import hashlib
from dataclasses import replace

import pytest
import torch
import torchvision
from safetensors.torch import load_file

from benchmarks.problems.pretrained import base_weights
from benchmarks.problems.pretrained.base_weights import BaseWeights, load_base
from benchmarks.runs.paths import data_root
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.problems.pretrained.weight_cases import (
    build,
    same,
    saved,
    state_of,
)

NETWORKS = {"resnet18": "fc", "resnet50": "fc", "squeezenet1_1": "classifier"}
SQUEEZENET = BaseWeights(
    "file",
    "squeezenet1_1.safetensors",
    "1fe8e164fc591d1e6445b4656eb4c55fa48d5f23ce05564d5f0c2404d4590b68",
)


def torchvisions(name, seed=0):
    """Return torchvision's network, random weights and statistics of batch norm."""
    torch.manual_seed(seed)
    network = getattr(torchvision.models, name)(weights=None)
    for key, value in network.state_dict().items():
        if key.endswith("running_mean"):
            value.normal_(0, 0.1)
        if key.endswith("running_var"):
            value.uniform_(0.5, 1.5)
    return network.eval()


def torchvision_features(network, inputs):
    """Return what torchvision's network gives its classifier, pooled, [N, C]."""
    kept = []
    last = network.classifier if hasattr(network, "classifier") else network.fc
    handle = last.register_forward_hook(lambda _, given, __: kept.append(given[0]))
    with torch.no_grad():
        network(inputs)
    handle.remove()
    return kept[0].mean((2, 3)) if kept[0].ndim == 4 else kept[0]


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("resnet18", ".pth"), ("resnet50", ".safetensors"), ("squeezenet1_1", ".pt")],
)
def test_torchvisions_weights_fit_completely(tmp_path, name, suffix):
    original, network = torchvisions(name), build(name)
    settings = saved(tmp_path, original.state_dict(), f"base{suffix}")
    embedding = network.embedding.weight.clone()
    assert load_base(network, settings, tmp_path) == settings.sha256
    inputs = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found = network[:-2](inputs)
    expected = torchvision_features(original, inputs)
    assert expected.std() > 1e-3
    torch.testing.assert_close(found, expected)
    assert torch.equal(network.embedding.weight, embedding)


@pytest.mark.parametrize("name", NETWORKS)
def test_torchvision_names_the_weights_and_the_classifier(name):
    pretrained = build(name).pretrained
    weights = torchvision.models.get_weight(pretrained.name)
    assert weights in torchvision.models.get_model_weights(name)
    assert pretrained.left_out == (NETWORKS[name],)


def test_random_weights_stay(tmp_path):
    network = build()
    before = state_of(network)
    assert load_base(network, BaseWeights(), tmp_path) is None
    assert same(before, network.state_dict())


def test_files_are_found_in_the_data_root_then_beside_it(tmp_path):
    root, network, other = tmp_path / "data", build(), build(seed=1)
    root.mkdir()
    beside = saved(tmp_path, other.state_dict())
    load_base(network, beside, root)
    assert torch.equal(network.conv1.weight, other.conv1.weight)
    anywhere = replace(beside, file=str(tmp_path / "weights" / "base.pth"))
    load_base(build(), anywhere, tmp_path / "no-data")
    # The file in the data root is taken first, and here it is another one.
    saved(root, build(seed=2).state_dict())
    with pytest.raises(DataError, match=f"{root}.* is not the expected file"):
        load_base(network, beside, root)


def test_a_missing_file_is_told_with_its_place(tmp_path):
    settings = replace(SQUEEZENET, file="mine.pth")
    place = tmp_path / "weights" / "mine.pth"
    with pytest.raises(DataError, match=f"weights {place} are missing; put the file"):
        load_base(build(), settings, tmp_path)


def test_another_file_of_the_name_is_refused(tmp_path):
    settings, network = saved(tmp_path, build(seed=1).state_dict()), build()
    before = state_of(network)
    other = replace(settings, sha256=settings.sha256[::-1])
    text = f"expected sha256 {other.sha256}, got {settings.sha256}; replace it"
    with pytest.raises(DataError, match=text):
        load_base(network, other, tmp_path)
    assert same(before, network.state_dict())


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """Have torchvision offer a file of this machine, named by its checksum."""
    source = tmp_path / "source.pth"
    torch.save(torchvisions("resnet18").state_dict(), source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    published = source.rename(tmp_path / f"resnet18-{digest[:8]}.pth")

    class Offer:
        url = published.as_uri()

    monkeypatch.setattr(torchvision.models, "get_weight", lambda name: Offer)
    return published, digest


def test_torchvisions_weights_are_downloaded_once(tmp_path, offered):
    published, digest = offered
    root, network = tmp_path / "data", build("resnet18")
    settings = BaseWeights("torchvision")
    text = f"{published.name} are missing, and downloads are forbidden; put file://"
    with pytest.raises(DataError, match=text):
        load_base(network, settings, root, offline=True)
    assert load_base(network, settings, root) == digest
    published.unlink()
    assert load_base(network, settings, root, offline=True) == digest
    assert (root / "weights" / published.name).exists()


def test_a_damaged_download_is_refused(tmp_path, offered):
    published, digest = offered
    published.write_bytes(published.read_bytes() + b"0")
    with pytest.raises(DataError, match=f"expected sha256 {digest[:8]}, got "):
        load_base(build("resnet18"), BaseWeights("torchvision"), tmp_path / "data")
    assert not list((tmp_path / "data").rglob("resnet18-*.p*"))


def test_torchvision_offers_no_weights_for_every_network(tmp_path):
    with pytest.raises(ConfigError, match="torchvision offers no weights for this"):
        load_base(build("tiny"), BaseWeights("torchvision"), tmp_path)


def test_torchvisions_addresses_carry_the_checksum(tmp_path, monkeypatch):
    asked = []

    def download(urls, target, *, sha256):
        asked.append((*urls, target.name, sha256))
        raise DataError("not now")

    monkeypatch.setattr(base_weights, "download", download)
    with pytest.raises(DataError, match="not now"):
        load_base(build("resnet50"), BaseWeights("torchvision"), tmp_path)
    ((url, name, sha256),) = asked
    assert (name, sha256) == ("resnet50-0676ba61.pth", "0676ba61")
    assert url.endswith("/models/resnet50-0676ba61.pth")


def test_the_squeezenet_of_this_machine_fits():
    root, network = data_root(), build("squeezenet1_1", 128)
    places = (root / "weights", root.parent / "weights")
    paths = [f / SQUEEZENET.file for f in places if (f / SQUEEZENET.file).is_file()]
    if not paths:
        pytest.skip("needs squeezenet1_1.safetensors below the data root")
    assert load_base(network, SQUEEZENET, root) == SQUEEZENET.sha256
    inputs = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    original = torchvision.models.squeezenet1_1(weights=None).eval()
    original.load_state_dict(load_file(paths[0]))
    with torch.no_grad():
        found = network[:-2](inputs)
    torch.testing.assert_close(found, torchvision_features(original, inputs))

"""Base weights: found, checked, and those of torchvision complete."""

import hashlib
import os
import pickle
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
    named,
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
    with pytest.raises(DataError, match=f"{place} is missing; put the file"):
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
    text = f"{published.name} is missing, and downloads are forbidden; put file://"
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
    with pytest.raises(ConfigError, match="no weights of the source"):
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


def test_half_weights_are_read_into_float32(tmp_path):
    other, network = build(seed=1), build()
    half = {name: value.half() for name, value in other.state_dict().items()}
    load_base(network, saved(tmp_path, half, "base.safetensors"), tmp_path)
    assert network.conv2.weight.dtype == torch.float32
    assert torch.equal(network.conv2.weight, other.conv2.weight.half().float())


def test_an_embedding_in_the_file_is_read_too(tmp_path):
    other, network = build(seed=1), build()
    load_base(network, saved(tmp_path, other.state_dict()), tmp_path)
    assert same(other.state_dict(), network.state_dict())


def test_counters_of_batch_norm_may_be_missing(tmp_path):
    other, network = build(seed=1), build()
    old = {n: v for n, v in other.state_dict().items() if "num_batches" not in n}
    load_base(network, saved(tmp_path, old), tmp_path)
    assert torch.equal(network.conv1.weight, other.conv1.weight)


def test_weights_that_do_not_fit_are_named(tmp_path):
    network, state = build(), build(seed=1).state_dict()
    before = state_of(network)
    state["conv1.weight"] = torch.zeros(16, 1, 3, 3)
    for name in ("bn1", "bn2"):
        del state[f"{name}.weight"], state[f"{name}.running_mean"]
    state["head.weight"] = torch.zeros(1)
    settings = saved(tmp_path, state)
    with pytest.raises(DataError) as caught:
        load_base(network, settings, tmp_path)
    assert str(caught.value) == (
        "base.pth does not fit the network: expected its 20 tensors by name, got "
        "4 missing (bn1.running_mean, bn1.weight, bn2.running_mean, ...); 1 unknown "
        "(head.weight); 1 of another shape (conv1.weight (16, 1, 3, 3) for "
        "(16, 3, 3, 3))"
    )
    assert same(before, network.state_dict())


def test_an_embedding_of_another_size_does_not_fit(tmp_path):
    settings = saved(tmp_path, build(size=9).state_dict())
    with pytest.raises(DataError, match=r"2 of another shape \(embedding.bias \(9,\)"):
        load_base(build(), settings, tmp_path)


class Foreign:
    """What a pickle of somebody else may run."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("dump", [torch.save, pickle.dump])
def test_a_pickle_that_runs_code_is_refused(tmp_path, dump):
    made = tmp_path / "made"
    path = tmp_path / "weights" / "base.pth"
    path.parent.mkdir()
    with path.open("wb") as file:
        dump({"conv1.weight": Foreign(made)}, file)
    with pytest.raises(DataError, match=r"base.pth is refused: .* may run code; save"):
        load_base(build(), named(path), tmp_path)
    assert not made.exists()


@pytest.mark.parametrize("saved_value", [[torch.zeros(1)], {"epoch": 3}, {1: "a"}])
def test_other_things_than_tensors_by_name_are_refused(tmp_path, saved_value):
    settings = saved(tmp_path, saved_value)
    kind = type(saved_value).__name__
    with pytest.raises(DataError, match=f"tensors by name, .* got {kind} of other"):
        load_base(build(), settings, tmp_path)

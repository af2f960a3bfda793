"""Networks, and files of weights with their settings."""

import hashlib

import torch
from safetensors.torch import save_file

from benchmarks.networks.contract import build_embedding_network
from benchmarks.problems.pretrained.base_weights import BaseWeights


def build(name="tiny", size=8, seed=0):
    return build_embedding_network(name, size, seed).eval()


def named(path):
    """Return the settings of a file, by its name and true checksum."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return BaseWeights("file", path.name, digest)


def saved(root, state, name="base.pth"):
    """Save a state below a data root, and return its settings."""
    path = root / "weights" / name
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".safetensors":
        save_file({key: value.contiguous() for key, value in state.items()}, path)
    else:
        torch.save(state, path)
    return named(path)


def state_of(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(
        torch.equal(value, other[name]) for name, value in one.items()
    )

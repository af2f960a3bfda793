"""BERT: equal to that of transformers, and started from published weights."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from benchmarks.networks.reading.bert import MACBERT, BertSize, bert, of_transformers
from benchmarks.networks.reading.contract import build_reader
from benchmarks.problems.pretrained.base_weights import BaseWeights, load_base
from metricopt.errors import ConfigError, DataError

GOLDEN = Path(__file__).parents[3] / "data" / "golden" / "bert_transformers.safetensors"
"""A state of `BertForMaskedLM`, inputs, and the hidden states that its BERT gave."""


def golden():
    """Return the state, and the rest."""
    content = load_file(GOLDEN)
    state = {
        name.removeprefix("state."): tensor
        for name, tensor in content.items()
        if name.startswith("state.")
    }
    return state, {name: content[name] for name in ("ids", "segments", "hidden")}


def tiny(seed=0):
    torch.manual_seed(seed)
    return bert(40, 24, BertSize(16, 2, 2)).eval()


def offered(tmp_path, state):
    """Return a reader whose weights are published in a file of this machine."""
    path = tmp_path / "pytorch_model.bin"
    torch.save(state, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    network = tiny()
    network.pretrained = replace(MACBERT, url=path.as_uri(), sha256=digest)
    return network, path, digest


def old(state):
    """Return a state with the names that TensorFlow gives normalisations."""
    names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    found = {}
    for name, tensor in state.items():
        for new, before in names.items():
            name = name.replace(new, before)
        found[name] = tensor
    return found


def without_prefix(state):
    """Return a state as `BertModel` alone has it."""
    return {name.removeprefix("bert."): tensor for name, tensor in state.items()}


@pytest.mark.parametrize("named", [dict, old, without_prefix])
def test_hidden_states_are_those_of_transformers(tmp_path, named):
    state, known = golden()
    network, _, digest = offered(tmp_path, named(state))
    assert load_base(network, BaseWeights("published"), tmp_path / "data") == digest
    # Ours: 0 where nothing is, 1 in the question, 2 in the paragraph.
    segments = (known["segments"] + 1) * (known["ids"] > 0)
    inputs = torch.stack([known["ids"], segments, torch.zeros_like(segments)], 1)
    with torch.no_grad():
        found = network.body(inputs)
    there = known["ids"] > 0
    torch.testing.assert_close(found[there], known["hidden"][there], atol=1e-5, rtol=0)


def test_weights_are_downloaded_once_and_checked(tmp_path):
    network, path, digest = offered(tmp_path, golden()[0])
    settings, root = BaseWeights("published"), tmp_path / "data"
    text = "downloads are forbidden; put file://.*pytorch_model.bin there"
    with pytest.raises(DataError, match=text):
        load_base(network, settings, root, offline=True)
    assert load_base(network, settings, root) == digest
    path.unlink()
    assert load_base(network, settings, root, offline=True) == digest
    (root / "weights" / MACBERT.name).write_bytes(b"another")
    with pytest.raises(DataError, match="is not the expected file"):
        load_base(network, settings, root)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bert.embeddings.word_embeddings.weight", r"missing \(body.characters"),
        (
            "bert.encoder.layer.1.attention.self.key.bias",
            r"missing \(body.layers.1.self_attn.in_proj_bias",
        ),
        ("bert.encoder.layer.0.output.dense.bias", r"missing \(body.layers.0.linear2"),
    ],
)
def test_a_state_that_lacks_something_is_refused(tmp_path, name, message):
    state, _ = golden()
    del state[name]
    network, _, _ = offered(tmp_path, state)
    with pytest.raises(DataError, match=message):
        load_base(network, BaseWeights("published"), tmp_path / "data")


def test_projections_of_other_shapes_are_refused(tmp_path):
    state, _ = golden()
    name = "bert.encoder.layer.0.attention.self.query.weight"
    state[name] = state[name][:8]
    assert "body.layers.0.self_attn.in_proj_weight" not in of_transformers(state)
    network, _, _ = offered(tmp_path, state)
    with pytest.raises(DataError, match="in_proj_weight"):
        load_base(network, BaseWeights("published"), tmp_path / "data")


def test_macbert_has_a_vocabulary_and_places_of_its_own():
    for vocabulary, length in ((6_000, 512), (21_128, 513)):
        text = rf"21128 pieces and at most 512 places, got {vocabulary} and {length}"
        with pytest.raises(ConfigError, match=text):
            build_reader("macbert-base", vocabulary, length, seed=0)


def test_readers_without_published_weights_have_none(tmp_path):
    network = build_reader("tiny-convolutions", 20, 12, seed=0)
    text = "no weights of the source 'published' for this network"
    with pytest.raises(ConfigError, match=text):
        load_base(network, BaseWeights("published"), tmp_path)

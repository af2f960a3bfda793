"""Embedding networks by name: shapes, unit length, and a cut at the sites of FiLM."""

import copy

import pytest
import torch
from torch import nn

from benchmarks.networks.contract import (
    EMBEDDING_NETWORKS,
    EmbeddingNetwork,
    Normalised,
    build_embedding_network,
)
from metricopt.adapters.film import FiLM
from metricopt.adapters.sites import find_sites
from metricopt.errors import ConfigError

SIDES = {"tiny": 32, "squeezenet1_1": 48, "resnet18": 40, "resnet50": 40}
FEATURES = {"tiny": 64, "squeezenet1_1": 512, "resnet18": 512, "resnet50": 2048}
SIZE = 12


def build(name, seed=0):
    """Return a network in evaluation mode whose batch norms are not the identity."""
    network = build_embedding_network(name, SIZE, seed).eval()
    generator = torch.Generator().manual_seed(seed)
    for norm in network.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.normal_(0, 0.1, generator=generator)
            norm.running_var.uniform_(0.5, 2.0, generator=generator)
    return network


@pytest.fixture(scope="module", params=SIDES)
def built(request):
    """Every network, made once, with its name."""
    return request.param, build(request.param)


def images(name, count=3):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(count, 3, SIDES[name], SIDES[name], generator=generator)


def test_every_network_is_known_here():
    assert set(EMBEDDING_NETWORKS) == set(SIDES)


def test_a_network_is_a_sequence_that_ends_in_a_normalised_embedding(built):
    name, network = built
    assert isinstance(network, nn.Sequential)
    pooling, flatten, embedding, normalised = network[-4:]
    assert isinstance(pooling, nn.AdaptiveAvgPool2d)
    assert isinstance(flatten, nn.Flatten) and isinstance(normalised, Normalised)
    assert (embedding.in_features, embedding.out_features) == (FEATURES[name], SIZE)
    with torch.no_grad():
        found = network(images(name))
        features = network[:-4](images(name)).mean((2, 3))
        plain = embedding(features)
    assert found.shape == (3, SIZE)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(3))
    torch.testing.assert_close(found, plain / plain.square().sum(1, True).sqrt())
    assert (found[0] - found[1]).abs().max() > 1e-4


@pytest.mark.parametrize("name", ["tiny", "squeezenet1_1", "resnet18"])
def test_the_seed_alone_decides_the_weights(name):
    state = torch.get_rng_state()
    one, same, other = (build_embedding_network(name, SIZE, n) for n in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), state)
    pairs = zip(one.state_dict().values(), same.state_dict().values(), strict=True)
    assert all(torch.equal(left, right) for left, right in pairs)
    for network in (one, other):
        assert network.embedding.weight.abs().max() > 0
    assert not torch.equal(one.embedding.weight, other.embedding.weight)


def test_film_is_cut_before_its_sites(built):
    """Cached features and hooks give the same embeddings, of unit length."""
    name, network = built
    inputs = images(name)
    film = FiLM(
        network, inputs[:1], form="generator", size=128, sites=list(network.sites)
    )
    assert film.is_cut and film.size == 128
    features = film.encode(inputs)
    phi = torch.randn(2, 128, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        found = film.predict(features, phi)
        for row, embeddings in zip(phi, found, strict=True):
            with film.attach(row):
                torch.testing.assert_close(embeddings, network(inputs))
        untouched = film.predict(features, torch.zeros(1, 128))[0]
        torch.testing.assert_close(untouched, network(inputs))
    assert (found[0] - untouched).abs().max() > 1e-2
    torch.testing.assert_close(found.norm(dim=2), torch.ones(2, 3))


def test_film_caches_the_last_feature_map(built):
    """What crosses the cut has its resolution: all before the sites is cached."""
    name, network = built
    inputs = images(name, 1)
    with torch.no_grad():
        last = network[:-4](inputs)
    film = FiLM(network, inputs, sites=list(network.sites))
    assert {value.shape[2:] for value in film.encode(inputs)} == {last.shape[2:]}
    assert sum(site.channels for site in film.sites) == last.shape[1]


def test_the_sites_end_in_the_last_batch_norm_or_convolution(built):
    name, network = built
    assert network.sites[-1:] == tuple(
        site.name for site in find_sites(network, images(name, 1), None)
    )
    assert len(network.sites) == (2 if name == "squeezenet1_1" else 1)


def test_a_copy_and_a_part_are_networks_too():
    network = build("tiny")
    assert copy.deepcopy(network).sites == network.sites == ("bn3",)
    part = network[:-1]
    assert isinstance(part, EmbeddingNetwork) and part.sites == ()


def test_normalised_vectors_have_unit_length_or_none():
    vectors = torch.tensor([[3.0, 4.0], [0.0, 0.0], [-1e-6, 0.0], [1e15, 0.0]])
    found = Normalised()(vectors)
    expected = torch.tensor([[0.6, 0.8], [0.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_vectors_are_normalised_in_float32(dtype):
    vectors = torch.tensor([[0.1, 0.7, -3.0], [0.0, 0.0, 0.0]], dtype=dtype)
    found = Normalised()(vectors)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.norm(dim=1), torch.tensor([1.0, 0.0]))
    assert Normalised()(vectors.double()).dtype == torch.float64


def test_gradients_of_a_zero_vector_are_finite():
    vectors = torch.zeros(1, 4, requires_grad=True)
    Normalised()(vectors).sum().backward()
    assert vectors.grad.isfinite().all()


def test_unknown_networks_and_empty_embeddings_are_refused():
    with pytest.raises(ConfigError, match=r"unknown embedding network 'vgg'; known: r"):
        build_embedding_network("vgg", 8, 0)
    with pytest.raises(ConfigError, match="1 dimension or more, got 0"):
        build_embedding_network("tiny", 0, 0)

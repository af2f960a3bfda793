"""Offsets by group: what is predicted is what the network with phi in it returns."""

import pytest
import torch
from torch import nn

from metricopt.adapters.group_offsets import GroupOffsets, ShiftedByGroup
from metricopt.adapters.output_offsets import MeantAdapter
from metricopt.errors import ConfigError, ShapeError
from metricopt.reading.meaning import Meaning
from tests.metricopt.drawn import draw, seeded

GROUPS = torch.tensor([0, 2, 1, 1, 0, 2])
FORMS = {
    "logits": (nn.Identity(), draw(6, 4), Meaning("logits", "labels")),
    "layer": (nn.Linear(5, 4), draw(6, 5), Meaning("logits", "labels")),
    "shares": (
        nn.Softmax(1),
        draw(6, 4),
        Meaning("probabilities", "labels", link="softmax"),
    ),
    "flat": (nn.Flatten(0), draw(6, 1), Meaning("logits", "labels", flat=True)),
}


@pytest.fixture(params=FORMS)
def made(request):
    network, inputs, meaning = FORMS[request.param]
    outputs = 1 if meaning.flat else 4
    shifted = ShiftedByGroup(network, groups=3, outputs=outputs, meaning=meaning)
    return GroupOffsets(shifted), (inputs, GROUPS)


def test_it_predicts_what_the_network_with_phi_returns(made):
    adapter, inputs = made
    phi = torch.randn(2, adapter.size, generator=seeded(1))
    features = adapter.encode(inputs)
    predicted = adapter.predict(features, phi)
    for row, own in zip(phi, predicted, strict=True):
        with adapter.attach(row):
            applied = adapter.network(*inputs)
        merged = adapter.merged(row)(*inputs)
        assert torch.allclose(applied, own.view_as(applied), atol=1e-6)
        assert torch.allclose(merged, applied, atol=1e-6)
    untouched = adapter.network(*inputs)
    assert not torch.allclose(untouched, predicted[0].view_as(untouched))


def test_phi_of_zeros_leaves_outputs_as_they_are(made):
    adapter, inputs = made
    found = adapter.predict(adapter.encode(inputs), torch.zeros(1, adapter.size))[0]
    alone = adapter.network.network(inputs[0])
    assert torch.allclose(found.view_as(alone), alone, atol=1e-6)


def test_a_group_moves_by_its_own_offsets_alone(made):
    adapter, inputs = made
    features = adapter.encode(inputs)
    phi = torch.zeros(2, adapter.groups, adapter.outputs)
    phi[1, 2, 0] = 3
    untouched, moved = adapter.predict(features, phi.flatten(1))
    same = (untouched - moved).abs().amax(1) < 1e-6
    assert same.tolist() == [group != 2 for group in GROUPS.tolist()]


def test_rows_of_their_own_examples_are_as_those_of_shared_ones(made):
    adapter, inputs = made
    phi = torch.randn(2, adapter.size, generator=seeded(2))
    features = adapter.encode(inputs)
    twice = tuple(torch.cat([part, part]) for part in features)
    meant = MeantAdapter(adapter, adapter.meaning)
    for each in (adapter, meant):
        shared = each.predict(features, phi)
        assert torch.allclose(each.predict_grouped(twice, phi), shared, atol=1e-6)


def test_gradients_reach_the_offsets_of_groups_with_examples(made):
    adapter, (inputs, _) = made
    phi = torch.zeros(1, adapter.size, requires_grad=True)
    features = adapter.encode((inputs, torch.zeros(6, dtype=torch.long)))
    adapter.predict(features, phi).square().sum().backward()
    slopes = phi.grad.view(adapter.groups, -1)
    assert slopes[0].abs().sum() > 0
    assert not slopes[1:].any()


def test_other_groups_and_other_phi_are_refused(made):
    adapter, (inputs, _) = made
    with pytest.raises(ConfigError, match=r"groups must be in \[0, 2\], got 0 to 3"):
        adapter.encode((inputs, torch.tensor([0, 1, 2, 3, 0, 1])))
    features = adapter.encode((inputs, GROUPS))
    with pytest.raises(ShapeError, match=r"phi must have shape \[B, "):
        adapter.predict(features, torch.zeros(1, adapter.size + 1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"groups": 0, "outputs": 2}, "got groups=0 and outputs=2"),
        (
            {"groups": 2, "outputs": 2, "meaning": Meaning(layout="channels")},
            "one row of outputs per example",
        ),
    ],
)
def test_what_cannot_be_shifted_by_group_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        ShiftedByGroup(nn.Identity(), **settings)

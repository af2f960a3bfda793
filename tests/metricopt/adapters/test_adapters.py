"""What every adapter promises, on networks of several kinds."""

import copy
import re

import pytest
import torch
import torchvision
from timm import create_model

from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.film import FiLM
from metricopt.adapters.output_offsets import OutputOffsets
from metricopt.errors import ConfigError, ShapeError
from tests.metricopt import adapter_networks as networks
from tests.metricopt.drawn import seeded


def made(kind, *given, **settings):
    return lambda: networks.randomise(kind(*given, **settings))


def bias(**settings):
    return lambda network, inputs: DynamicBias(network, size=5, **settings)


def film(**settings):
    return lambda network, inputs: FiLM(network, inputs, **settings)


def offsets(adapt):
    return lambda network, inputs: OutputOffsets(adapt(network, inputs), inputs)


VECTOR, IMAGE, LARGE = (6,), (3, 8, 8), (3, 32, 32)
RESNET, DYNAMIC = made(networks.ResNet), made(networks.Dynamic)
RESNET18 = made(torchvision.models.resnet18, weights=None, num_classes=4)
TIMM = made(create_model, "mobilenetv3_small_050", pretrained=False, num_classes=4)
DIRECT = film(sites=["stage2.bn2", "stem.1"], form="direct")
STAGES = film(sites="stages", size=16)
CASES = {
    "mlp": (networks.mlp, bias(), VECTOR),
    "mlp-later": (networks.mlp, bias(site="4"), VECTOR),
    "resnet": (RESNET, FiLM, IMAGE),
    "resnet-stages": (RESNET, film(sites="stages", size=9), IMAGE),
    "resnet-direct": (RESNET, DIRECT, IMAGE),
    "inplace": (made(networks.ResNet, inplace=True), film(sites=["stage2.bn2"]), IMAGE),
    "dynamic": (DYNAMIC, FiLM, IMAGE),
    "mlp-offsets": (networks.mlp, offsets(bias()), VECTOR),
    "resnet-offsets": (RESNET, offsets(FiLM), IMAGE),
    "dynamic-offsets": (DYNAMIC, offsets(FiLM), IMAGE),
    "dynamic-inside": (made(networks.DynamicInside), FiLM, IMAGE),
    "shapes": (made(networks.ShapeAware), FiLM, IMAGE),
    "shared-site": (made(networks.SharedSite), FiLM, IMAGE),
    "torchvision": (RESNET18, STAGES, LARGE),
    "timm": (TIMM, STAGES, LARGE),
}


@pytest.fixture(params=CASES, scope="module")
def case(request):
    make, adapt, shape = CASES[request.param]
    network = make().double()
    inputs = torch.randn(6, *shape, generator=seeded(1), dtype=torch.float64)
    return network, adapt(network, inputs), inputs


def _phi(adapter, rows):
    shape = (rows, adapter.size)
    return 0.3 * torch.randn(shape, generator=seeded(2), dtype=torch.float64)


def _looped(adapter, phi, inputs):
    """Outputs [B, N, C] of the user's own network, hooked with one phi at a time."""
    rows = []
    for row in phi:
        with adapter.attach(row), torch.no_grad():
            rows.append(adapter.network(inputs))
    outputs = torch.stack(rows)
    return outputs.unsqueeze(-1) if outputs.ndim == 2 else outputs


def _hooks(network):
    return sum(len(module._forward_hooks) for module in network.modules())


def test_network_is_frozen_and_in_evaluation_mode(case):
    network, adapter, _ = case
    assert adapter.network is network
    assert not any(module.training for module in network.modules())
    assert not any(weight.requires_grad for weight in network.parameters())


def test_zero_phi_is_the_network_bit_for_bit(case):
    network, adapter, inputs = case
    with torch.no_grad():
        plain = network.eval()(inputs)
        zero = torch.zeros(adapter.size, dtype=inputs.dtype)
        predicted = adapter.predict(adapter.encode(inputs), zero[None])[0]
        grouped = adapter.predict_grouped(adapter.encode(inputs), zero[None])[0]
        with adapter.attach(zero):
            attached = network(inputs)
    assert torch.equal(predicted.reshape(plain.shape), plain)
    assert torch.equal(grouped.reshape(plain.shape), plain)
    assert torch.equal(attached, plain)


def test_zero_phi_in_single_precision():
    network = RESNET18()
    inputs = torch.randn(3, 3, 32, 32, generator=seeded(1))
    adapter = FiLM(network, inputs)
    plain = network(inputs)
    assert torch.equal(
        adapter.predict(adapter.encode(inputs), torch.zeros(1, 128))[0], plain
    )


def test_predict_equals_hooks_looped_over_phi(case):
    _, adapter, inputs = case
    phi = _phi(adapter, 3)
    expected = _looped(adapter, phi, inputs)
    assert (expected[0] - expected[1]).abs().max() > 1e-3
    outputs = adapter.predict(adapter.encode(inputs), phi)
    torch.testing.assert_close(outputs, expected, rtol=1e-9, atol=1e-9)


def test_predict_grouped_equals_hooks_looped_over_phi(case):
    _, adapter, inputs = case
    phi = _phi(adapter, 3)
    pairs = zip(phi, inputs.split(2), strict=True)
    expected = torch.cat([_looped(adapter, row[None], part) for row, part in pairs])
    outputs = adapter.predict_grouped(adapter.encode(inputs), phi)
    torch.testing.assert_close(outputs, expected, rtol=1e-9, atol=1e-9)


def test_features_survive_many_calls(case):
    _, adapter, inputs = case
    phi = _phi(adapter, 2)
    features = adapter.encode(inputs)
    before = [value.clone() for value in features]
    first = adapter.predict(features, phi[:1])
    adapter.predict_grouped(features, phi)
    adapter.predict_grouped(features, phi[:1].requires_grad_())
    assert torch.equal(adapter.predict(features, phi[:1]), first)
    assert all(map(torch.equal, before, features))
    assert not any(value.requires_grad for value in features)


def test_gradient_equals_finite_differences(case):
    _, adapter, inputs = case
    features = adapter.encode(inputs[:2])
    phi = _phi(adapter, 2).requires_grad_()
    loss = adapter.predict(features, phi).mean((1, 2))
    (gradient,) = torch.autograd.grad(loss.sum(), phi)
    direction = torch.randn(phi.shape, generator=seeded(3), dtype=phi.dtype)
    step = 1e-7 * direction
    with torch.no_grad():
        up = adapter.predict(features, phi + step).mean((1, 2))
        down = adapter.predict(features, phi - step).mean((1, 2))
    expected = (up - down) / 2e-7
    found = (gradient * direction).sum(1)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_detach_leaves_no_trace(case):
    network, adapter, inputs = case
    state = copy.deepcopy(network.state_dict())
    plain = network(inputs)
    adapter.attach(_phi(adapter, 1)[0])
    assert not torch.equal(network(inputs), plain)
    assert _hooks(network) > 0
    adapter.detach()
    adapter.detach()
    assert torch.equal(network(inputs), plain)
    assert _hooks(network) == 0
    assert all(map(torch.equal, state.values(), network.state_dict().values()))


def test_predict_ignores_and_keeps_an_attached_phi(case):
    network, adapter, inputs = case
    phi = _phi(adapter, 2)
    expected = adapter.predict(adapter.encode(inputs), phi)
    with adapter.attach(phi[0]):
        attached = network(inputs)
        assert torch.equal(adapter.predict(adapter.encode(inputs), phi), expected)
        assert torch.equal(network(inputs), attached)
    assert _hooks(network) == 0


def test_attached_network_follows_an_optimizer():
    network = networks.randomise(networks.ResNet())
    inputs = torch.randn(4, 3, 8, 8, generator=seeded(1))
    adapter = FiLM(network, inputs, size=6)
    phi = torch.zeros(6, requires_grad=True)
    optimizer = torch.optim.SGD([phi], lr=0.1)
    adapter.attach(phi)
    before = network(inputs).square().mean()
    before.backward()
    optimizer.step()
    assert network(inputs).square().mean() < before
    adapter.detach()


def test_hooks_go_when_the_network_fails():
    network = networks.randomise(networks.Dynamic())
    adapter = FiLM(network, torch.randn(2, 3, 8, 8))
    with pytest.raises(RuntimeError):
        adapter.predict((torch.randn(2, 5, 8, 8),), torch.zeros(1, 128))
    assert _hooks(network) == 0


@pytest.mark.parametrize("size", [(5,), (2, 4), (0, 5), (1, 2, 5)])
def test_phi_of_another_shape(size):
    adapter = DynamicBias(networks.mlp(), size=5)
    features = adapter.encode(torch.randn(4, 6))
    message = re.escape(f"phi must have shape [B, 5], B >= 1, got {str(size)[:-1]}")
    for predict in (adapter.predict, adapter.predict_grouped):
        with pytest.raises(ShapeError, match=message):
            predict(features, torch.zeros(size))


def test_other_shape_errors():
    adapter = DynamicBias(networks.mlp(), size=5)
    with pytest.raises(ConfigError, match="encode some inputs first"):
        adapter.predict((torch.zeros(4, 12),), torch.zeros(1, 5))
    with pytest.raises(ShapeError, match="must hold an example, got \\(0, 6\\)"):
        adapter.encode(torch.zeros(0, 6))
    features = adapter.encode(torch.randn(4, 6))
    with pytest.raises(ShapeError, match="4 examples must be a multiple of the 3 rows"):
        adapter.predict_grouped(features, torch.zeros(3, 5))
    with pytest.raises(ShapeError, match="features must hold 1 tensors, got 2"):
        adapter.predict(features * 2, torch.zeros(3, 5))
    with pytest.raises(ShapeError, match=r"phi must have shape \[5\], got \(1, 5\)"):
        adapter.attach(torch.zeros(1, 5))


def test_no_examples_give_no_outputs():
    adapter = DynamicBias(networks.mlp(), size=5, example_input=torch.randn(1, 6))
    features = adapter.encode(torch.zeros(0, 6))
    assert adapter.predict(features, torch.zeros(3, 5)).shape == (3, 0, 3)
    assert adapter.predict_grouped(features, torch.zeros(3, 5)).shape == (3, 0, 3)


def test_training_after_inference_mode():
    inputs, phi = torch.randn(4, 6), torch.zeros(2, 5, requires_grad=True)
    network = networks.mlp()
    with torch.inference_mode():
        adapter = DynamicBias(network, size=5, example_input=inputs)
        adapter.predict(adapter.encode(inputs), phi)
    with torch.no_grad():
        features = adapter.encode(inputs)
    adapter.predict(features, phi).sum().backward()
    assert phi.grad is not None
    assert float(phi.grad.abs().min()) > 0

"""What every adapter promises, on networks of several kinds."""

import copy
from collections.abc import Callable

import pytest
import torch
import torchvision
from timm import create_model
from torch import Tensor, nn

from metricopt.adapters.base import Adapter
from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.film import FiLM
from metricopt.adapters.network_adapter import NetworkAdapter
from metricopt.adapters.output_offsets import OutputOffsets
from metricopt.errors import ConfigError, ShapeError
from tests.metricopt import adapter_networks as networks

Case = tuple[
    Callable[[], nn.Module], Callable[[nn.Module, Tensor], NetworkAdapter], tuple
]


def _timm() -> nn.Module:
    return create_model("mobilenetv3_small_050", pretrained=False, num_classes=4)


def _resnet18() -> nn.Module:
    return torchvision.models.resnet18(weights=None, num_classes=4)


CASES: dict[str, Case] = {
    "mlp": (networks.mlp, lambda net, x: DynamicBias(net, size=5), (6,)),
    "mlp-later": (
        networks.mlp,
        lambda net, x: DynamicBias(net, size=5, site="4"),
        (6,),
    ),
    "resnet": (lambda: networks.randomise(networks.ResNet()), FiLM, (3, 8, 8)),
    "resnet-stages": (
        lambda: networks.randomise(networks.ResNet()),
        lambda net, x: FiLM(net, x, sites="stages", size=9),
        (3, 8, 8),
    ),
    "resnet-direct": (
        lambda: networks.randomise(networks.ResNet()),
        lambda net, x: FiLM(net, x, sites=["stage2.bn2", "stem.1"], form="direct"),
        (3, 8, 8),
    ),
    "inplace": (
        lambda: networks.randomise(networks.ResNet(inplace=True)),
        lambda net, x: FiLM(net, x, sites=["stage2.bn2"]),
        (3, 8, 8),
    ),
    "dynamic": (lambda: networks.randomise(networks.Dynamic()), FiLM, (3, 8, 8)),
    "mlp-offsets": (
        networks.mlp,
        lambda net, x: OutputOffsets(DynamicBias(net, size=5), x),
        (6,),
    ),
    "resnet-offsets": (
        lambda: networks.randomise(networks.ResNet()),
        lambda net, x: OutputOffsets(FiLM(net, x), x),
        (3, 8, 8),
    ),
    "dynamic-offsets": (
        lambda: networks.randomise(networks.Dynamic()),
        lambda net, x: OutputOffsets(FiLM(net, x), x),
        (3, 8, 8),
    ),
    "dynamic-inside": (
        lambda: networks.randomise(networks.DynamicInside()),
        FiLM,
        (3, 8, 8),
    ),
    "shapes": (lambda: networks.randomise(networks.ShapeAware()), FiLM, (3, 8, 8)),
    "shared-site": (
        lambda: networks.randomise(networks.SharedSite()),
        FiLM,
        (3, 8, 8),
    ),
    "torchvision": (
        lambda: networks.randomise(_resnet18()),
        lambda net, x: FiLM(net, x, sites="stages", size=16),
        (3, 32, 32),
    ),
    "timm": (
        lambda: networks.randomise(_timm()),
        lambda net, x: FiLM(net, x, sites="stages", size=16),
        (3, 32, 32),
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[nn.Module, NetworkAdapter, Tensor]:
    make, adapt, shape = CASES[request.param]
    network = make().double()
    inputs = torch.randn(6, *shape, generator=_generator(1), dtype=torch.float64)
    return network, adapt(network, inputs), inputs


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _phi(adapter: Adapter, rows: int) -> Tensor:
    shape = (rows, adapter.size)
    return 0.3 * torch.randn(shape, generator=_generator(2), dtype=torch.float64)


def _looped(adapter: NetworkAdapter, phi: Tensor, inputs: Tensor) -> Tensor:
    """Outputs [B, N, C] of the user's own network, hooked with one phi at a time."""
    rows = []
    for row in phi:
        with adapter.attach(row), torch.no_grad():
            rows.append(adapter.network(inputs))
    outputs = torch.stack(rows)
    return outputs.unsqueeze(-1) if outputs.ndim == 2 else outputs


def _hooks(network: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in network.modules())


def test_zero_phi_is_the_network_bit_for_bit(case) -> None:
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


def test_zero_phi_in_single_precision() -> None:
    network = networks.randomise(_resnet18())
    inputs = torch.randn(3, 3, 32, 32, generator=_generator(1))
    adapter = FiLM(network, inputs)
    plain = network(inputs)
    assert torch.equal(
        adapter.predict(adapter.encode(inputs), torch.zeros(1, 128))[0], plain
    )


def test_predict_equals_hooks_looped_over_phi(case) -> None:
    _, adapter, inputs = case
    phi = _phi(adapter, 3)
    expected = _looped(adapter, phi, inputs)
    assert (expected[0] - expected[1]).abs().max() > 1e-3
    outputs = adapter.predict(adapter.encode(inputs), phi)
    torch.testing.assert_close(outputs, expected, rtol=1e-9, atol=1e-9)


def test_predict_grouped_equals_hooks_looped_over_phi(case) -> None:
    _, adapter, inputs = case
    phi = _phi(adapter, 3)
    expected = torch.cat(
        [
            _looped(adapter, row[None], part)
            for row, part in zip(phi, inputs.split(2), strict=True)
        ]
    )
    outputs = adapter.predict_grouped(adapter.encode(inputs), phi)
    torch.testing.assert_close(outputs, expected, rtol=1e-9, atol=1e-9)


def test_features_survive_many_calls(case) -> None:
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


def test_gradient_equals_finite_differences(case) -> None:
    _, adapter, inputs = case
    features = adapter.encode(inputs[:2])
    phi = _phi(adapter, 2).requires_grad_()
    loss = adapter.predict(features, phi).mean((1, 2))
    (gradient,) = torch.autograd.grad(loss.sum(), phi)
    direction = torch.randn(phi.shape, generator=_generator(3), dtype=phi.dtype)
    step = 1e-7 * direction
    with torch.no_grad():
        up = adapter.predict(features, phi + step).mean((1, 2))
        down = adapter.predict(features, phi - step).mean((1, 2))
    expected = (up - down) / 2e-7
    torch.testing.assert_close(
        (gradient * direction).sum(1), expected, rtol=1e-5, atol=1e-5
    )


def test_network_is_frozen_and_in_evaluation_mode(case) -> None:
    network, adapter, _ = case
    assert adapter.network is network
    assert not any(module.training for module in network.modules())
    assert not any(weight.requires_grad for weight in network.parameters())


def test_detach_leaves_no_trace(case) -> None:
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


def test_predict_ignores_and_keeps_an_attached_phi(case) -> None:
    network, adapter, inputs = case
    phi = _phi(adapter, 2)
    expected = adapter.predict(adapter.encode(inputs), phi)
    with adapter.attach(phi[0]):
        attached = network(inputs)
        assert torch.equal(adapter.predict(adapter.encode(inputs), phi), expected)
        assert torch.equal(network(inputs), attached)
    assert _hooks(network) == 0


def test_attached_network_follows_an_optimizer() -> None:
    network = networks.randomise(networks.ResNet())
    inputs = torch.randn(4, 3, 8, 8, generator=_generator(1))
    adapter = FiLM(network, inputs, size=6)
    phi = torch.zeros(6, requires_grad=True)
    optimizer = torch.optim.SGD([phi], lr=0.1)
    adapter.attach(phi)
    before = network(inputs).square().mean()
    before.backward()
    optimizer.step()
    assert network(inputs).square().mean() < before
    adapter.detach()


def test_hooks_go_when_the_network_fails() -> None:
    network = networks.randomise(networks.Dynamic())
    adapter = FiLM(network, torch.randn(2, 3, 8, 8))
    with pytest.raises(RuntimeError):
        adapter.predict((torch.randn(2, 5, 8, 8),), torch.zeros(1, 128))
    assert _hooks(network) == 0


@pytest.mark.parametrize("size", [(5,), (2, 4), (0, 5), (1, 2, 5)])
def test_phi_of_another_shape(size: tuple[int, ...]) -> None:
    adapter = DynamicBias(networks.mlp(), size=5)
    features = adapter.encode(torch.randn(4, 6))
    message = rf"phi must have shape \[B, 5\], B >= 1, got {str(size)[:-1]}"
    for predict in (adapter.predict, adapter.predict_grouped):
        with pytest.raises(ShapeError, match=message.replace("(", r"\(")):
            predict(features, torch.zeros(size))


def test_other_shape_errors() -> None:
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


def test_no_examples_give_no_outputs() -> None:
    adapter = DynamicBias(networks.mlp(), size=5, example_input=torch.randn(1, 6))
    features = adapter.encode(torch.zeros(0, 6))
    assert adapter.predict(features, torch.zeros(3, 5)).shape == (3, 0, 3)
    assert adapter.predict_grouped(features, torch.zeros(3, 5)).shape == (3, 0, 3)


def test_training_after_inference_mode() -> None:
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

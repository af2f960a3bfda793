"""Networks without a layer within reach of hooks get output offsets alone."""

import pytest
import sklearn.metrics as sk
import torch
from torch import Tensor, nn

import metricopt
from metricopt import ConfigError
from tests.robustness.forms import Rows, made
from tests.robustness.test_input_forms import LABELS, PIXELS, found_on


class Fixed(nn.Module):
    """A function without weights: brightness of ten parts of an image."""

    def forward(self, pixels: Tensor) -> Tensor:
        return pixels[:, :60].reshape(-1, 10, 6).sum(2)


class Wrapped(nn.Module):
    """Calls another network."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, pixels: Tensor) -> Tensor:
        return self.inner(pixels)


def scripted() -> nn.Module:
    return torch.jit.script(nn.Sequential(made(nn.Linear, 64, 10)).eval())


def traced() -> nn.Module:
    return torch.jit.trace(made(Rows), PIXELS[:2])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", ["function", "wrapped", "wrapped traced"])
def test_the_number_is_that_of_the_applied_network(kind: str) -> None:
    model = {
        "function": Fixed,
        "wrapped": lambda: Wrapped(scripted()),
        "wrapped traced": lambda: Wrapped(traced()),
    }[kind]()

    def measured() -> float:
        with torch.no_grad():
            shares = model(PIXELS).double().softmax(1)
        return float(sk.log_loss(LABELS.numpy(), shares.numpy()))

    before = measured()
    found = found_on(model, (PIXELS, LABELS))
    assert found.phi.shape == (10,)
    assert "no layer that could be modulated" in found.summary()
    assert found.metric_before == pytest.approx(before, abs=1e-5)
    found.apply()
    assert found.metric_after == pytest.approx(measured(), abs=1e-5)
    found.remove()
    assert measured() == before


def test_a_layer_of_ones_own_choice_must_be_there() -> None:
    with pytest.raises(ConfigError, match="unknown site 'head' in Fixed"):
        metricopt.auto_adapter(Fixed(), PIXELS[:4], sites=["head"])
    with pytest.raises(ConfigError, match=r"Fixed has no layer .* make an adapter by"):
        metricopt.auto_adapter(Fixed(), PIXELS[:4], offsets=False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", [scripted, traced])
def test_a_scripted_network_is_refused_with_the_way_out(kind) -> None:
    with pytest.raises(ConfigError, match=r"scripted or traced, .* wrap it in an nn.M"):
        found_on(kind(), (PIXELS, LABELS))

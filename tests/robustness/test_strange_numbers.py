"""Networks of half precision, masked classes, routers, squeezes: they simply work."""

import pytest
import torch
from torch import Tensor, nn

from metricopt import ConfigError, DynamicBias, Finetuned, FinetuneOptions, finetune
from metricopt.adapters.sites import require_all
from metricopt.algorithm1.meta_preparation import suited_recipe
from metricopt.algorithm1.recipe import RECIPE
from metricopt.methods.result import Budget
from tests.metricopt.digits_network import pretrained
from tests.metricopt.improving import (
    OBSERVE,
    TRAIN,
    found_by_default,
    improve,
    macro_f1,
)

PIXELS, LABELS = (part[:200] for part in OBSERVE)
PIXELS = PIXELS.flatten(1)
QUICK = FinetuneOptions(queries=14, progress=False)


@pytest.fixture(scope="module")
def full() -> Finetuned:
    return found_by_default(QUICK.queries)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_gains_what_full_precision_gains(full, dtype) -> None:
    splits = {
        name: (inputs.to(dtype), labels)
        for name, (inputs, labels) in (("train", TRAIN), ("observe", OBSERVE))
    }
    found = improve(pretrained(1).to(dtype), QUICK, **splits)
    assert found.metric_before == pytest.approx(full.metric_before, abs=0.01)
    gain, other = (one.metric_after - one.metric_before for one in (found, full))
    assert other > 0.03
    assert gain > other / 2


class Masked(nn.Module):
    """Digits with an eleventh class that is masked in all examples, or in some."""

    def __init__(self, *, all_of_them: bool) -> None:
        super().__init__()
        self.inner, self.all = pretrained(1), all_of_them

    def forward(self, x: Tensor) -> Tensor:
        logits = self.inner(x)
        extra = logits.amin(1, keepdim=True) - 1
        hidden = torch.ones_like(extra, dtype=torch.bool)
        if not self.all:
            hidden = x.flatten(1).sum(1, keepdim=True) > 20
        return torch.cat([logits, extra.masked_fill(hidden, -torch.inf)], 1)


@pytest.mark.parametrize("all_of_them", [True, False])
def test_a_masked_class_is_not_predicted_and_does_no_harm(full, all_of_them) -> None:
    found = improve(Masked(all_of_them=all_of_them), QUICK)
    assert found.metric_before == pytest.approx(full.metric_before)
    assert found.metric_after > found.metric_before + 0.02
    found.apply()
    outputs = found.adapter.network(OBSERVE[0])
    assert torch.isneginf(outputs[:, 10]).any()
    assert macro_f1(found.adapter.network, OBSERVE) == found.metric_after
    found.remove()


class Routed(nn.Module):
    """A network that sends each example to one of two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.head = (
            nn.Linear(64, 16),
            nn.Linear(64, 16),
            nn.Linear(16, 10),
        )

    def forward(self, x: Tensor) -> Tensor:
        first, out = x[:, 20] > 0.5, x.new_zeros(len(x), 16)
        out[first], out[~first] = self.a(x[first]), self.b(x[~first])
        return self.head(out.relu())


def routed(**settings) -> Finetuned:
    torch.manual_seed(0)
    split = (PIXELS, LABELS)
    loss, options = nn.CrossEntropyLoss(), FinetuneOptions(progress=False)
    return finetune(
        Routed(),
        train=split,
        observe=split,
        loss=loss,
        metric="mcr",
        options=options.changed(**settings),
    )


@pytest.mark.parametrize("method", ["auto", "guided-cma"])
def test_a_layer_of_some_examples_is_not_the_one_that_is_modulated(method) -> None:
    found = routed(method=method, queries=20)
    features = found.adapter.encode(PIXELS)
    phi = torch.randn(3, found.adapter.size)
    together = found.adapter.predict_grouped(tuple(part[:60] for part in features), phi)
    for row, part in enumerate(torch.arange(60).split(20)):
        one = found.adapter.predict(
            tuple(p[part] for p in features), phi[row : row + 1]
        )
        torch.testing.assert_close(together[row], one[0])


def test_a_site_that_sees_some_examples_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"must see every example, got \d+ of \d+"):
        routed(sites=["a"])
    adapter = DynamicBias(Routed(), size=4, site="a", example_input=PIXELS[:1])
    with pytest.raises(ConfigError, match="no router or mask sends only some"):
        adapter.predict_grouped(adapter.encode(PIXELS[:9]), torch.zeros(3, 4))


@pytest.mark.parametrize(("seen", "batch"), [(6, 6), (12, 6), (0, 6), (0, 0)])
def test_a_site_may_see_examples_several_times(seen, batch) -> None:
    require_all(seen, batch)
    with pytest.raises(ConfigError, match="got 5 of 7"):
        require_all(5, 7)


class Squeezing(nn.Module):
    """A network that returns [N], and a number for one example."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).squeeze()


@pytest.mark.parametrize("metric", ["mcr", lambda outputs, targets: 0.5])
def test_one_observed_example_may_be_squeezed(metric) -> None:
    targets = (LABELS > 4).float()
    found = finetune(
        Squeezing(),
        train=(PIXELS, targets),
        observe=(PIXELS[:1], targets[:1]),
        loss=nn.BCEWithLogitsLoss(),
        metric=metric,
        higher_is_better=None if metric == "mcr" else True,
        progress=False,
    )
    assert not found.phi.any()
    assert found.metric_before == pytest.approx(found.metric_after)


class WithConstant(nn.Module):
    """A network whose forward makes a tensor of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(64, 16), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.tensor([1.0] * 9 + [2.0])
        return self.head(self.body(x).relu()) * weights


def test_a_forward_may_make_a_tensor() -> None:
    network = WithConstant().eval()
    expected = network(PIXELS).detach()
    adapter = DynamicBias(network, size=4, example_input=PIXELS[:4])
    assert adapter.is_cut
    outputs = adapter.predict(adapter.encode(PIXELS), torch.zeros(1, 4))
    torch.testing.assert_close(outputs[0], expected)
    assert not [name for name in vars(network) if "constant" in name]


def test_a_single_step_is_enough_for_the_method_of_the_paper() -> None:
    options = FinetuneOptions("metricopt", steps=1, queries=60, progress=False)
    found = improve(pretrained(1), options)
    assert found.spent.queries <= 60
    rollout = suited_recipe(RECIPE, Budget(60, 1)).rollout
    assert (rollout.steps, rollout.observations) == (2, 2)

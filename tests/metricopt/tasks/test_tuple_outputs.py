"""A network of several outputs, from the forward pass to losses and metrics."""

import pytest
import torch
from torch import Tensor, nn

import metricopt
from metricopt.adapters.film import FiLM
from metricopt.reading.callables import make_metric
from metricopt.tasks.encoding import encode
from metricopt.tasks.examples import LazySplit
from metricopt.tasks.judge import Judge
from metricopt.tasks.network_task import Drawing, NetworkTask
from metricopt.tasks.sampling import NaturalSampler
from tests.metricopt.adapter_networks import randomise
from tests.metricopt.drawn import draw, seeded


class Detector(nn.Module):
    """One score and one box [4] per image, and the mean of the image, without phi."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.score, self.box = nn.Linear(6, 1), nn.Linear(6, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        pooled = torch.relu(self.norm(self.conv(x))).mean((2, 3))
        return self.score(pooled)[:, 0], self.box(pooled), x.mean((1, 2, 3))


class Untraceable(Detector):
    """The same, with control flow that depends on the data."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return super().forward(x if float(x.sum()) < 1e9 else -x)


IMAGES = draw(12, 3, 8, 8)
TARGETS = [{"here": place % 2, "box": draw(4, seed=place)} for place in range(12)]


def loss(outputs: tuple[Tensor, ...], targets: list[dict]) -> Tensor:
    here = torch.tensor([float(target["here"]) for target in targets])
    boxes = torch.stack([target["box"] for target in targets])
    score = nn.functional.binary_cross_entropy_with_logits(outputs[0][:, 0], here)
    return score + (outputs[1] - boxes).square().mean()


def close_boxes(outputs: tuple[Tensor, ...], targets: list[dict]) -> float:
    boxes = torch.stack([target["box"] for target in targets])
    return float(((outputs[1] - boxes).abs().mean(1) < 0.9).double().mean())


METRIC = make_metric(close_boxes, higher_is_better=True)


@pytest.fixture(params=[Detector, Untraceable])
def network(request):
    return randomise(request.param()).eval()


@pytest.fixture
def adapter(network):
    return FiLM(network, IMAGES[:2], size=5)


@pytest.fixture
def split():
    return LazySplit(list(zip(IMAGES, TARGETS, strict=True)))


def by_hand(adapter: FiLM, inputs: Tensor, phi: Tensor) -> tuple[Tensor, ...]:
    with adapter.attach(phi), torch.no_grad():
        score, box, mean = adapter.network(inputs)
    return score[:, None], box, mean[:, None]


def test_outputs_are_those_of_the_attached_network(adapter, split):
    assert adapter.is_cut == (type(adapter.network) is Detector)
    phi = 0.5 * draw(3, 5)
    judge = Judge(adapter, encode(adapter, split))
    found = judge.outputs(phi)
    assert [part.shape for part in found] == [(3, 12, 1), (3, 12, 4), (3, 12, 1)]
    for row in range(3):
        expected = by_hand(adapter, IMAGES, phi[row])
        for part, other in zip(found, expected, strict=True):
            torch.testing.assert_close(part[row], other)
    assert not torch.allclose(found[1][0], found[1][1])


def test_losses_and_costs_equal_a_loop_over_rows(adapter, split):
    sampler = NaturalSampler(12, 4)
    task = NetworkTask(
        adapter, loss, METRIC, train=split, observe=split, drawing=Drawing(sampler)
    )
    phi, index = 0.5 * draw(3, 5), sampler.draw(3, seeded())
    losses, costs = task.losses(phi, seeded()), task.observe(phi)
    assert len(costs.unique()) > 1
    for row in range(3):
        outputs = by_hand(adapter, IMAGES[index[row]], phi[row])
        chosen = [TARGETS[place] for place in index[row].tolist()]
        torch.testing.assert_close(losses[row], loss(outputs, chosen))
        whole = by_hand(adapter, IMAGES, phi[row])
        assert costs[row] == pytest.approx(1 - close_boxes(whole, TARGETS))
    weighted = phi.clone().requires_grad_()
    task.losses(weighted, seeded()).sum().backward()
    assert bool((weighted.grad.abs().sum(1) > 0).all())


def test_finetune_takes_it_all(network, split):
    found = metricopt.finetune(
        network,
        train=split,
        observe=split,
        loss=loss,
        metric=METRIC,
        options=metricopt.FinetuneOptions(
            "loss-only-dense", queries=24, steps=8, size=5, progress=False
        ),
    )
    assert found.metric_after >= found.metric_before
    found.apply()
    boxes = network(IMAGES)
    assert close_boxes(boxes, TARGETS) == pytest.approx(found.metric_after)

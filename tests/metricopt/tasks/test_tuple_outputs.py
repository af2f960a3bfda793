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
    score = nn.functional.binary_cross_entropy_with_logits(outputs[0], here)
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
        return adapter.network(inputs)


def test_outputs_are_those_of_the_attached_network(adapter, split):
    assert adapter.is_cut == (type(adapter.network) is Detector)
    phi = 0.5 * draw(3, 5)
    judge = Judge(adapter, encode(adapter, split))
    found = judge.outputs(phi)
    assert [part.shape for part in found] == [(3, 12), (3, 12, 4), (3, 12)]
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


class TwoHeads(nn.Module):
    """Scores of 3 classes [N, 3] and a value [N]; one head alone gives the value."""

    def __init__(self, *, both: bool = True) -> None:
        super().__init__()
        self.body, self.classes = nn.Linear(6, 5), nn.Linear(5, 3)
        self.value, self.both = nn.Linear(5, 1), both

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor] | Tensor:
        hidden = torch.relu(self.body(x))
        value = self.value(hidden)[:, 0]
        return (self.classes(hidden), value) if self.both else value


ROWS, VALUES = draw(40, 6), draw(40, seed=1)
AS_LIST = LazySplit([(row, {"v": v}) for row, v in zip(ROWS, VALUES, strict=True)])
OPTIONS = metricopt.FinetuneOptions(
    "random-search", queries=5, steps=2, no_harm=False, progress=False
)


@pytest.mark.parametrize(
    ("both", "split"), [(True, (ROWS, VALUES)), (True, AS_LIST), (False, AS_LIST)]
)
def test_a_loss_and_a_metric_get_values_as_the_network_returns_them(both, split):
    """[N] came as [N, 1], and was broadcast to [N, N] against targets [N]."""
    model, shapes = randomise(TwoHeads(both=both)).eval(), set()

    def errors(outputs, targets):
        values = outputs[1] if both else outputs
        if not isinstance(targets, Tensor):
            targets = torch.stack([target["v"] for target in targets])
        shapes.add(values.shape == targets.shape)
        return (values - targets).abs().mean()

    def mae(outputs, targets):
        return float(errors(outputs, targets))

    better = {"higher_is_better": False, "options": OPTIONS}
    given = {"train": split, "observe": split, "loss": errors, "metric": mae}
    found = metricopt.finetune(model, **given, **better)
    with torch.no_grad():
        assert found.metric_before == pytest.approx(mae(model(ROWS), VALUES))
    assert shapes == {True}


@pytest.mark.parametrize(
    ("both", "outputs"),
    [(True, r"\(float32 \[128, 3\], float32 \[128\]\)"), (False, r"float32 \[128\]")],
)
def test_messages_have_the_shapes_that_the_network_returns(both, outputs):
    targets = (VALUES > 0).float()

    def wrong(outputs, targets):
        return outputs[1] @ targets[:3, None, None]

    text = rf"a scalar of outputs {outputs} and targets float32 \[128\], but raised"
    with pytest.raises(metricopt.LossError, match=text):
        metricopt.finetune(
            TwoHeads(both=both),
            train=(ROWS, targets),
            observe=(ROWS, targets),
            loss=wrong,
            metric=lambda outputs, targets: 0.5,
            higher_is_better=True,
            options=OPTIONS,
        )

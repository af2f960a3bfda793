"""A task of a network: cached features, own mini-batches, losses in one call."""

import copy

import pytest
import torch
from torch import nn

from metricopt.adapters import DynamicBias, FiLM
from metricopt.errors import MetricError
from metricopt.metrics import CallableMetric, make_metric
from metricopt.network_task import Judge, NetworkTask, batched_loss, encode
from metricopt.sampling import BalancedSampler, NaturalSampler, Sampler, Split
from tests.metricopt import adapter_networks as networks


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def labels(*shape, classes=3, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(classes, shape, generator=generator)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


TRAIN = Split(draw(40, 6), labels(40))
OBSERVE = Split(draw(25, 6, seed=2), labels(25, seed=3))


@pytest.fixture
def network():
    return networks.mlp()


@pytest.fixture
def adapter(network):
    return DynamicBias(network, size=5)


def task_of(adapter, *, loss=None, metric="mcr", sampler=None):
    return NetworkTask(
        adapter,
        loss or nn.CrossEntropyLoss(),
        make_metric(metric) if isinstance(metric, str) else metric,
        train=TRAIN,
        observe=OBSERVE,
        sampler=sampler,
    )


def judge_of(adapter, metric, split):
    return Judge(adapter, metric, encode(adapter, split.inputs), split.targets)


def test_losses_equal_a_loop_over_rows_and_their_own_batches(adapter):
    sampler = BalancedSampler(TRAIN.targets, 9)
    task, phi = task_of(adapter, sampler=sampler), draw(4, 5)
    losses = task.losses(phi, seeded())
    index = sampler.draw(4, seeded())
    for row in range(4):
        features = adapter.encode(TRAIN.inputs[index[row]])
        outputs = adapter.predict(features, phi[row : row + 1])[0]
        expected = nn.functional.cross_entropy(outputs, TRAIN.targets[index[row]])
        torch.testing.assert_close(losses[row], expected)
    assert task.loss_evaluations == 4
    assert task.queries == 0


def test_losses_are_differentiable_row_by_row(adapter):
    task = task_of(adapter)
    phi = draw(3, 5).requires_grad_()
    losses = task.losses(phi, seeded())
    (gradient,) = torch.autograd.grad(losses[1], phi)
    assert gradient[1].abs().sum() > 0
    assert gradient[[0, 2]].abs().sum() == 0


def test_costs_are_those_of_the_metric_on_the_observe_split(adapter):
    task, phi = task_of(adapter, metric="top-1"), 20 * draw(4, 5)
    outputs = adapter.predict(adapter.encode(OBSERVE.inputs), phi)
    hits = (outputs.argmax(2) == OBSERVE.targets).double().mean(1)
    costs = task.observe(phi)
    assert len(costs.unique()) > 1
    torch.testing.assert_close(costs, 1.0 - hits)
    assert costs.dtype == torch.float64
    assert task.queries == 4


def test_costs_on_train_are_those_of_one_part_as_large_as_the_observe_split(adapter):
    task, phi = task_of(adapter, metric="top-1"), 20 * draw(4, 5)
    outputs = adapter.predict(adapter.encode(TRAIN.inputs), phi)
    misses = (outputs.argmax(2) != TRAIN.targets).double()
    part = torch.randperm(40, generator=seeded())[:25]
    costs = task.observe_train(phi, seeded())
    torch.testing.assert_close(costs, misses[:, part].mean(1))
    assert not torch.equal(costs, task.observe_train(phi, seeded(1)))
    assert task.queries == 8


def test_without_phi_the_task_is_the_pre_trained_network(network, adapter):
    task = task_of(adapter)
    with torch.no_grad():
        expected = copy.deepcopy(network).eval()(OBSERVE.inputs)
    torch.testing.assert_close(task.observed.outputs(torch.zeros(1, 5))[0], expected)


def test_the_network_stays_as_it_was(network, adapter):
    before = copy.deepcopy(network.state_dict())
    task, phi = task_of(adapter), draw(2, 5).requires_grad_()
    task.losses(phi, seeded()).sum().backward()
    task.observe(phi)
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(weight.grad is None for weight in network.parameters())


def test_the_judge_is_the_same_however_many_rows_fit_in_a_pass(adapter, monkeypatch):
    phi = draw(7, 5)
    judge = judge_of(adapter, make_metric("mcr"), OBSERVE)
    expected = judge.values(phi)
    for examples in (1, 60, 175):
        monkeypatch.setattr("metricopt.network_task.EXAMPLES_PER_PASS", examples)
        assert torch.equal(judge.values(phi), expected)


class Recorder:
    """An adapter whose outputs are the first feature plus phi; it notes its passes."""

    def __init__(self):
        self.passes = []

    def predict(self, features, phi):
        examples = {len(part) for part in features}
        self.passes.append((len(phi), *examples))
        return features[0].flatten(1).sum(1)[None, :, None] + phi[:, None]


def passes_of(features, phi):
    recorder, targets = Recorder(), torch.zeros_like(features[0].flatten(1)[:, 0])
    outputs = Judge(recorder, make_metric("mcr"), features, targets).outputs(phi)
    if outputs.device.type == "cpu":
        whole = Recorder().predict(features, phi)
        torch.testing.assert_close(outputs, whole)
    return recorder.passes


@pytest.mark.parametrize(
    ("rows", "limit", "expected"),
    [
        # The maps of an example have 4 * 3 * 3 + 2 * 2 = 40 numbers.
        (1, 10_000, [(1, 25)]),
        (1, 1_000, [(1, 25)]),
        (1, 999, [(1, 24), (1, 1)]),
        (3, 3_000, [(3, 25)]),
        (3, 2_200, [(2, 25), (1, 25)]),
        (2, 800, [(1, 20), (1, 20), (1, 5), (1, 5)]),
        (7, 40, [(1, 1)] * 175),
        (1, 1, [(1, 1)] * 25),
    ],
)
def test_feature_maps_are_judged_in_passes_of_so_many_numbers(
    monkeypatch, rows, limit, expected
):
    monkeypatch.setattr("metricopt.network_task.MAP_NUMBERS_PER_PASS", limit)
    features = (draw(25, 4, 3, 3), draw(25, 2, 2, seed=1), draw(25, 9, seed=2))
    assert passes_of(features, draw(rows, 2)) == expected


def test_vectors_and_small_maps_are_judged_in_passes_of_so_many_examples():
    features = (draw(9_000, 90), draw(9_000, 2, 3))
    assert passes_of(features, draw(1, 2)) == [(1, 9_000)]
    assert passes_of(features, draw(2, 2)) == [(1, 9_000), (1, 9_000)]
    assert passes_of(features[:1], draw(2, 2)) == [(2, 8_192), (2, 808)]


def test_an_accelerator_is_given_as_many_examples_however_large_their_maps():
    features = (torch.empty(100, 64, 32, 32, device="meta"),)
    assert passes_of(features, torch.empty(8, 2, device="meta")) == [(8, 100)]


def test_a_network_gives_the_same_outputs_in_passes_of_any_size(monkeypatch):
    network = networks.randomise(networks.ResNet())
    inputs, phi = draw(11, 3, 8, 8), 0.3 * draw(3, 6)
    adapter = FiLM(network, inputs, size=6)
    assert adapter.is_cut
    judge = judge_of(adapter, make_metric("mcr"), Split(inputs, labels(11)))
    expected = adapter.predict(judge.features, phi)
    assert not torch.equal(expected[0], expected[1])
    for numbers in (1, 5_000, 10**9):
        monkeypatch.setattr("metricopt.network_task.MAP_NUMBERS_PER_PASS", numbers)
        torch.testing.assert_close(judge.outputs(phi), expected)


def test_losses_in_parts_have_the_gradients_of_the_whole(monkeypatch):
    network = networks.randomise(networks.ResNet())
    inputs, start = draw(11, 3, 8, 8), 0.3 * draw(3, 6)
    adapter = FiLM(network, inputs, size=6)
    task = NetworkTask(
        adapter,
        nn.CrossEntropyLoss(),
        make_metric("mcr"),
        train=Split(inputs, labels(11)),
        observe=Split(inputs, labels(11)),
        sampler=NaturalSampler(11, 5),
    )
    found = {}
    for numbers in (10**9, 1):
        monkeypatch.setattr("metricopt.network_task.MAP_NUMBERS_PER_PASS", numbers)
        phi = torch.nn.Parameter(start.clone())
        losses = task.losses(phi, torch.Generator().manual_seed(0))
        (losses * torch.tensor([1.0, 2.0, -3.0])).sum().backward()
        found[numbers] = losses.detach(), phi.grad
    whole, parts = found.values()
    assert whole[1].abs().min() > 0
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other)


def test_a_failing_metric_says_where(adapter, monkeypatch):
    def fails_when_large(outputs, targets):
        return 2.0 if outputs.abs().max() > 50 else 0.5

    monkeypatch.setattr("metricopt.network_task.EXAMPLES_PER_PASS", 50)
    metric = CallableMetric(fails_when_large, "picky", higher_is_better=True)
    task, phi = task_of(adapter, metric=metric), draw(5, 5)
    phi[3] *= 1e4
    with pytest.raises(MetricError, match="'picky' returned 2, outside its") as caught:
        task.observe(phi)
    assert caught.value.__notes__ == ["while evaluating rows 2 to 4"]
    assert task.queries == 0


@pytest.mark.parametrize("limit", [("EXAMPLES_ENCODED", 7), ("NUMBERS_ENCODED", 42)])
def test_encoding_in_chunks_changes_nothing(adapter, monkeypatch, limit):
    whole = encode(adapter, TRAIN.inputs)
    chunks, encode_chunk = [], adapter.encode

    def recorded(inputs):
        chunks.append(len(inputs))
        return encode_chunk(inputs)

    monkeypatch.setattr(adapter, "encode", recorded)
    monkeypatch.setattr(f"metricopt.network_task.{limit[0]}", limit[1])
    parts = encode(adapter, TRAIN.inputs)
    assert chunks == [7, 7, 7, 7, 7, 5]
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other)
        assert not one.requires_grad


def test_a_sampler_of_the_user_is_used(adapter):
    class FirstOnly(Sampler):
        def draw(self, rows, generator):
            return torch.zeros(rows, self.batch_size, dtype=torch.long)

    task = task_of(adapter, sampler=FirstOnly(2))
    loss = task.losses(torch.zeros(1, 5), seeded())
    outputs = adapter.predict(adapter.encode(TRAIN.inputs[:1]), torch.zeros(1, 5))[0]
    expected = nn.functional.cross_entropy(outputs, TRAIN.targets[:1])
    torch.testing.assert_close(loss[0], expected)


class LabelTwice(nn.CrossEntropyLoss):
    """Overrides what the loss means: it must not be taken for its parent."""

    def forward(self, outputs, targets):
        return 2 * super().forward(outputs, targets).mean()


def ignoring(targets):
    targets = targets.clone()
    targets[0, :3] = -100
    targets[1, 1] = -100
    return targets


OUTPUTS, TARGETS, BINARY = draw(4, 8, 3), labels(4, 8), labels(4, 8, classes=2)
LOSSES = {
    "cross-entropy": (nn.CrossEntropyLoss(), OUTPUTS, TARGETS),
    "smoothed": (nn.CrossEntropyLoss(label_smoothing=0.1), OUTPUTS, TARGETS),
    "ignored": (nn.CrossEntropyLoss(), OUTPUTS, ignoring(TARGETS)),
    "class-weights": (
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 5.0])),
        OUTPUTS,
        TARGETS,
    ),
    "summed": (nn.CrossEntropyLoss(reduction="sum"), OUTPUTS, TARGETS),
    "probabilities": (nn.CrossEntropyLoss(), OUTPUTS, draw(4, 8, 3).softmax(2)),
    "pixels": (nn.CrossEntropyLoss(), draw(4, 8, 3, 2, 2), labels(4, 8, 2, 2)),
    "binary": (nn.BCEWithLogitsLoss(), OUTPUTS[..., :1], BINARY[..., None].float()),
    "multi-label": (nn.BCEWithLogitsLoss(), OUTPUTS, labels(4, 8, 3, classes=2) * 1.0),
    "positive-weight": (
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.0])),
        OUTPUTS[..., :1],
        BINARY[..., None].float(),
    ),
    "positive-weights": (
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.0, 1.0, 0.5])),
        OUTPUTS,
        labels(4, 8, 3, classes=2) * 1.0,
    ),
    "label-weights": (
        nn.BCEWithLogitsLoss(weight=torch.tensor([3.0, 1.0, 0.5])),
        OUTPUTS,
        labels(4, 8, 3, classes=2) * 1.0,
    ),
    "subclass": (LabelTwice(), OUTPUTS, TARGETS),
    "margin": (nn.MultiMarginLoss(), OUTPUTS, TARGETS),
    "function": (nn.functional.cross_entropy, OUTPUTS, TARGETS),
}


@pytest.mark.parametrize("name", LOSSES)
def test_batched_losses_equal_one_call_per_row(name):
    loss, outputs, targets = LOSSES[name]
    expected = [loss(row, label) for row, label in zip(outputs, targets, strict=True)]
    found = batched_loss(loss)(outputs, targets)
    assert found.shape == (4,)
    torch.testing.assert_close(found, torch.stack(expected))


def test_single_logits_may_have_integer_labels_without_a_class_axis():
    loss, logits = nn.BCEWithLogitsLoss(), OUTPUTS[..., :1]
    expected = batched_loss(loss)(logits, BINARY[..., None].float())
    torch.testing.assert_close(batched_loss(loss)(logits, BINARY), expected)


def test_the_loss_of_the_caller_is_not_changed():
    loss = nn.CrossEntropyLoss()
    batched_loss(loss)(OUTPUTS, TARGETS)
    assert loss.reduction == "mean"


def test_a_loss_may_bring_its_own_batched_form():
    class Constant:
        def __call__(self, outputs, targets):
            raise AssertionError("the batched form is to be used")

        def row_losses(self, outputs, targets):
            return outputs.mean((1, 2))

    found = batched_loss(Constant())(OUTPUTS, TARGETS)
    torch.testing.assert_close(found, OUTPUTS.mean((1, 2)))

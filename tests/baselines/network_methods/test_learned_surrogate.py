"""The learned surrogate: its set network, its sets, its accounting, and its result."""

import pytest
import torch
from scipy.stats import spearmanr

from baselines.learned_losses.set_surrogate import (
    SetSurrogate,
    agreement,
    enrich,
    metric_costs,
)
from baselines.network_methods.learned_surrogate import (
    HELD_OUT_BATCHES,
    LearnedSurrogate,
)
from baselines.training.batches import SampledBatches
from baselines.training.optimization import Training
from baselines.validation import Validation
from metricopt.metrics.base import to_cost
from metricopt.metrics.counted import F1
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric
from metricopt.tasks.sampling import Split

TRAINING = Training(epochs=8, learning_rate=0.01)


class CountedF1(F1):
    """F1 that counts the rows it is asked for, by number of examples."""

    def __init__(self):
        self.rows = {}

    def values(self, outputs, targets):
        self.rows[len(targets)] = self.rows.get(len(targets), 0) + len(outputs)
        return super().values(outputs, targets)


def run(method, network, data, *, metric, training=TRAINING):
    return method.train(
        network,
        SampledBatches(data.train, 32, balanced=True),
        Validation(metric, data.observe),
        training=training,
        generator=make_generator("learned"),
    )


@pytest.mark.parametrize("name", ["f1", "mcr", "jaccard", "g-mean"])
def test_descends_the_learned_loss_from_scratch(name, network, data):
    metric = make_metric(name)
    result = run(LearnedSurrogate(), network, data, metric=metric)
    reached = metric.value(result.predict(data.test.inputs), data.test.targets)
    assert reached > 0.9 if metric.higher_is_better else reached < 0.06
    assert result.notes["rank_correlation"] > 0.8
    observed = metric.value(result.predict(data.observe.inputs), data.observe.targets)
    cost = to_cost(metric, torch.tensor(observed, dtype=torch.float64))
    assert result.notes["observe_cost"] == pytest.approx(cost.item())


def test_queries_are_counted_by_kind(network, data):
    metric = CountedF1()
    method = LearnedSurrogate(warm_up=7, eager_share=0.25, eager_steps=3)
    training = Training(epochs=4, learning_rate=0.01)
    result = run(method, network, data, metric=metric, training=training)
    # 40 iterations, 10 of them eager; three sets are judged in each surrogate step.
    steps = 7 + 10 * 3 + 30 + HELD_OUT_BATCHES
    assert metric.rows == {32: 3 * steps, len(data.observe): 4}
    assert result.notes["batch_queries"] == 3 * steps
    assert result.notes["observe_queries"] == 4
    assert result.queries == 3 * steps + 4
    assert result.gradient_steps == 40


def test_set_network_ignores_order_and_reads_every_row_alone():
    torch.manual_seed(0)
    surrogate = SetSurrogate()
    labels, sets = torch.randint(2, (12,)).float(), torch.rand(4, 12)
    costs = surrogate(labels, sets)
    order = torch.randperm(12)
    assert costs.shape == (4,)
    assert ((costs > 0) & (costs < 1)).all()
    torch.testing.assert_close(surrogate(labels[order], sets[:, order]), costs)
    for row in range(4):
        torch.testing.assert_close(
            surrogate(labels, sets[row : row + 1])[0], costs[row]
        )
    # Twice the same examples are the same set mean.
    torch.testing.assert_close(surrogate(labels.repeat(2), sets.repeat(1, 2)), costs)


def test_enriched_sets_span_the_range_of_the_metric():
    torch.manual_seed(0)
    targets = torch.tensor([0, 1] * 50)
    observe = Split(torch.zeros(100, 1), targets)
    validation = Validation(make_metric("mcr"), observe)
    probabilities = torch.rand(100)
    sets = [enrich(targets.float(), probabilities) for _ in range(200)]
    for each in sets:
        assert each.shape == (3, 100)
        assert torch.equal(each[0], probabilities)
        assert ((each >= 0) & (each <= 1)).all()
        # Mixing with the labels moves every prediction towards its label.
        assert ((each[1] - targets).abs() <= (probabilities - targets).abs()).all()
    costs = torch.stack([metric_costs(validation, each, targets) for each in sets])
    assert costs.min() == 0
    assert costs.max() > 0.9
    assert (costs[:, 1] <= costs[:, 0]).all()


def test_costs_are_lower_is_better_and_half_counts_as_negative():
    probabilities = torch.tensor([[0.51, 0.5, 0.9], [0.1, 0.9, 0.9]])
    targets = torch.tensor([1, 0, 1])
    for name in ("f1", "mcr"):
        validation = Validation(make_metric(name), Split(torch.zeros(3, 1), targets))
        costs = metric_costs(validation, probabilities, targets)
        assert validation.queries == 2
        assert costs[0] == 0
        assert costs[1] > 0
        assert costs.dtype == probabilities.dtype


def test_agreement_equals_scipy_and_survives_constants():
    first = torch.tensor([3.0, 1.0, 2.0, 2.0])
    second = torch.tensor([1.0, 0.0, 4.0, 0.5])
    expected = spearmanr(first.numpy(), second.numpy()).statistic
    assert agreement(first, second) == pytest.approx(expected)
    assert agreement(first.view(2, 2), second.view(2, 2)) == pytest.approx(expected)
    assert agreement(first, torch.ones(4)) == 0.0

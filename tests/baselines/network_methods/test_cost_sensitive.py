"""Costs, weighted loss and threshold scan against loops; the grid on real data."""

import math

import hypothesis
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from baselines.network_methods.cost_sensitive import (
    CostSensitive,
    best_f_threshold,
    f_measure_costs,
    scaled_loss,
    weighted_cross_entropy,
)
from baselines.network_methods.surrogate_loss import SurrogateLoss
from baselines.training.batches import SampledBatches
from baselines.training.optimization import Training
from baselines.training.prediction import predict
from baselines.validation import Validation
from metricopt.errors import BudgetExceededError, ConfigError
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric
from tests.golden import assert_golden, load_golden

GOLDEN = list(load_golden("cost_sensitive_fmeasure"))
F1 = make_metric("f1")
TRAINING = Training(epochs=3, learning_rate=0.01)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case.name)
def test_golden(case):
    inputs, expected, tolerance = case.inputs, case.expected, case.tolerance
    assert case.settings["beta_squared"] == 1
    logits, costs = (
        inputs["logits"].requires_grad_(),
        f_measure_costs(case.settings["t"]),
    )
    assert_golden(costs.false_negative, expected["cost_false_negative"], tolerance)
    assert_golden(costs.false_positive, expected["cost_false_positive"], tolerance)
    threshold = costs.false_positive / sum(costs)
    assert_golden(threshold, expected["bayes_threshold"], tolerance)
    loss = weighted_cross_entropy(logits[:, None], inputs["labels"], costs)
    loss.backward()
    assert_golden(loss.detach(), expected["weighted_loss"], tolerance)
    assert_golden(logits.grad, expected["grad_logits"], tolerance)
    best = best_f_threshold(logits.detach().sigmoid(), inputs["labels"])
    assert_golden(best.f, expected["best_f_over_sample_thresholds"], tolerance)
    assert_golden(best.threshold, expected["smallest_best_threshold"], tolerance)


@hypothesis.settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 2.0]), st.integers(0, 1)),
        min_size=2,
        max_size=12,
    ).filter(lambda pairs: any(label for _, label in pairs))
)
def test_threshold_scan_equals_scikit_learn_at_every_score(pairs):
    scores, labels = zip(*pairs, strict=True)
    best = best_f_threshold(torch.tensor(scores), torch.tensor(labels))
    values = {
        cut: f1_score(labels, [int(s >= cut) for s in scores], zero_division=0)
        for cut in sorted(set(scores))
    }
    greatest = max(values.values())
    lowest = next(cut for cut, f in values.items() if f > greatest - 1e-12)
    assert best.f == pytest.approx(greatest)
    assert best.threshold == lowest
    assert best.evaluations == len(values)


def test_weighted_loss_equals_a_loop():
    logits, labels = [0.3, -1.2, 2.0], [1, 0, 0]
    costs = f_measure_costs(0.6)
    total = 0.0
    for z, y in zip(logits, labels, strict=True):
        p = 1 / (1 + math.exp(-z))
        total -= 1.4 * math.log(p) if y else 0.6 * math.log(1 - p)
    actual = weighted_cross_entropy(
        torch.tensor(logits, dtype=torch.float64)[:, None], torch.tensor(labels), costs
    )
    assert actual.item() == pytest.approx(total / 3, rel=1e-12)


def test_the_weighted_optimum_of_a_constant_sits_where_the_costs_say():
    # With costs a on positives of share q and b on negatives, the best constant
    # probability is a q / (a q + b (1 - q)).
    labels = torch.tensor([1, 0, 0, 0])
    logit = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([logit], lr=1.0)
    for _ in range(500):
        optimizer.zero_grad()
        weighted_cross_entropy(
            logit.expand(4)[:, None], labels, f_measure_costs(0.4)
        ).backward()
        optimizer.step()
    expected = 1.6 * 0.25 / (1.6 * 0.25 + 0.4 * 0.75)
    assert logit.sigmoid().item() == pytest.approx(expected, abs=1e-6)


def train(method, network, data, *, limit=None):
    return method.train(
        network,
        SampledBatches(data.train, 32, balanced=True),
        Validation(F1, data.observe, limit=limit),
        training=TRAINING,
        generator=make_generator("grid"),
    )


def test_grid_on_a_pretrained_network(network, data):
    pretrained = train(SurrogateLoss(), network, data).network
    grid = (0.3, 0.6, 0.9)
    result = train(CostSensitive(grid=grid), pretrained, data)
    observed = F1.value(result.predict(data.observe.inputs), data.observe.targets)
    assert observed == pytest.approx(result.notes["observe_f"])
    plain = predict(pretrained, data.observe.inputs)
    assert observed >= F1.value(plain, data.observe.targets)
    test = F1.value(result.predict(data.test.inputs), data.test.targets)
    assert test > 0.93
    assert result.notes["t"] in grid
    assert result.notes["passes"] == 3
    # Real-valued scores hardly tie: close to one threshold per example and scan.
    assert 3 * 100 < result.queries <= 3 * len(data.observe)
    assert result.gradient_steps == 3 * 3 * 10


def test_every_distinct_score_is_charged_before_f_is_known(network, data):
    method = CostSensitive(grid=(0.5,))
    scores = predict(train(method, network, data).network, data.observe.inputs)
    distinct = len(scores.unique())
    assert train(method, network, data, limit=distinct).queries == distinct
    with pytest.raises(BudgetExceededError, match=f"{distinct} more .* after 0 exceed"):
        train(method, network, data, limit=distinct - 1)


@pytest.mark.parametrize(("balanced", "factors"), [(True, (0.5, 1.5)), (False, (1, 1))])
def test_balanced_batches_are_undone_by_the_true_shares(data, balanced, factors):
    targets = torch.tensor([1, 0, 0, 0])
    examples = type(data.train)(torch.zeros(4, 30), targets)
    batches = SampledBatches(examples, 4, balanced=balanced)
    logits = torch.zeros(2, 1, dtype=torch.float64, requires_grad=True)
    scaled_loss(0.4, batches)(logits, torch.tensor([1, 0])).backward()
    expected = [-1.6 * factors[0] / 4, 0.4 * factors[1] / 4]
    assert logits.grad[:, 0].tolist() == pytest.approx(expected)


def test_an_empty_grid_is_named():
    with pytest.raises(ConfigError, match="at least one t, got none"):
        CostSensitive(grid=())

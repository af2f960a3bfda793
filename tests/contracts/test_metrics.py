"""What every registered metric promises, whatever it measures."""

import pytest
import torch

from metricopt.errors import ConfigError, DataError, MetricError, ShapeError
from metricopt.metrics.base import METRICS, from_cost, to_cost
from metricopt.reading.callables import make_metric
from tests.metricopt.metrics.checked import check_metric

EXPECTED = """
ap50 ap50-area ap50-coco aucpr f-macro f1 g-mean jaccard jaccard-legacy
jaccard-macro map@r mcr mean-recall recall recall@1 recall@10 recall@100 recall@1000
top-1 top-5 verification worst-class-error
"""


def test_the_package_walk_finds_every_metric():
    assert set(METRICS) >= set(EXPECTED.split())


# Others have other outputs and targets; see the tests of their own.
OTHERS = ("detections", "poses", "spans", "sentences")
CLASSED = [name for name in METRICS if METRICS.get(name).reads not in OTHERS]


@pytest.fixture(params=CLASSED)
def registered(request):
    return request.param


@pytest.fixture
def metric(registered):
    return make_metric(registered)


@pytest.fixture
def problem(metric):
    """Outputs [3, N, C] and targets [N], with the C the metric is made for.

    N is 40. It is 1,100 for metrics that read embeddings, two examples of each of 550
    classes, so that the 1,000 nearest are not all of them; verification, which compares
    pairs within folds, has 60 classes.
    """
    generator = torch.Generator().manual_seed(5)
    if metric.reads == "embeddings":
        classes = 60 if metric.name == "verification" else 550
        targets = torch.randperm(2 * classes, generator=generator) // 2
        return torch.randn(3, 2 * classes, classes, generator=generator), targets
    classes = 6 if metric.name.startswith("top-") else 1
    outputs = torch.randn(3, 40, classes, generator=generator)
    return outputs, torch.randint(max(classes, 2), (40,), generator=generator)


def perfect_outputs(outputs, targets):
    """The best outputs [N, C], of sure logits; as embeddings, one direction a class."""
    hot = torch.nn.functional.one_hot(targets, max(outputs.shape[2], 2)).float()
    return 20 * hot[:, -outputs.shape[2] :] - 10


def worst_outputs(metric, perfect, targets):
    """Outputs [N, C] that are wrong; embeddings as far from their class as may be."""
    if metric.reads != "embeddings":
        return -perfect
    order = targets.argsort(stable=True)
    sign = torch.ones(len(targets), 1)
    sign[order[::2]] = -1.0  # one of the two of every class
    return sign * perfect


def test_declarations(metric, registered):
    assert METRICS.get(registered) is type(metric)
    # Settings may be part of the name: top-k is top-5 by default.
    assert metric.name in METRICS
    assert metric.direction == ("higher" if metric.higher_is_better else "lower")
    assert not metric.direction_declared
    assert isinstance(metric.higher_is_better, bool)
    assert (metric.low, metric.high, metric.unit) == (0.0, 1.0, "fraction")
    assert type(metric).__doc__


def test_batched_equals_looped_exactly(metric, problem):
    outputs, targets = problem
    batched = metric.values(outputs, targets)
    assert batched.shape == (3,)
    assert batched.dtype == torch.float64
    assert batched.tolist() == [metric.value(row, targets) for row in outputs]
    assert all(type(metric.value(row, targets)) is float for row in outputs)
    assert metric.values(outputs[:0], targets).shape == (0,)


def test_inputs_are_left_alone_and_dtype_does_not_matter(metric, problem):
    outputs, targets = problem
    copies = outputs.clone(), targets.clone()
    single = metric.values(outputs, targets)
    assert torch.equal(outputs, copies[0])
    assert torch.equal(targets, copies[1])
    assert torch.equal(metric.values(outputs.double(), targets.int()), single)


def test_order_of_examples_does_not_matter(metric, problem):
    outputs, targets = problem
    order = torch.randperm(len(targets), generator=torch.Generator().manual_seed(1))
    shuffled = metric.values(outputs[:, order], targets[order])
    torch.testing.assert_close(shuffled, metric.values(outputs, targets))


def test_outputs_may_require_gradients(metric, problem):
    outputs, targets = problem
    tracked = outputs.clone().requires_grad_()
    expected = metric.values(outputs, targets)
    assert torch.equal(metric.values(tracked, targets).detach(), expected)


def test_perfect_outputs_are_best_and_the_check_passes(metric, problem):
    outputs, targets = problem
    perfect = perfect_outputs(outputs, targets)
    assert metric.value(perfect, targets) == float(metric.higher_is_better)
    assert check_metric(metric, outputs[0], targets) == metric.value(
        outputs[0], targets
    )


def flipped(metric):
    """The same metric, with the other direction declared."""

    class Flipped(type(metric)):
        higher_is_better = not metric.higher_is_better

    other = object.__new__(Flipped)
    other.__dict__.update(metric.__dict__)
    return other


def test_the_direction_is_right_and_the_other_is_refused(metric, problem):
    outputs, targets = problem
    perfect = perfect_outputs(outputs, targets)
    worst = worst_outputs(metric, perfect, targets)
    native = metric.values(torch.stack([perfect, worst]), targets)
    least, most = to_cost(metric, native).tolist()
    assert least == 0.0 < most
    assert (native[0] > native[1]) == metric.higher_is_better
    other = flipped(metric)
    assert other.higher_is_better is not metric.higher_is_better
    assert other.direction != metric.direction
    with pytest.raises(MetricError, match="but perfect predictions score"):
        check_metric(other, outputs[0], targets)


def test_unknown_settings_are_refused(registered):
    with pytest.raises(
        ConfigError, match=f"metric '{registered}' has no setting 'hue'"
    ):
        make_metric(registered, hue=3)


def test_outputs_of_several_tensors_are_refused_in_a_sentence(metric, problem):
    outputs, targets = problem
    message = r"needs outputs \[B, N, C\], got a tuple of 2 tensors"
    with pytest.raises(ShapeError, match=message):
        metric.values((outputs, outputs), targets)
    with pytest.raises(DataError, match="integer labels"):
        metric.values(outputs, [{"boxes": 1}] * len(targets))


def test_cost_is_lower_is_better_and_inverts(metric, problem):
    native = metric.values(*problem)
    cost = to_cost(metric, native)
    assert bool(((cost >= 0) & (cost <= 1)).all())
    torch.testing.assert_close(from_cost(metric, cost), native)
    best = torch.tensor(float(metric.higher_is_better))
    assert to_cost(metric, best) == 0.0


def test_shapes_are_named(metric, problem):
    outputs, targets = problem
    n = len(targets)
    with pytest.raises(ShapeError, match=rf"needs outputs \[B, N, C\], got \[{n}, "):
        metric.values(outputs[0], targets)
    with pytest.raises(ShapeError, match=rf"needs outputs \[N, C\], got \[3, {n}, "):
        metric.value(outputs, targets)
    with pytest.raises(
        ShapeError, match=rf"the {n} outputs, got targets of shape \[{n - 1}\]"
    ):
        metric.value(outputs[0], targets[1:])
    with pytest.raises(DataError, match=f"'{metric.name}' needs at least one example"):
        metric.value(outputs[0, :0], targets[:0])


def test_outputs_with_nan_are_refused(metric, problem):
    outputs, targets = problem
    outputs[1, 3] = float("nan")
    with pytest.raises(MetricError, match=f"metric '{metric.name}' .*(NaN|nan)"):
        metric.values(outputs, targets)

"""Statistics of decisions among many classes, against scikit-learn and repetitions."""

import pytest
import torch
from sklearn.metrics import f1_score, jaccard_score, precision_score, recall_score
from torch.nn.functional import one_hot

from metricopt.statistics.confusion import ConfusionStatistics
from metricopt.statistics.many_classes import DIRECTIONS, MANY
from metricopt.statistics.probabilities import ProbabilityStatistics
from tests.metricopt.drawn import seeded

CLASSES, N, ROWS = 40, 400, 3
KIND = ConfusionStatistics()
SCORES = {
    "recalls": recall_score,
    "precisions": precision_score,
    "f": f1_score,
    "overlaps": jaccard_score,
}


def drawn():
    """Scores [B, N, K] with a class that is never predicted, and labels [N]."""
    targets = torch.randint(CLASSES, (N,), generator=seeded(1))
    outputs = torch.randn(ROWS, N, CLASSES, generator=seeded())
    outputs += 2.5 * one_hot(targets, CLASSES)
    outputs[..., 7] -= 50
    return outputs, targets


@pytest.mark.parametrize("name", SCORES)
def test_ratios_of_classes_are_those_of_scikit_learn(name):
    outputs, targets = drawn()
    found = KIND.exact(outputs, targets)
    for row, decided in enumerate(outputs.argmax(-1)):
        for group, average in ((name, None), (f"mean {name}", "macro")):
            score = SCORES[name](
                targets,
                decided,
                labels=range(CLASSES),
                average=average,
                zero_division=0,
            )
            expected = torch.as_tensor(score, dtype=torch.float64).expand_as(
                found[group][row]
            )
            torch.testing.assert_close(found[group][row], expected, rtol=0, atol=1e-6)


def test_whole_numbers_of_few_classes_keep_their_matrix():
    outputs, targets = drawn()
    targets = targets.clamp(max=MANY - 1)
    assert "matrix" in KIND.exact(outputs[..., :MANY], targets)
    found = KIND.exact(outputs, targets)
    assert max(values.shape[1] for values in found.values()) <= 2 * CLASSES


def test_sums_of_the_matrix_are_linear_in_it():
    outputs, targets = drawn()
    found = KIND.exact(outputs, targets)["sums of the matrix"]
    assert found.shape == (ROWS, DIRECTIONS**2)
    generator = torch.Generator().manual_seed(CLASSES)
    mixed = torch.randn(CLASSES, DIRECTIONS, generator=generator) / DIRECTIONS**0.5
    labels = one_hot(targets, CLASSES).float()
    for row in range(ROWS):
        decided = one_hot(outputs[row].argmax(-1), CLASSES).float()
        matrix = labels.T @ decided / N
        expected = (mixed.T @ matrix @ mixed).flatten().double()
        torch.testing.assert_close(found[row], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [KIND, ProbabilityStatistics()])
@pytest.mark.parametrize("form", ["exact", "smooth"])
def test_weights_are_repetitions_also_of_one_row_expanded(kind, form):
    outputs, targets = drawn()
    counts = torch.randint(0, 3, (ROWS, N), generator=seeded(4))
    one = outputs[:1]
    find = getattr(kind, form)
    expanded = find(one.expand(ROWS, -1, -1), targets, counts.float())
    for row, count in enumerate(counts):
        repeated = torch.arange(N).repeat_interleave(count)
        other = find(one[:, repeated], targets[repeated])
        for name, values in expanded.items():
            torch.testing.assert_close(
                values[row : row + 1], other[name], rtol=0, atol=1e-5
            )


def test_smooth_decisions_tend_to_the_exact_ones():
    outputs, targets = drawn()
    sharp = ConfusionStatistics(temperature=1e-5)
    exact, smooth = sharp.exact(outputs, targets), sharp.smooth(outputs, targets)
    for name in exact:
        torch.testing.assert_close(smooth[name], exact[name], rtol=0, atol=1e-3)


def test_smooth_decisions_are_differentiable():
    outputs, targets = drawn()
    outputs.requires_grad_()
    found = KIND.smooth(outputs, targets)
    sum(values.sum() for values in found.values()).backward()
    assert torch.isfinite(outputs.grad).all() and outputs.grad.abs().sum() > 0


def test_a_thousand_classes_take_memory_in_their_number():
    targets = torch.randint(1000, (200,), generator=seeded(1))
    outputs = torch.randn(1, 200, 1000, generator=seeded())
    found = KIND.exact(outputs, targets)
    assert sum(values.shape[1] for values in found.values()) < 10_000

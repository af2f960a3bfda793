"""The surrogate of spans: a hand-worked case, and how it is fitted."""

import pytest
import torch

from baselines.learned_losses.reloss_surrogate import Fitting, fit_surrogate
from baselines.learned_losses.surrogates.contract import KINDS, Groups
from baselines.learned_losses.surrogates.spans import SpanKind, SpanSurrogate
from metricopt.errors import DataError, ShapeError
from metricopt.metrics.spans import SpanF1
from metricopt.process.seeding import make_generator
from tests.baselines.learned_losses.surrogates.group_costs import costs_by
from tests.metricopt.metrics.test_spans import problem, random_answers


def test_the_loss_is_worked_by_hand():
    """With weights that keep one unit, h(p, q) = p + 2 q - 4, and |h| is its loss."""
    losses = {}
    for anchored in (False, True):
        surrogate = SpanSurrogate(2, anchored=anchored)
        first, second, third, last = (surrogate.h[at] for at in (0, 2, 4, 6))
        with torch.no_grad():
            for layer in (first, second, third, last):
                layer.weight.zero_()
                layer.bias.zero_()
            first.weight[0] = torch.tensor([1.0, 2.0])
            second.weight[0, 0] = third.weight[0, 0] = last.weight[0, 0] = 1.0
            last.bias.fill_(-4.0)
        scores, targets = problem([("甲乙", 0, 0, ("甲",))])
        scores = torch.log(torch.tensor([[[0.75, 0.25], [0.5, 0.5]]]))
        losses[anchored] = surrogate(scores[None], targets[None]).item()
    assert losses[False] == pytest.approx(abs(0.75 + 2 * 0.5 - 4))
    assert losses[True] == pytest.approx(abs(0.75 + 2 * 0.5 - 3))


def recorded(count=240):
    """Scores that become better with time, for answers that are right."""
    given = [
        (text, first, last, (text[first : last + 1],))
        for text, first, last, _ in random_answers(count)
    ]
    right, targets = problem(given)
    targets[:, :2] = torch.tensor([(first, last) for _, first, last, _ in given])
    noise = torch.randn(right.shape, generator=make_generator("noise"))
    return Groups(right * torch.linspace(0, 1, count)[:, None, None] + noise, targets)


@pytest.mark.parametrize("anchored", [False, True])
def test_a_surrogate_learns_to_rank_groups_of_answers(anchored):
    torch.manual_seed(0)
    fitting = Fitting(
        epochs=6,
        groups=8,
        group_size=6,
        held_out=24,
        penalty=0.1,
        anchored=anchored,
        unit_slope=True,
    )
    found = fit_surrogate(
        SpanKind(), recorded(), costs_by(SpanF1()), fitting, make_generator("fit")
    )
    assert found.rank_correlation > 0.8 and found.base > 0.8
    assert found.held_out.shape == (3, 24)


def test_other_outputs_are_refused_before_training():
    kind, (scores, targets) = KINDS.get("spans")(), problem(random_answers(4))
    kind.check(scores, targets)
    with pytest.raises(ShapeError, match=r"needs scores \[N, 2, L\], got \[4, 1, 24\]"):
        kind.check(scores[:, :1], targets)
    with pytest.raises(DataError, match="needs packed spans"):
        kind.check(scores, torch.zeros(4))
    with pytest.raises(ShapeError, match="not of inputs with 23 places"):
        kind.check(scores[..., 1:], targets)

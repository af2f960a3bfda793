"""Black-box ranks and their losses against golden vectors and loops that count."""

import math

import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score

from baselines.losses.blackbox_ap import BlackboxAP
from baselines.losses.blackbox_ranking import (
    ap_loss,
    log_log,
    rank,
    recall_loss,
    standardise,
)
from baselines.losses.blackbox_recall import BlackboxRecall
from metricopt.errors import ConfigError, ShapeError
from tests.golden import assert_golden, load_golden

RANKS, RECALL, AP = (
    list(load_golden(f"rambo_{name}")) for name in ("ranker", "recall", "ap")
)
WEIGHTS = {"loglog1p": log_log, "log1p": torch.log1p}


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def relevance(*shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator) < 0.4


def naive_ranks(scores):
    """Rank by counting who is ahead: larger, or equal and later."""
    return [
        1 + sum((t, j) > (s, i) for j, t in enumerate(scores))
        for i, s in enumerate(scores)
    ]


def naive_recall(scores, relevant, margin):
    terms = []
    for row, flags in zip(scores.tolist(), relevant.tolist(), strict=True):
        shifted = [s - margin * (f - 0.5) for s, f in zip(row, flags, strict=True)]
        ranks = naive_ranks(shifted)
        for i, flag in enumerate(flags):
            if flag:
                ahead = [j for j, r in enumerate(ranks) if r < ranks[i]]
                irrelevant = sum(not flags[j] for j in ahead)
                terms.append(math.log1p(math.log1p(irrelevant)))
    return sum(terms) / len(terms)


def naive_ap(scores, relevant, margin):
    losses = []
    for column, flags in zip(scores.T.tolist(), relevant.T.tolist(), strict=True):
        shifted = [s - margin * (f - 0.5) for s, f in zip(column, flags, strict=True)]
        ranks = naive_ranks(shifted)
        own = [r for r, flag in zip(ranks, flags, strict=True) if flag]
        if own:
            precisions = [(1 + sum(q < r for q in own)) / r for r in own]
            losses.append(1 - sum(precisions) / (len(own) + 1e-5))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("case", RANKS, ids=lambda case: case.name)
def test_ranker_golden(case):
    scores = case.inputs["scores"].requires_grad_()
    ranks = rank(scores, case.settings["lambda"])
    ranks.backward(case.inputs["upstream_grad"])
    assert_golden(ranks.detach(), case.expected["ranks_normalised"], case.tolerance)
    assert_golden(scores.grad, case.expected["grad_scores"], case.tolerance)


@pytest.mark.parametrize("case", RECALL, ids=lambda case: case.name)
def test_recall_golden(case):
    scores, expected = case.inputs["scores"].requires_grad_(), case.expected
    loss = recall_loss(
        scores,
        case.inputs["relevance"] == 1,
        margin=case.settings["margin"],
        lam=case.settings["lambda"],
        weight=WEIGHTS[case.settings["weight_fn"]],
    )
    loss.backward()
    assert_golden(loss.detach(), expected["loss_length_denormalised"], case.tolerance)
    gradient = expected["grad_scores_length_denormalised"]
    assert_golden(scores.grad, gradient, case.tolerance)


@pytest.mark.parametrize("case", AP, ids=lambda case: case.name)
def test_ap_golden(case):
    """Remembered examples are ranked with the others, but not between the classes."""
    assert (case.inputs["margin_multiplier_per_class"] == 1).all()
    scores, share = case.inputs["scores"].requires_grad_(), case.settings
    relevant = case.inputs["targets"] == 1
    past = case.inputs.get("memory_scores", scores[:0]).reshape(-1, scores.shape[1])
    past_relevant = case.inputs.get("memory_targets", relevant[:0]) == 1
    settings = {"margin": share["margin"], "lam": share["lambda"]}
    long = torch.cat([relevant, past_relevant.reshape(-1, scores.shape[1])])
    loss = torch.lerp(
        ap_loss(torch.cat([scores, past.detach()]), long, **settings),
        ap_loss(scores, relevant, interclass=1.0, **settings),
        share["interclass_coef"],
    )
    if len(past) == 0:
        own = ap_loss(scores, relevant, interclass=share["interclass_coef"], **settings)
        assert torch.equal(own, loss)
    loss.backward()
    assert_golden(loss.detach(), case.expected["loss"], case.tolerance)
    assert_golden(scores.grad, case.expected["grad_scores"], case.tolerance)


def test_ranks_count_who_is_ahead_and_later_ones_win_ties():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(4, (2, 5, 9), generator=generator).double()
    expected = [[naive_ranks(row) for row in part] for part in scores.tolist()]
    torch.testing.assert_close(
        rank(scores, 1.0), torch.tensor(expected, dtype=torch.float64) / 9
    )
    assert rank(torch.zeros(4), 1.0).tolist() == [1, 0.75, 0.5, 0.25]


def test_gradient_is_the_change_of_ranks_under_the_perturbation():
    scores, upstream, lam = draw(3, 7), draw(3, 7, seed=2), 0.8
    scores.requires_grad_()
    rank(scores, lam).backward(upstream)
    moved = (scores.detach() + lam * upstream).tolist()
    changes = [
        [(b - a) / 7 / lam for a, b in zip(naive_ranks(s), naive_ranks(m), strict=True)]
        for s, m in zip(scores.tolist(), moved, strict=True)
    ]
    torch.testing.assert_close(scores.grad, torch.tensor(changes).double())
    assert scores.grad.abs().sum() > 0


@pytest.mark.parametrize("margin", [0.0, 0.3, 5.0])
def test_losses_equal_loops_that_count(margin):
    scores, relevant = draw(4, 12, 5), relevance(4, 12, 5)
    relevant[0, :, 2] = relevant[0, 3] = False  # a class and a query without any
    recall = recall_loss(scores, relevant, margin=margin, lam=1.0)
    ap = ap_loss(scores, relevant, margin=margin, lam=1.0)
    mixed = ap_loss(scores, relevant, margin=margin, lam=1.0, interclass=0.3)
    for row, flags, *values in zip(scores, relevant, recall, ap, mixed, strict=True):
        apart = naive_ap(row, flags, margin)
        flat = naive_ap(row.reshape(-1, 1), flags.reshape(-1, 1), margin)
        expected = [naive_recall(row, flags, margin), apart, 0.7 * apart + 0.3 * flat]
        assert [value.item() for value in values] == pytest.approx(expected)


def test_without_margin_it_is_average_precision():
    scores, relevant = draw(40, 3), relevance(40, 3)
    columns = zip(scores.T, relevant.T, strict=True)
    precisions = [average_precision_score(flags, column) for column, flags in columns]
    loss = ap_loss(scores, relevant, margin=0.0, lam=1.0)
    assert loss.item() == pytest.approx(1 - sum(precisions) / 3, abs=1e-5)


def test_nothing_relevant_is_zero_and_connected():
    for loss in (recall_loss, ap_loss):
        scores = draw(6, 3).requires_grad_()
        nothing = torch.zeros(6, 3, dtype=torch.bool)
        value = loss(scores, nothing, margin=0.1, lam=1.0)
        value.backward()
        assert value.item() == 0
        assert scores.grad.abs().sum() == 0


def test_standard_scores_make_margin_and_strength_relative():
    scores = 40 * draw(2, 15, 4) + 7
    standard = standardise(scores)
    torch.testing.assert_close(standard.mean((1, 2)), torch.zeros(2).double())
    torch.testing.assert_close(
        standard.square().mean((1, 2)), torch.ones(2, dtype=torch.float64)
    )
    targets = torch.arange(15) % 4
    for loss in (BlackboxRecall(4), BlackboxAP(4)):
        small, large = draw(15, 4), 100 * draw(15, 4) - 30
        gradients = []
        for outputs in (small.requires_grad_(), large.requires_grad_()):
            value = loss(outputs, targets)
            gradients.append(torch.autograd.grad(value, outputs)[0])
        assert loss(small, targets) == loss(large, targets)
        assert gradients[0].abs().sum() > 0
        torch.testing.assert_close(gradients[0], 100 * gradients[1])


def test_recall_is_of_the_label_among_the_classes():
    outputs = torch.tensor([[2.0, 1.0, -1.0, -2.0], [0.5, 3.0, 2.0, 1.0]])
    loss = BlackboxRecall(4, margin=0.0)
    weights = [math.log1p(math.log1p(ahead)) for ahead in range(4)]
    for label, ahead in zip(range(4), ((0, 3), (1, 0), (2, 1), (3, 2)), strict=True):
        value = loss(outputs, torch.full((2,), label))
        expected = (weights[ahead[0]] + weights[ahead[1]]) / 2
        assert value.item() == pytest.approx(expected)


def test_one_logit_is_the_two_column_form_of_recall():
    logit, targets = draw(20, 1), torch.arange(20) % 2
    columns = torch.cat([torch.zeros_like(logit), logit], 1)
    torch.testing.assert_close(
        BlackboxRecall(1)(logit, targets), BlackboxRecall(2)(columns, targets)
    )


def digits():
    """Pixels and labels of 1,000 digits to learn from and 797 to judge on."""
    pixels, labels = load_digits(return_X_y=True)
    inputs, targets = torch.tensor(pixels / 16), torch.tensor(labels)
    order = torch.randperm(1797, generator=torch.Generator().manual_seed(0))
    return [(inputs[part], targets[part]) for part in order.split([1000, 797])]


def learned(loss, inputs, targets):
    """Logits of a linear layer trained by mini-batches of 128."""
    weight = (0.01 * draw(64, 10)).requires_grad_()
    optimizer = torch.optim.Adam([weight], lr=0.01)
    generator = torch.Generator().manual_seed(1)
    for _ in range(300):
        batch = torch.randint(len(inputs), (128,), generator=generator)
        optimizer.zero_grad()
        loss(inputs[batch] @ weight, targets[batch]).backward()
        optimizer.step()
    return weight.detach()


@pytest.mark.parametrize("kind", [BlackboxRecall, BlackboxAP])
def test_it_learns_to_classify_and_to_rank(kind):
    train, (inputs, labels) = digits()
    outputs = inputs @ learned(kind(10), *train)
    assert (outputs.argmax(1) == labels).double().mean() > 0.9
    hot = torch.nn.functional.one_hot(labels, 10)
    assert average_precision_score(hot, outputs) > 0.95


def test_the_mini_batch_size_does_not_change_what_a_query_is_told():
    outputs, targets = draw(12, 5).requires_grad_(), torch.arange(12) % 5
    loss, gradients = BlackboxRecall(5), []
    for times in (1, 4):
        value = loss(outputs.repeat(times, 1), targets.repeat(times))
        gradients.append(torch.autograd.grad(value, outputs)[0])
    assert gradients[0].abs().sum() > 0
    torch.testing.assert_close(*gradients)


def test_bad_arguments_are_named():
    with pytest.raises(ConfigError, match="a rank needs lam > 0, got lam=0"):
        rank(torch.zeros(3), 0)
    for loss in (recall_loss, ap_loss):
        with pytest.raises(ShapeError, match=r"one shape, got .* and "):
            loss(draw(4, 3), relevance(4, 2), margin=0.0, lam=1.0)

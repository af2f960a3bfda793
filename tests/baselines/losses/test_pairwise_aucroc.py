"""The pairwise AUC-ROC loss against golden vectors and a loop over pairs."""

import math

import pytest
import torch
from sklearn.metrics import roc_auc_score

from baselines.losses.pairwise_aucroc import PairwiseAUCROC
from metricopt.errors import ConfigError
from tests.golden import assert_golden, load_golden

GOLDEN = list(load_golden("aucroc_pairwise"))
SURROGATES = {
    "hinge": lambda d: max(0.0, 1 - d),
    "squared-hinge": lambda d: max(0.0, 1 - d) ** 2,
    "logistic": lambda d: math.log1p(math.exp(-d)),
}


def naive(outputs, targets, surrogate):
    """Mean over classes of the mean over pairs, class by class and pair by pair."""
    binary = outputs.shape[1] == 1
    means = []
    for column, scores in enumerate(outputs.T.tolist()):
        label = 1 if binary else column
        kinds = [target == label for target in targets.tolist()]
        terms = [
            SURROGATES[surrogate](first - second)
            for first, positive in zip(scores, kinds, strict=True)
            for second, other in zip(scores, kinds, strict=True)
            if positive and not other
        ]
        if terms:
            means.append(sum(terms) / len(terms))
    return sum(means) / len(means)


def example(classes, examples=25, seed=0):
    generator = torch.Generator().manual_seed(seed)
    outputs = torch.randn(examples, classes, generator=generator, dtype=torch.float64)
    targets = torch.randint(max(classes, 2), (examples,), generator=generator)
    return outputs, targets


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case.name)
def test_golden(case, surrogate):
    values = case.expected[surrogate.replace("-", "_")]
    scores = case.inputs["scores"].clone().requires_grad_()
    loss = PairwiseAUCROC(1, surrogate=surrogate)
    value = loss(scores[:, None], case.inputs["labels"])
    value.backward()
    assert_golden(value.detach(), values["loss_pair_mean"], case.tolerance)
    assert_golden(scores.grad, values["grad_scores"], case.tolerance)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("classes", [1, 2, 3, 6])
def test_equals_the_loop_over_pairs(classes, surrogate):
    outputs, targets = example(classes)
    value = PairwiseAUCROC(classes, surrogate=surrogate)(outputs, targets)
    assert value.item() == pytest.approx(naive(outputs, targets, surrogate))


def test_absent_classes_are_left_out():
    outputs, targets = example(6)
    targets = targets % 2 * 3  # classes 0 and 3 only
    value = PairwiseAUCROC(6)(outputs.requires_grad_(), targets)
    value.backward()
    assert value.item() == pytest.approx(naive(outputs.detach(), targets, "hinge"))
    assert outputs.grad[:, [1, 2, 4, 5]].abs().sum() == 0
    assert (outputs.grad[:, [0, 3]].abs().sum(0) > 0).all()


@pytest.mark.parametrize(("classes", "label"), [(1, 0), (1, 1), (3, 2)])
def test_without_pairs_it_is_zero_and_connected(classes, label):
    outputs, targets = example(classes)
    value = PairwiseAUCROC(classes)(
        outputs.requires_grad_(), torch.full_like(targets, label)
    )
    value.backward()
    assert value.item() == 0
    assert outputs.grad.abs().sum() == 0


@pytest.mark.parametrize("surrogate", ["hinge", "squared-hinge"])
def test_bounds_the_share_of_wrong_pairs(surrogate):
    outputs, targets = example(1, examples=200)
    wrong = 1 - roc_auc_score(targets, outputs[:, 0])
    assert PairwiseAUCROC(1, surrogate=surrogate)(outputs, targets).item() >= wrong
    # Far apart, a wrong pair costs its distance and a right one nothing.
    far = 1e6 * outputs.sign() * (2 + outputs.abs())
    assert PairwiseAUCROC(1)(far, (far[:, 0] > 0).long()).item() == 0


def test_only_differences_within_a_class_column_matter():
    outputs, targets = example(4)
    loss = PairwiseAUCROC(4)
    shifted = outputs + torch.tensor([3.0, -2.0, 0.5, 100.0])
    torch.testing.assert_close(loss(shifted, targets), loss(outputs, targets))


def test_bad_surrogates_are_named():
    with pytest.raises(
        ConfigError, match="one of hinge, squared-hinge, logistic, got 'exp'"
    ):
        PairwiseAUCROC(2, surrogate="exp")

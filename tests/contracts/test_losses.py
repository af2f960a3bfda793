"""What every registered loss promises."""

import copy
import pickle

import pytest
import torch

from baselines.losses.contract import LOSSES, make_loss
from metricopt.errors import ConfigError, DataError, ShapeError
from metricopt.losses.contract import (
    LossProperties,
    RowLoss,
    check_batch_size,
    finish,
    properties,
)

NAMES = list(LOSSES)
EXPECTED = """
aucpr blackbox-ap blackbox-recall cross-entropy large-margin lovasz-hinge lovasz-softmax
pairwise-aucroc
"""
CLASSES = {"lovasz-hinge": (1,), "large-margin": (2, 4)}
CASES = [(name, c) for name in NAMES for c in CLASSES.get(name, (1, 2, 4))]
ROW_CASES = [case for case in CASES if isinstance(LOSSES.get(case[0]), type)]
# Their gradient is, by design, not the derivative, which is 0 almost everywhere.
RANKED = {"blackbox-ap", "blackbox-recall"}
SMOOTH_CASES = [case for case in CASES if case[0] not in RANKED]
MAY_BE_NEGATIVE = {"aucpr"}
COMPARES = {"aucpr", "blackbox-ap", "pairwise-aucroc"}
"""Each output is compared with others of its own class alone."""

every_case = pytest.mark.parametrize(("name", "classes"), CASES)


def make(name, classes):
    return make_loss(name, classes=classes)


def columns_per_class(loss):
    return properties(loss).outputs_per_class


def as_outputs(name, logits):
    """What a network trained with this loss would give instead of the logits."""
    if name == "large-margin":
        lengths = logits.abs() + torch.linspace(0, 1, logits.shape[-1]).to(logits)
        return torch.cat([logits, lengths], dim=-1)
    return logits


def example(name, classes, *, dtype=torch.float64, examples=(30,)):
    generator = torch.Generator().manual_seed(classes)
    logits = torch.randn(*examples, classes, generator=generator, dtype=dtype)
    targets = torch.randint(max(classes, 2), examples, generator=generator)
    return as_outputs(name, logits).requires_grad_(), targets


def separated(name, classes, targets, size=40):
    """Outputs that are sure of these classes, or for a negative size of any other."""
    kinds = torch.nn.functional.one_hot(targets, max(classes, 2)).double()
    logits = size * (2 * kinds - 1)
    return as_outputs(name, logits[:, 1:] if classes == 1 else logits)


def test_the_losses_are_found():
    assert EXPECTED.split() == NAMES


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@every_case
def test_scalar_of_the_same_dtype_with_finite_gradient(name, classes, dtype):
    outputs, targets = example(name, classes, dtype=dtype)
    loss = make(name, classes)(outputs, targets)
    loss.backward()
    assert loss.shape == ()
    assert loss.dtype == dtype
    assert loss.item() > 0
    assert outputs.grad.isfinite().all()
    assert outputs.grad.abs().sum() > 0


@every_case
def test_order_of_examples_does_not_matter(name, classes):
    outputs, targets = example(name, classes)
    loss = make(name, classes)
    torch.testing.assert_close(
        loss(outputs, targets), loss(outputs.flip(0), targets.flip(0))
    )


@pytest.mark.parametrize(("name", "classes"), SMOOTH_CASES)
def test_gradient_equals_finite_differences(name, classes):
    outputs, targets = example(name, classes, examples=(8,))
    loss = make(name, classes)
    assert torch.autograd.gradcheck(lambda z: loss(z, targets), (outputs,))


@every_case
def test_sure_and_right_outputs_cost_nothing_and_wrong_ones_much(name, classes):
    _, targets = example(name, classes)
    loss = make(name, classes)
    right = loss(separated(name, classes, targets), targets).item()
    # The average precision of the black-box loss falls short of 1 by 1e-5 / positives.
    assert right < 0 if name in MAY_BE_NEGATIVE else right == pytest.approx(0, abs=1e-5)
    wrong = separated(name, classes, targets, size=-40)
    assert loss(wrong, targets).item() > 0.5


DEGENERATE = {
    "negatives": lambda x, t: (x, torch.zeros_like(t)),
    "positives": lambda x, t: (x, torch.ones_like(t)),
    "one-example": lambda x, t: (x[:1], t[:1]),
    "constant": lambda x, t: (torch.full_like(x, 3.7), t),
    "zero": lambda x, t: (torch.zeros_like(x), t),
    "extreme": lambda x, t: (1e4 * x, t),
}


@every_case
@pytest.mark.parametrize("kind", DEGENERATE)
def test_degenerate_mini_batches_are_finite(name, classes, kind):
    outputs, targets = example(name, classes, dtype=torch.float32)
    logits, targets = DEGENERATE[kind](outputs.detach()[:, :classes], targets)
    outputs = as_outputs(name, logits).requires_grad_()
    loss = make(name, classes)(outputs, targets)
    loss.backward()
    assert loss.isfinite()
    assert outputs.grad.isfinite().all()


@every_case
def test_descends(name, classes):
    outputs, targets = example(name, classes)
    loss = make(name, classes)
    first = loss(outputs, targets)
    optimizer = torch.optim.SGD([outputs], lr=5.0)
    for _ in range(200):
        optimizer.zero_grad()
        loss(outputs, targets).backward()
        optimizer.step()
    # Where a small perturbation changes no rank, free logits have gradient 0 and stay.
    assert loss(outputs, targets) < (1.0 if name in RANKED else 0.3) * first


@pytest.mark.parametrize(("name", "classes"), ROW_CASES)
def test_row_losses_equal_a_call_per_row(name, classes):
    outputs, targets = example(name, classes, examples=(5, 12))
    targets[1] = 1  # no pair of classes
    targets[2, :6] = 0
    loss = make(name, classes)
    rows = loss.row_losses(outputs, targets)
    pairs = zip(outputs, targets, strict=True)
    expected = torch.stack([loss(row, labels) for row, labels in pairs])
    torch.testing.assert_close(rows, expected)
    gradients = [torch.autograd.grad(x.sum(), outputs)[0] for x in (rows, expected)]
    torch.testing.assert_close(*gradients)


@every_case
def test_a_call_leaves_no_trace(name, classes):
    outputs, targets = example(name, classes)
    loss = make(name, classes)
    copies = [copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))]
    values = [each(outputs, targets) for each in (loss, loss, *copies)]
    torch.testing.assert_close(torch.stack(values), values[0].expand(4))


@pytest.mark.parametrize("name", NAMES)
def test_bad_arguments_are_named(name):
    classes = CLASSES.get(name, (1,))[0]
    loss = make(name, classes)
    columns = classes * columns_per_class(loss)
    with pytest.raises(
        ShapeError, match=r"outputs \[N, C\] and targets \[N\], got outputs \[3\]"
    ):
        loss(torch.zeros(3), torch.zeros(3, dtype=torch.long))
    with pytest.raises(ShapeError, match=rf"outputs \[3, {columns}\] and targets \[2"):
        loss(torch.zeros(3, columns), torch.zeros(2, dtype=torch.long))
    with pytest.raises(DataError, match="at least one example, got 0"):
        loss(torch.zeros(0, columns), torch.zeros(0, dtype=torch.long))
    with pytest.raises(DataError, match=r"integer targets in \[0, 1\].* 0 to 2"):
        loss(torch.zeros(3, columns), torch.tensor([0, 1, 2]))
    with pytest.raises(DataError, match=r"integer targets.*float32"):
        loss(torch.zeros(3, columns), torch.zeros(3))


@pytest.mark.parametrize(("name", "classes"), ROW_CASES)
def test_another_number_of_outputs_is_named(name, classes):
    loss, targets = make(name, classes), torch.zeros(3, dtype=torch.long)
    columns = classes * columns_per_class(loss)
    message = f"with classes={classes} needs {columns} outputs .*, got {columns + 1}"
    with pytest.raises(ShapeError, match=message):
        loss(torch.zeros(3, columns + 1), targets)
    with pytest.raises(ShapeError, match=message):
        loss.row_losses(torch.zeros(1, 3, columns + 1), targets[None])


def test_hinge_wants_one_logit():
    with pytest.raises(ShapeError, match=r"one logit, outputs \[N, 1\], got \[3, 2\]"):
        make("lovasz-hinge", 2)(torch.zeros(3, 2), torch.tensor([0, 1, 1]))


def test_cross_entropy_by_hand():
    loss = make("cross-entropy", 1)
    logit = torch.tensor([[0.0], [torch.log(torch.tensor(3.0))]])
    expected = -(torch.log(torch.tensor(0.5)) + torch.log(torch.tensor(0.25))) / 2
    torch.testing.assert_close(loss(logit, torch.tensor([1, 0])), expected)
    columns = torch.cat([torch.zeros_like(logit), logit], 1)
    torch.testing.assert_close(loss(columns, torch.tensor([1, 0])), expected)


def test_losses_are_made_by_name_with_settings():
    assert make_loss("cross-entropy", classes=3) is LOSSES.get("cross-entropy")
    loss = make_loss("large-margin", classes=3, margin=2, annealing=0.5)
    assert isinstance(loss, RowLoss)
    assert (loss.classes, loss.margin, loss.annealing) == (3, 2, 0.5)


def test_bad_settings_are_named():
    with pytest.raises(ConfigError, match="unknown loss 'nope'; known: aucpr, "):
        make_loss("nope", classes=3)
    with pytest.raises(
        ConfigError,
        match=r"'large-margin' has no setting slope, m; known: margin, annealing$",
    ):
        make_loss("large-margin", classes=3, slope=1, margin=2, m=3)
    with pytest.raises(
        ConfigError, match="'cross-entropy' has no setting margin; known: none"
    ):
        make_loss("cross-entropy", classes=3, margin=2)
    with pytest.raises(ConfigError, match="at least 1 class, got 0"):
        make_loss("pairwise-aucroc", classes=0)


def test_who_compares_classes_wants_them_all_in_a_mini_batch():
    for name, classes in CASES:
        loss, needed = make(name, classes), max(classes, 2)
        check_batch_size(loss, needed, classes)
        if name not in COMPARES:
            check_batch_size(loss, 1, classes)
            continue
        message = (
            f"{type(loss).__name__} needs mini-batches of at least {needed} examples, "
            f"one per class, got {needed - 1}"
        )
        with pytest.raises(ConfigError, match=message):
            check_batch_size(loss, needed - 1, classes)


def test_losses_say_what_they_want_and_so_do_their_classes():
    for name, classes in CASES:
        known = properties(make(name, classes))
        assert known == properties(LOSSES.get(name))
        assert known.independent == (name in COMPARES)
        assert known.outputs_per_class == (2 if name == "large-margin" else 1)
    for loss in (lambda outputs, targets: outputs.sum(), torch.nn.CrossEntropyLoss()):
        assert properties(loss) == LossProperties()


@every_case
def test_training_leaves_a_loss_as_it_was_by_default(name, classes):
    outputs, targets = example(name, classes)
    loss = make(name, classes)
    before = loss(outputs, targets)
    if isinstance(loss, RowLoss):
        loss.before_step(3, 10)
    finish(loss)
    assert torch.equal(loss(outputs, targets), before)

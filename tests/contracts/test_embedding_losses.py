"""What every registered loss of embeddings promises."""

import copy
import pickle

import pytest
import torch
from torch import nn

from baselines.embedding_losses.contract import EMBEDDING_LOSSES, make_embedding_loss
from metricopt.errors import ConfigError, DataError, ShapeError

NAMES = list(EMBEDDING_LOSSES)
SIZE = 8
CLASSES = 6
# Its gradient is, by design, not the derivative, which is 0 almost everywhere.
SMOOTH = [name for name in NAMES if name != "recall"]
# It draws negatives for every place of the mini-batch.
DRAWN = {"margin"}

every_loss = pytest.mark.parametrize("name", NAMES)


def make(name, classes=CLASSES, **settings):
    return make_embedding_loss(name, classes=classes, size=SIZE, **settings)


def example(examples=30, *, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(examples, SIZE, generator=generator, dtype=dtype)
    targets = torch.randint(CLASSES, (examples,), generator=generator)
    return embeddings.requires_grad_(), targets


def value_and_gradient(loss, embeddings, targets):
    embeddings = embeddings.detach().requires_grad_()
    value = loss(embeddings, targets)
    (gradient,) = torch.autograd.grad(value, embeddings)
    return value.detach(), gradient


def test_the_losses_are_found():
    assert NAMES == ["fastap", "margin", "multi-similarity", "recall", "triplet"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@every_loss
def test_scalar_of_the_same_dtype_with_finite_gradient(name, dtype):
    embeddings, targets = example(dtype=dtype)
    loss = make(name)(embeddings, targets)
    loss.backward()
    assert (loss.shape, loss.dtype) == ((), dtype)
    assert loss.item() > 0
    assert embeddings.grad.isfinite().all()
    assert embeddings.grad.abs().sum() > 0


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_equals_finite_differences(name):
    embeddings, targets = example(12, seed=1)
    loss = make(name)
    assert loss(embeddings, targets) > 0
    assert torch.autograd.gradcheck(lambda z: loss(z, targets), (embeddings,))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in DRAWN])
def test_order_of_examples_does_not_matter(name):
    embeddings, targets = example()
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    value, gradient = value_and_gradient(make(name), embeddings, targets)
    other = value_and_gradient(make(name), embeddings[order], targets[order])
    torch.testing.assert_close(other, (value, gradient[order]))


@every_loss
def test_only_directions_count(name):
    embeddings, targets = example()
    lengths = torch.logspace(-3, 3, 30, dtype=torch.float64)[:, None]
    value, gradient = value_and_gradient(make(name), embeddings, targets)
    longer = value_and_gradient(make(name), lengths * embeddings, targets)
    torch.testing.assert_close(longer, (value, gradient / lengths))
    along = (gradient * embeddings).sum(1)
    torch.testing.assert_close(along, torch.zeros_like(along))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in DRAWN])
def test_names_of_classes_do_not_matter(name):
    embeddings, targets = example()
    renamed = torch.tensor([90, 4, 17, 0, 65, 33])[targets]
    value = make(name)(embeddings, targets)
    torch.testing.assert_close(make(name)(embeddings, renamed), value)


@every_loss
def test_separated_classes_cost_nothing_and_mixed_ones_more_and_more(name):
    embeddings, targets = example()
    directions = nn.functional.one_hot(targets, SIZE).double()
    noise = nn.functional.normalize(embeddings.detach(), dim=1)
    values = [
        make(name)(directions + share * noise, targets).item()
        for share in (0.01, 1.0, 100.0)
    ]
    assert values[0] == pytest.approx(0, abs=1e-3)
    assert values[0] < values[1] < values[2]


def with_twins(embeddings):
    """Some embeddings of one class, or of two, are equal to the bit."""
    twins = embeddings.detach().clone()
    twins[1], twins[9] = twins[0], 2 * twins[8]
    return twins


DEGENERATE = {
    "one class": lambda x, t: (x, torch.full_like(t, 2)),
    "no class twice": lambda x, t: (x, torch.arange(len(t))),
    "one example": lambda x, t: (x[:1], t[:1]),
    "one pair": lambda x, t: (x[:2], torch.tensor([3, 3])),
    "two classes of one": lambda x, t: (x[:2], torch.tensor([0, 1])),
}


@pytest.mark.parametrize("kind", DEGENERATE)
@every_loss
def test_mini_batches_without_both_kinds_of_pairs_teach_nothing(name, kind):
    loss = make(name, classes=30)
    value, gradient = value_and_gradient(loss, *DEGENERATE[kind](*example()))
    assert value.item() == pytest.approx(0, abs=1e-12)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient))


# Distances of more than 25 examples are computed in another way.
@pytest.mark.parametrize("examples", [12, 30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@every_loss
def test_equal_and_opposite_embeddings_have_a_finite_gradient(name, dtype, examples):
    embeddings, _ = example(examples, dtype=dtype)
    targets = torch.arange(examples) // 3 % CLASSES
    ones = torch.ones_like(embeddings)
    opposite = ones * (1 - torch.arange(examples) % 2 * 2)[:, None]
    for equal in (with_twins(embeddings), ones, opposite):
        value, gradient = value_and_gradient(make(name), equal, targets)
        assert value.isfinite()
        assert gradient.isfinite().all()
        assert gradient.norm() < 100


@every_loss
def test_one_diverged_embedding_gives_nan_and_no_error(name):
    embeddings, targets = example()
    for spoiled in (torch.nan, torch.inf):
        loss = make(name)(embeddings * torch.tensor([1.0] * 7 + [spoiled]), targets)
        assert loss.isnan()
        assert loss.requires_grad


@every_loss
def test_a_call_leaves_no_trace(name):
    embeddings, targets = example()
    loss, state = make(name), torch.get_rng_state()
    copies = [copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))]
    values = [each(embeddings, targets) for each in (loss, loss, *copies)]
    assert torch.stack(values).unique().numel() == 1
    assert torch.equal(torch.get_rng_state(), state)


@every_loss
def test_bad_arguments_are_named(name):
    loss, labels = make(name), torch.tensor([0, 0, 1])
    together = r"size 8 needs embeddings \[n, 8\] and targets \[n\], got embeddings "
    for embeddings, targets, got in (
        (torch.ones(3), labels, r"\[3\] and targets \[3\]"),
        (torch.ones(3, 8), labels[:2], r"\[3, 8\] and targets \[2\]"),
        (torch.ones(3, 7), labels, r"\[3, 7\] and targets \[3\]"),
    ):
        with pytest.raises(ShapeError, match=together + got):
            loss(embeddings, targets)
    with pytest.raises(DataError, match="at least one example, got 0"):
        loss(torch.zeros(0, 8), labels[:0])
    with pytest.raises(DataError, match=r"integer targets >= 0, got .*int64 from -1"):
        loss(torch.ones(3, 8), labels - 1)
    with pytest.raises(DataError, match=r"integer targets >= 0, got .*float32"):
        loss(torch.ones(3, 8), labels.float())
    zero = torch.ones(3, 8) * torch.tensor([[1.0], [0.0], [0.0]])
    with pytest.raises(
        DataError, match=r"above 0, got zeros for example 1 \(2 of 3 are zero\)"
    ):
        loss(zero, labels)


def test_bad_settings_are_named():
    with pytest.raises(ConfigError, match="unknown embedding loss 'nope'; known: fast"):
        make("nope")
    with pytest.raises(
        ConfigError, match="embedding loss 'margin' has no setting nu, m; known: alpha,"
    ):
        make("margin", nu=0, alpha=0.2, m=1)
    for name in NAMES:
        with pytest.raises(
            ConfigError, match="an embedding loss needs classes >= 1, got classes=0"
        ):
            make(name, classes=0)

"""What every registered loss promises."""

import pytest
import torch

from baselines.losses import LOSSES
from metricopt.errors import DataError, ShapeError

NAMES = list(LOSSES)
ONE_LOGIT_ONLY = {"lovasz-hinge"}
CASES = [
    (name, columns)
    for name in NAMES
    for columns in (1, 2, 4)
    if columns == 1 or name not in ONE_LOGIT_ONLY
]


def example(columns, *, dtype=torch.float64, examples=30):
    generator = torch.Generator().manual_seed(columns)
    outputs = torch.randn(examples, columns, generator=generator, dtype=dtype)
    targets = torch.randint(max(columns, 2), (examples,), generator=generator)
    return outputs.requires_grad_(), targets


def test_the_losses_are_found():
    assert NAMES == ["cross-entropy", "lovasz-hinge", "lovasz-softmax"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("name", "columns"), CASES)
def test_scalar_of_the_same_dtype_with_finite_gradient(name, columns, dtype):
    outputs, targets = example(columns, dtype=dtype)
    loss = LOSSES.get(name)(outputs, targets)
    loss.backward()
    assert loss.shape == ()
    assert loss.dtype == dtype
    assert loss.item() > 0
    assert outputs.grad.isfinite().all()
    assert outputs.grad.abs().sum() > 0


@pytest.mark.parametrize(("name", "columns"), CASES)
def test_order_of_examples_does_not_matter(name, columns):
    outputs, targets = example(columns)
    loss = LOSSES.get(name)
    torch.testing.assert_close(
        loss(outputs, targets), loss(outputs.flip(0), targets.flip(0))
    )


@pytest.mark.parametrize(("name", "columns"), CASES)
def test_gradient_equals_finite_differences(name, columns):
    outputs, targets = example(columns, examples=8)
    assert torch.autograd.gradcheck(lambda z: LOSSES.get(name)(z, targets), (outputs,))


@pytest.mark.parametrize(("name", "columns"), CASES)
def test_sure_and_right_outputs_cost_nothing_and_wrong_ones_much(name, columns):
    _, targets = example(columns)
    right = torch.nn.functional.one_hot(targets).double() * 80 - 40
    right = right[:, 1:] if columns == 1 else right
    loss = LOSSES.get(name)
    assert loss(right, targets).item() == pytest.approx(0, abs=1e-12)
    assert loss(-right, targets).item() > 0.5


@pytest.mark.parametrize(("name", "columns"), CASES)
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only_is_finite(name, columns, label):
    outputs, targets = example(columns)
    loss = LOSSES.get(name)(outputs, torch.full_like(targets, label))
    loss.backward()
    assert loss.isfinite()
    assert outputs.grad.isfinite().all()


@pytest.mark.parametrize(("name", "columns"), CASES)
def test_descends(name, columns):
    outputs, targets = example(columns)
    loss = LOSSES.get(name)
    first = loss(outputs, targets)
    optimizer = torch.optim.SGD([outputs], lr=5.0)
    for _ in range(200):
        optimizer.zero_grad()
        loss(outputs, targets).backward()
        optimizer.step()
    assert loss(outputs, targets) < 0.3 * first


@pytest.mark.parametrize("name", NAMES)
def test_bad_arguments_are_named(name):
    loss = LOSSES.get(name)
    with pytest.raises(
        ShapeError, match=r"outputs \[N, C\] and targets \[N\], got outputs \[3\]"
    ):
        loss(torch.zeros(3), torch.zeros(3, dtype=torch.long))
    with pytest.raises(ShapeError, match=r"outputs \[3, 1\] and targets \[2\]"):
        loss(torch.zeros(3, 1), torch.zeros(2, dtype=torch.long))
    with pytest.raises(DataError, match="at least one example, got 0"):
        loss(torch.zeros(0, 1), torch.zeros(0, dtype=torch.long))
    with pytest.raises(DataError, match=r"integer targets in \[0, 1\].* 0 to 2"):
        loss(torch.zeros(3, 1), torch.tensor([0, 1, 2]))
    with pytest.raises(DataError, match=r"integer targets.*float32"):
        loss(torch.zeros(3, 1), torch.zeros(3))


def test_hinge_wants_one_logit():
    with pytest.raises(ShapeError, match=r"one logit, outputs \[N, 1\], got \[3, 2\]"):
        LOSSES.get("lovasz-hinge")(torch.zeros(3, 2), torch.tensor([0, 1, 1]))


def test_cross_entropy_by_hand():
    loss = LOSSES.get("cross-entropy")
    logit = torch.tensor([[0.0], [torch.log(torch.tensor(3.0))]])
    expected = -(torch.log(torch.tensor(0.5)) + torch.log(torch.tensor(0.25))) / 2
    torch.testing.assert_close(loss(logit, torch.tensor([1, 0])), expected)
    columns = torch.cat([torch.zeros_like(logit), logit], 1)
    torch.testing.assert_close(loss(columns, torch.tensor([1, 0])), expected)

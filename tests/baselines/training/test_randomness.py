"""torch's global generator is borrowed, goes on where it was left, and is put back."""

import torch
from torch import nn

from baselines.training.randomness import GlobalRandomness, draws_globally

CPU = torch.device("cpu")


def test_uses_go_on_from_each_other_and_leave_no_trace():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    randomness = GlobalRandomness(7, CPU)
    parts = []
    for count in (2, 3):
        with randomness.in_use():
            parts.append(torch.rand(count))
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(3)
    with torch.random.fork_rng([]):
        torch.manual_seed(7)
        expected = [torch.rand(2), torch.rand(3)]
    assert torch.equal(torch.cat(parts), torch.cat(expected))


def test_a_state_can_be_taken_elsewhere():
    first, second = GlobalRandomness(7, CPU), GlobalRandomness(8, CPU)
    with first.in_use():
        torch.rand(5)
    second.restore(first.state())
    draws = []
    for randomness in (first, second):
        with randomness.in_use():
            draws.append(torch.rand(4))
    assert torch.equal(*draws)


def test_dropout_is_found_wherever_it_is():
    assert draws_globally(
        nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Dropout2d(0.1)))
    )
    assert not draws_globally(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))

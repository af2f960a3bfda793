"""Self-paced learning: which examples are in, and when."""

import pytest
import torch

from baselines.learned_losses.example_weights import cross_entropies
from baselines.network_methods.self_paced import SelfPaced, _Pace
from baselines.network_methods.surrogate_loss import SurrogateLoss
from baselines.training.optimization import Training
from tests.baselines.toy_images import train_on_images


def test_the_share_rises_in_a_straight_line():
    method = SelfPaced(start=0.5, until=0.5)
    shares = [method.share(step, 100) for step in (0, 25, 50, 99)]
    assert shares == [0.5, 0.75, 1.0, 1.0]
    assert SelfPaced(start=0.3, until=0.0).share(0, 100) == 1.0


def test_the_easiest_examples_of_a_mini_batch_are_trained_on():
    pace = _Pace(SelfPaced(), steps_per_epoch=10)
    pace.before_step(0, 100)
    logits = torch.randn(8, 3, requires_grad=True)
    targets = torch.arange(8) % 3
    losses = cross_entropies(logits, targets)
    easy = losses.argsort()[:4]
    loss = pace.loss(logits, targets)
    assert torch.allclose(loss, losses[easy].mean())
    loss.backward()
    taught = logits.grad.abs().sum(1) > 0
    assert set(taught.nonzero().flatten().tolist()) == set(easy.tolist())
    assert (pace.taken, pace.offered) == (4, 8)


def test_one_threshold_is_that_of_the_epoch_before():
    pace = _Pace(SelfPaced(form="global", until=1.0), steps_per_epoch=2)
    targets = torch.zeros(4, dtype=torch.long)

    def outputs(values):
        return torch.tensor([[value, 0.0] for value in values])

    pace.before_step(0, 4)
    pace.loss(outputs([4.0, 3.0, 2.0, 1.0]), targets)
    pace.before_step(1, 4)
    pace.loss(outputs([4.0, 3.0, 2.0, 1.0]), targets)
    pace.taken = 0
    pace.before_step(2, 4)  # the share is 3/4: examples as easy as those of 2.0
    pace.loss(outputs([9.0, 8.0, 7.0, 2.0]), targets)
    assert pace.taken == 4
    pace.before_step(3, 4)
    loss = pace.loss(outputs([-5.0, -6.0, -7.0, -8.0]), targets)
    assert pace.taken == 5  # none is as easy: the easiest one is trained on
    assert torch.allclose(loss, cross_entropies(outputs([-5.0]), targets[:1])[0])


@pytest.mark.parametrize("form", ["mini-batch", "global"])
def test_with_all_examples_from_the_start_it_is_cross_entropy(form):
    training = Training(2, 0.05, optimizer="sgd")
    result, _ = train_on_images(SelfPaced(start=1.0, form=form), training)
    plain, _ = train_on_images(SurrogateLoss(), training)
    assert result.notes["examples_in"] == 1
    assert result.queries == 0
    weights = result.network.state_dict()
    for name, weight in plain.network.state_dict().items():
        torch.testing.assert_close(weights[name], weight)

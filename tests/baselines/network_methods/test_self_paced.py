"""Self-paced learning: which examples are in, and when."""

import pytest
import torch

from baselines.learned_losses.example_weights import cross_entropies
from baselines.network_methods.self_paced import SelfPaced, _Pace
from baselines.training.batches import PermutedBatches
from baselines.training.optimization import Training
from baselines.validation import Validation
from metricopt.errors import ConfigError
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric
from tests.baselines.toy_images import ToyImages, image_network


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


def test_with_all_examples_from_the_start_it_is_cross_entropy():
    results = []
    for settings in ({"start": 1.0}, {"start": 1.0, "form": "global"}):
        result = SelfPaced(**settings).train(
            image_network(),
            PermutedBatches(ToyImages(), 16),
            Validation(make_metric("mcr"), ToyImages(seed=1)),
            training=Training(2, 0.05, optimizer="sgd"),
            generator=make_generator("paced"),
        )
        results.append(result)
    assert results[0].notes["examples_in"] == 1
    assert results[0].queries == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": 0.0}, "start=0.0"),
        ({"until": 2.0}, "until=2.0"),
        ({"form": "easy"}, "form must be one of 'mini-batch', 'global', got 'easy'"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        SelfPaced(**settings)

"""Training with registered losses, with and without cross-entropy before."""

import pytest

from baselines.losses.contract import LOSSES
from baselines.network_methods.surrogate_loss import SurrogateLoss
from baselines.training.batches import SampledBatches
from baselines.training.optimization import Training
from baselines.training.prediction import predict
from baselines.validation import Validation
from metricopt.errors import ConfigError, ShapeError
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric

JACCARD = make_metric("jaccard")
TRAINING = Training(epochs=8, learning_rate=0.02)


def run(method, network, data):
    return method.train(
        network,
        SampledBatches(data.train, 64),
        Validation(JACCARD, data.observe, limit=0),
        training=TRAINING,
        generator=make_generator("surrogate"),
    )


# Large-margin softmax wants a head of its own.
@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "large-margin"])
def test_every_loss_improves_the_jaccard_index(loss, network, data):
    untouched = JACCARD.value(predict(network, data.test.inputs), data.test.targets)
    result = run(SurrogateLoss(loss=loss), network, data)
    reached = JACCARD.value(result.predict(data.test.inputs), data.test.targets)
    assert reached > max(0.85, untouched)
    assert (result.queries, result.threshold) == (0, 0.0)
    assert result.gradient_steps == 8 * 5
    assert 1 <= result.notes["best_epoch"] <= 8


def test_pretraining_comes_first_and_is_counted(network, data):
    epochs = []
    method = SurrogateLoss(
        loss="lovasz-hinge", pretrain_epochs=3, on_epoch=epochs.append
    )
    result = run(method, network, data)
    assert [epoch.number for epoch in epochs] == [1, 2, 3, *range(1, 9)]
    assert result.gradient_steps == 11 * 5
    # Cross-entropy before, hinge after: the figures are on different scales.
    assert result.notes["observe_loss"] == min(e.observe_score for e in epochs[3:])


def test_losses_that_do_not_fit_are_named(network, data):
    with pytest.raises(ConfigError, match="unknown loss 'nope'; known: aucpr, "):
        run(SurrogateLoss(loss="nope"), network, data)
    with pytest.raises(ShapeError, match="'large-margin' needs 2 outputs per class, g"):
        run(SurrogateLoss(loss="large-margin"), network, data)

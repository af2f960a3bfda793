"""Training with registered losses, with and without cross-entropy before."""

import pytest

from baselines.losses import LOSSES
from baselines.network_method import Schedule, predict
from baselines.surrogate_loss import SurrogateLoss
from metricopt.errors import ConfigError
from metricopt.metrics import make_metric
from metricopt.seeding import make_generator

JACCARD = make_metric("jaccard")
SCHEDULE = Schedule(epochs=8, batch_size=64, learning_rate=0.02, balanced=False)


def run(method, network, data):
    return method.train(
        network,
        data.train,
        data.observe,
        metric=JACCARD,
        schedule=SCHEDULE,
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


def test_bad_settings_are_named(network, data):
    with pytest.raises(ConfigError, match="pretrain_epochs must be at least 0, got -1"):
        SurrogateLoss(pretrain_epochs=-1)
    with pytest.raises(ConfigError, match="unknown loss 'nope'; known: aucpr, "):
        run(SurrogateLoss(loss="nope"), network, data)
    with pytest.raises(ConfigError, match=r"needs classes >= 2, .* got classes=1"):
        run(SurrogateLoss(loss="large-margin"), network, data)

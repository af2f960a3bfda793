"""ReLoss: logits, a surrogate, and a training with it."""

import pytest
import torch
from safetensors.torch import save_file

from baselines.learned_losses.reloss_surrogate import Fitting
from baselines.network_methods.reloss import ReLoss
from baselines.training.batches import PermutedBatches
from baselines.training.optimization import Training
from baselines.validation import Validation
from metricopt.errors import ConfigError, DataError, ShapeError
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric
from tests.baselines.toy_images import ToyImages, image_network

TRAINING = Training(10, 0.05, optimizer="sgd")
FITTING = Fitting(epochs=4, groups=8, group_size=8, penalty=0.1, per_sample=True)


def trained(training=TRAINING, **settings):
    validation = Validation(make_metric("mcr"), ToyImages(seed=1))
    result = ReLoss(**{"fitting": FITTING} | settings).train(
        image_network(),
        PermutedBatches(ToyImages(), 16),
        validation,
        training=training,
        generator=make_generator("reloss"),
    )
    return result, validation


def test_everything_is_counted():
    result, validation = trained()
    # 640 logits, 576 to learn from, 9 steps of 8 groups an epoch, and 256 held out.
    assert result.notes["group_queries"] == 4 * 9 * 8 + 256
    assert result.queries == validation.queries
    assert result.queries == 4 * 9 * 8 + 256 + 10 + 64 // 8
    assert result.gradient_steps == 2 * 10 * 4
    assert result.logits.shape == (640, 4)
    assert not any(weight.requires_grad for weight in result.surrogate.parameters())


def test_the_surrogate_ranks_better_than_cross_entropy():
    notes = trained()[0].notes
    assert notes["rank_correlation"] > notes["rank_correlation_cross_entropy"]
    assert len(notes["rank_correlations"]) == FITTING.epochs
    assert -1 <= notes["rank_correlation_plain"] <= 1


def test_fewer_logits_are_drawn_over_the_whole_training():
    assert trained(recorded=320)[0].logits.shape == (320, 4)


def test_logits_are_recorded_once_and_used_again(tmp_path):
    first, _ = trained()
    path = tmp_path / "logits.safetensors"
    first.save_logits(path)
    second, _ = trained(logits=str(path))
    assert second.gradient_steps == 10 * 4
    assert second.logits.equal(first.logits)


def test_logits_of_another_number_of_classes_are_refused(tmp_path):
    path = tmp_path / "logits.safetensors"
    save_file({"logits": torch.randn(3_000, 7)}, path)
    with pytest.raises(ShapeError, match=r"logits \[N, 4\].* got \[3000, 7\]"):
        trained(logits=str(path))


@pytest.mark.parametrize("content", ["missing", "other", "torn", "nan"])
def test_a_file_without_logits_is_refused(tmp_path, content):
    path = tmp_path / "logits.safetensors"
    if content == "other":
        save_file({"weights": torch.ones(2)}, path)
    elif content == "torn":
        path.write_bytes(b"\xff" * 20)
    elif content == "nan":
        save_file({"logits": torch.full((3_000, 4), torch.nan)}, path)
    with pytest.raises(DataError, match="holds"):
        trained(logits=str(path))


def test_settings_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="recorded must be >= 1, got 0"):
        ReLoss(recorded=0)

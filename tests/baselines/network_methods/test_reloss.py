"""ReLoss: logits, a surrogate, and a training with it."""

from dataclasses import replace

import pytest
import torch

from baselines.learned_losses.reloss_surrogate import Fitting
from baselines.network_methods import reloss
from baselines.network_methods.reloss import ReLoss
from baselines.training.optimization import Training
from tests.baselines.toy_images import train_on_images

FITTING = Fitting(epochs=4, groups=8, group_size=8, penalty=0.1)


def trained(rate=0.05, epochs=10, fitting=FITTING, **settings):
    training = Training(epochs, rate, optimizer="sgd")
    return train_on_images(ReLoss(fitting=fitting, **settings), training)


@pytest.fixture
def recordings(monkeypatch):
    """Return a list that fills with what surrogates are fitted to."""
    seen, fit = [], reloss.fit_surrogate

    def fitted(kind, recorded, *more):
        seen.append(recorded)
        return fit(kind, recorded, *more)

    monkeypatch.setattr(reloss, "fit_surrogate", fitted)
    return seen


def test_everything_is_counted():
    result, validation = trained()
    # 640 logits, 576 to learn from, 9 steps of 8 groups an epoch, and 256 held out.
    assert result.notes["group_queries"] == 4 * 9 * 8 + 256
    assert result.queries == validation.queries
    assert result.queries == 4 * 9 * 8 + 256 + 10 + 64 // 8
    assert result.gradient_steps == 2 * 10 * 4


def test_the_surrogate_ranks_better_than_cross_entropy():
    notes = trained()[0].notes
    assert notes["rank_correlation"] > notes["rank_correlation_cross_entropy"]
    assert len(notes["rank_correlations"]) == FITTING.epochs
    assert -1 <= notes["rank_correlation_plain"] <= 1


def test_logits_are_recorded_evenly_over_the_whole_training(monkeypatch):
    shapes, fit = [], reloss.fit_surrogate

    def fitted(kind, recorded, *more):
        shapes.append(tuple(recorded.outputs.shape))
        assert recorded.targets.shape == recorded.outputs.shape[:1]
        found = fit(kind, recorded, *more)
        assert not any(weight.requires_grad for weight in found.surrogate.parameters())
        return found

    monkeypatch.setattr(reloss, "fit_surrogate", fitted)
    trained()
    trained(recorded=320)
    assert shapes == [(640, 4), (320, 4)]


def test_targets_are_those_of_the_recorded_outputs(recordings):
    trained(epochs=20)
    (recorded,) = recordings
    last = slice(-64, None)
    right = recorded.outputs[last].argmax(-1) == recorded.targets[last]
    assert right.double().mean() > 0.6  # by chance .25


def test_a_share_of_the_epochs_is_recorded(recordings):
    result, _ = trained(recording=0.3)
    assert result.gradient_steps == (3 + 10) * 4
    assert len(recordings[0].outputs) == 3 * 64
    # The share that is kept is one of the shorter training.
    trained(recording=0.3, recorded=96)
    assert len(recordings[1].outputs) == 96
    assert trained(recording=0.01)[0].gradient_steps == (1 + 10) * 4


def test_forms_at_different_rates_learn_from_the_same_recording(recordings):
    anchored = replace(FITTING, anchored=True)
    trained(0.1, recording=0.3, recording_rate=0.05)
    trained(0.02, recording=0.3, recording_rate=0.05, fitting=anchored)
    trained(0.02, recording=0.3)
    first, second, other = recordings
    assert torch.equal(first.outputs, second.outputs)
    assert torch.equal(first.targets, second.targets)
    assert not torch.equal(first.outputs, other.outputs)


def test_notes_tell_the_learned_loss():
    notes = trained(fitting=replace(FITTING, slope_of_base=True))[0].notes
    assert len(notes["surrogate_curve"]) == 101
    scale = notes["slope_base"] / notes["slope"]
    assert notes["surrogate_scale"] == pytest.approx(scale, rel=1e-5)
    for name in ("cost", "loss", "base"):
        assert len(notes[f"held_out_{name}"]) == FITTING.held_out

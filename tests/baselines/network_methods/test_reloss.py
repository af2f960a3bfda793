"""ReLoss: logits, a surrogate, and a training with it."""

from baselines.learned_losses.reloss_surrogate import Fitting
from baselines.network_methods import reloss
from baselines.network_methods.reloss import ReLoss
from baselines.training.optimization import Training
from tests.baselines.toy_images import train_on_images

FITTING = Fitting(epochs=4, groups=8, group_size=8, penalty=0.1)


def trained(**settings):
    training = Training(10, 0.05, optimizer="sgd")
    return train_on_images(ReLoss(fitting=FITTING, **settings), training)


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
        assert len(recorded.targets) == 0
        found = fit(kind, recorded, *more)
        assert not any(weight.requires_grad for weight in found.surrogate.parameters())
        return found

    monkeypatch.setattr(reloss, "fit_surrogate", fitted)
    trained()
    trained(recorded=320)
    assert shapes == [(640, 4), (320, 4)]

"""What is refused of a loss, of episodes and of a checkpoint of something else."""

import pytest
from torch import nn

from metricopt.errors import ConfigError, LossError
from metricopt.fewshot import (
    Episodes,
    MetaLearner,
    MetaTraining,
    meta_train,
    query_outputs,
)
from tests.metricopt.fewshot.drawn_episodes import line_learner, lines, perceptron

SHORT = MetaTraining(iterations=2, episodes=2, validate_every=1, save_every=0)


def test_a_loss_that_does_not_depend_on_the_weights_is_refused():
    def hidden(outputs, targets):
        return nn.functional.mse_loss(outputs.detach(), targets)

    learner = MetaLearner(perceptron(1, 1), hidden)
    with pytest.raises(LossError, match="must depend on the weights"):
        meta_train(learner, lines, SHORT)


def test_parts_of_episodes_that_are_no_tensors_are_refused():
    def arrays(numbers):
        return Episodes(*(each.numpy() for each in lines(numbers).tensors()))

    with pytest.raises(ConfigError, match="each part of Episodes must be a tensor"):
        meta_train(line_learner(), arrays, SHORT)


def test_a_query_that_the_network_does_not_take_is_named():
    norm = nn.BatchNorm1d(6, track_running_stats=False)
    learner = MetaLearner(
        nn.Sequential(nn.Linear(1, 6), norm, nn.Linear(6, 1)), nn.functional.mse_loss
    )

    def of_one(numbers):
        a, b, c, d = lines(numbers).tensors()
        return Episodes(a, b, c[:, :1], d[:, :1])

    said = (
        r"the network must take float32 \[1, 1\], but raised ValueError: Expected more"
    )
    with pytest.raises(ConfigError, match=said):
        meta_train(learner, of_one, SHORT)
    with pytest.raises(ConfigError, match=said):
        query_outputs(learner, of_one([1, 2]))


def with_layer(layer):
    network = nn.Sequential(nn.Linear(1, 6), layer, nn.Linear(6, 1))
    network.load_state_dict(perceptron(1, 1).state_dict())
    return MetaLearner(network, nn.functional.mse_loss)


def test_a_checkpoint_of_another_network_or_without_a_score_is_refused(tmp_path):
    kept = {"checkpoint": tmp_path / "kept", "show": False}
    meta_train(with_layer(nn.Dropout(0.1)), lines, SHORT, **kept)
    meta_train(with_layer(nn.Dropout(0.1)), lines, SHORT, **kept)
    for other in (nn.Dropout(0.2), nn.Tanh()):
        with pytest.raises(ConfigError, match="expected network"):
            meta_train(with_layer(other), lines, SHORT, **kept)
    scored = {"validate": lambda learner: 1.0, **kept}
    with pytest.raises(ConfigError, match="expected validated True, got validated F"):
        meta_train(with_layer(nn.Dropout(0.1)), lines, SHORT, **scored)

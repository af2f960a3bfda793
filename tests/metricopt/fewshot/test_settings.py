"""What is refused before a meta-training begins: settings and arguments."""

import math
import re

import pytest

from metricopt.errors import ConfigError
from metricopt.fewshot import MetaTraining, meta_train
from tests.metricopt.fewshot.drawn_episodes import blob_learner, blobs


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"iterations": 0}, "meta-training needs iterations >= 1, got iterations=0"),
        ({"episodes": 0}, "episodes >= 1, got episodes=0"),
        ({"iterations": 1.5}, "iterations must be a whole number, got 1.5"),
        ({"rate": 0.0}, "rate in (0, inf), got rate=0.0"),
        ({"rate": math.inf}, "rate in (0, inf), got rate=inf"),
        ({"rate": None}, "meta-training needs rate, got None"),
        ({"geometry_rate": 0.0}, "geometry_rate in (0, inf), got geometry_rate=0.0"),
        ({"geometry_rate": "x"}, "geometry_rate in (0, inf), got geometry_rate='x'"),
        ({"clip": 0.0}, "clip > 0, got clip=0.0"),
        ({"weight_decay": -1.0}, "weight_decay in [0, inf), got weight_decay=-1.0"),
        ({"validate_every": 0}, "validate_every >= 1, got validate_every=0"),
        ({"save_every": -1}, "save_every >= 0, got save_every=-1"),
        ({"optimizer": "lbfgs"}, "optimizer must be one of 'adam', 'sgd', got"),
        ({"schedule": "linear"}, "schedule must be one of 'constant', 'cosine'"),
        ({"batching": "map"}, "batching must be one of 'loop', 'vmap', got 'map'"),
    ],
)
def test_a_setting_out_of_its_range_is_named(changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        MetaTraining(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"episodes": blobs([0])}, "episodes must be a function from numbers to"),
        ({"settings": {"iterations": 1}}, "settings must be MetaTraining(...), got"),
        ({"validate": "accuracy"}, "validate must be a function from the learner, got"),
    ],
)
def test_what_is_no_argument_is_refused_before_training(changes, message):
    given = {"episodes": blobs, "settings": MetaTraining(iterations=1), **changes}
    with pytest.raises(ConfigError, match=re.escape(message)):
        meta_train(blob_learner(), **given)

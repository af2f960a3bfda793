"""Settings out of their ranges are refused, by name and value."""

import re

import pytest

from baselines.learned_losses.reloss_surrogate import Fitting
from baselines.network_methods.ala import AdaptiveLossAlignment
from baselines.network_methods.cost_sensitive import CostSensitive
from baselines.network_methods.l2t_dlf import LearningToTeach
from baselines.network_methods.learned_surrogate import LearnedSurrogate
from baselines.network_methods.moew import MetricOptimizedExampleWeights
from baselines.network_methods.reloss import ReLoss
from baselines.network_methods.self_paced import SelfPaced
from baselines.network_methods.surrogate_loss import SurrogateLoss
from metricopt.errors import ConfigError

CASES = [
    (AdaptiveLossAlignment, {"period": 0}, "ALA needs period >= 1, got period=0"),
    (AdaptiveLossAlignment, {"updates": 0}, "updates >= 1, got updates=0"),
    (AdaptiveLossAlignment, {"children": 0}, "children >= 1, got children=0"),
    (AdaptiveLossAlignment, {"measured": 0}, "measured >= 1, got measured=0"),
    (AdaptiveLossAlignment, {"step": 1.5}, "step in (0, 1], got step=1.5"),
    (AdaptiveLossAlignment, {"gamma": 0.0}, "gamma in (0, 1], got gamma=0.0"),
    (AdaptiveLossAlignment, {"form": "random"}, "'confusion', got 'random'"),
    (AdaptiveLossAlignment, {"second": "yes"}, "second must be one of "),
    (CostSensitive, {"grid": (0.5, 1.0)}, "t in (0, 1), got t=1.0"),
    (LearningToTeach, {"students": 0}, "students >= 1, got students=0"),
    (LearningToTeach, {"window": 0}, "window >= 1, got window=0"),
    (LearningToTeach, {"held_out": 0}, "held_out >= 1, got held_out=0"),
    (LearningToTeach, {"slots": 0}, "slots >= 1, got slots=0"),
    (LearningToTeach, {"teaching_epochs": -1}, ">= 0, got teaching_epochs=-1"),
    (LearningToTeach, {"student_rate": 0.0}, "> 0, got student_rate=0.0"),
    (LearnedSurrogate, {"eager_steps": 0}, "eager_steps >= 1, got eager_steps=0"),
    (LearnedSurrogate, {"eager_share": 1.5}, "[0, 1], got eager_share=1.5"),
    (LearnedSurrogate, {"warm_up": -1}, "warm_up >= 0, got warm_up=-1"),
    (LearnedSurrogate, {"surrogate_rate": 0.0}, "> 0, got surrogate_rate=0.0"),
    (LearnedSurrogate, {"width": 0}, "width >= 1, got width=0"),
    (MetricOptimizedExampleWeights, {"rounds": 0}, "rounds >= 1, got rounds=0"),
    (MetricOptimizedExampleWeights, {"per_round": 0}, ">= 1, got per_round=0"),
    (MetricOptimizedExampleWeights, {"search_epochs": -1}, "got search_epochs=-1"),
    (MetricOptimizedExampleWeights, {"radius": 0.0}, "radius > 0, got radius=0.0"),
    (ReLoss, {"recorded": 0}, "ReLoss needs recorded >= 1, got recorded=0"),
    (Fitting, {"objective": "rank"}, "'regression', got 'rank'"),
    (Fitting, {"epochs": 0}, "epochs >= 1, got epochs=0"),
    (Fitting, {"groups": 1}, "groups >= 2, got groups=1"),
    (Fitting, {"group_size": 0}, "group_size >= 1, got group_size=0"),
    (Fitting, {"penalty": -1.0}, "penalty >= 0, got penalty=-1.0"),
    (SelfPaced, {"start": 0.0}, "start in (0, 1], got start=0.0"),
    (SelfPaced, {"until": 2.0}, "until in [0, 1], got until=2.0"),
    (SelfPaced, {"form": "easy"}, "'mini-batch', 'global', got 'easy'"),
    (SurrogateLoss, {"pretrain_epochs": -1}, ">= 0, got pretrain_epochs=-1"),
]


@pytest.mark.parametrize(("kind", "settings", "message"), CASES)
def test_a_setting_out_of_its_range_is_named_with_its_value(kind, settings, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        kind(**settings)

"""Settings out of their ranges are refused, by name and value."""

import math
import re
from functools import partial

import pytest
import torch

from baselines.detection_losses.blackbox_ap import DetectionAP
from baselines.embedding_losses.contract import make_embedding_loss
from baselines.learned_losses.reloss_surrogate import Fitting
from baselines.losses.aucpr import AUCPRLoss
from baselines.losses.large_margin import Annealing, LargeMarginSoftmax
from baselines.network_methods.ala import AdaptiveLossAlignment
from baselines.network_methods.cost_sensitive import CostSensitive
from baselines.network_methods.l2t_dlf import LearningToTeach
from baselines.network_methods.learned_surrogate import LearnedSurrogate
from baselines.network_methods.moew import MetricOptimizedExampleWeights
from baselines.network_methods.reloss import ReLoss
from baselines.network_methods.self_paced import SelfPaced
from baselines.network_methods.surrogate_loss import SurrogateLoss
from baselines.optimizers.powersign import PowerSign
from baselines.post_hoc.class_offsets import OffsetSearch
from baselines.post_hoc.cma_offsets import OffsetEvolution
from baselines.post_hoc.optuna_offsets import OffsetTrials
from baselines.training.optimization import Training
from metricopt.errors import ConfigError


def embedding(name):
    return partial(make_embedding_loss, name, classes=9, size=8)


def power_sign(**settings):
    return PowerSign([torch.nn.Parameter(torch.ones(1))], **settings)


def training(**settings):
    return Training(**{"epochs": 1, "learning_rate": 0.1} | settings)


def annealing(**settings):
    return Annealing(**{"gamma": 1e-5, "least": 5.0, "steps": 9} | settings)


CASES = [
    (AdaptiveLossAlignment, {"period": 0}, "ALA needs period >= 1, got period=0"),
    (AdaptiveLossAlignment, {"updates": 0}, "updates >= 1, got updates=0"),
    (AdaptiveLossAlignment, {"children": 0}, "children >= 1, got children=0"),
    (AdaptiveLossAlignment, {"measured": 0}, "measured >= 1, got measured=0"),
    (AdaptiveLossAlignment, {"step": 1.5}, "step in (0, 1], got step=1.5"),
    (AdaptiveLossAlignment, {"gamma": 0.0}, "gamma in (0, 1], got gamma=0.0"),
    (AdaptiveLossAlignment, {"form": "random"}, "'level', got 'random'"),
    (AdaptiveLossAlignment, {"second": "yes"}, "second must be one of "),
    (AdaptiveLossAlignment, {"loss": "triplet"}, "loss must be one of "),
    (AdaptiveLossAlignment, {"framework": "fastap"}, "framework must be one of "),
    (AdaptiveLossAlignment, {"functions": "own"}, "functions must be one of "),
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
    (ReLoss, {"recording": 0.0}, "recording in (0, 1], got recording=0.0"),
    (ReLoss, {"recording": 1.5}, "recording in (0, 1], got recording=1.5"),
    (ReLoss, {"recording_rate": 0.0}, "recording_rate > 0, got recording_rate=0.0"),
    (Fitting, {"unit_slope": True, "slope_of_base": True}, "got both"),
    (Fitting, {"objective": "rank"}, "'regression', got 'rank'"),
    (Fitting, {"epochs": 0}, "epochs >= 1, got epochs=0"),
    (Fitting, {"groups": 1}, "groups >= 2, got groups=1"),
    (Fitting, {"group_size": 0}, "group_size >= 1, got group_size=0"),
    (Fitting, {"penalty": -1.0}, "penalty >= 0, got penalty=-1.0"),
    (SelfPaced, {"start": 0.0}, "start in (0, 1], got start=0.0"),
    (SelfPaced, {"until": 2.0}, "until in [0, 1], got until=2.0"),
    (SelfPaced, {"form": "easy"}, "'mini-batch', 'global', got 'easy'"),
    (DetectionAP, {"margin": -0.1}, "margin >= 0, got margin=-0.1"),
    (DetectionAP, {"lam": 0}, "the AP loss needs lam > 0, got lam=0"),
    (DetectionAP, {"interclass": 1.5}, "interclass in [0, 1], got interclass=1.5"),
    (embedding("fastap"), {"bins": 0}, "fastap needs bins >= 1, got bins=0"),
    (embedding("triplet"), {"margin": 0}, "triplet needs margin > 0, got margin=0"),
    (embedding("margin"), {"alpha": 0}, "margin needs alpha > 0, got alpha=0"),
    (embedding("multi-similarity"), {"alpha": 0}, "alpha > 0, got alpha=0"),
    (embedding("multi-similarity"), {"beta": -1}, "beta > 0, got beta=-1"),
    (embedding("recall"), {"lam": 0}, "recall needs lam > 0, got lam=0"),
    (embedding("recall"), {"size": 0}, "an embedding loss needs size >= 1, got size=0"),
    (partial(AUCPRLoss, 3), {"anchors": 0}, "aucpr needs anchors >= 1, got anchors=0"),
    (partial(AUCPRLoss, 3), {"dual_rate": 0.0}, "dual_rate > 0, got dual_rate=0.0"),
    (LargeMarginSoftmax, {"classes": 1}, "large-margin needs classes >= 2, got "),
    (partial(LargeMarginSoftmax, 3), {"margin": 0}, "margin >= 1, got margin=0"),
    (partial(LargeMarginSoftmax, 3), {"annealing": -0.1}, ">= 0, got annealing=-0.1"),
    (annealing, {"steps": 0}, "annealing needs steps >= 1, got steps=0"),
    (annealing, {"start": -1.0}, "start >= 0, got start=-1.0"),
    (annealing, {"gamma": -1.0}, "gamma >= 0, got gamma=-1.0"),
    (annealing, {"least": -1.0}, "least >= 0, got least=-1.0"),
    (power_sign, {"lr": 0}, "PowerSign needs lr > 0, got lr=0"),
    (power_sign, {"beta": 1.0}, "beta in [0, 1), got beta=1.0"),
    (power_sign, {"base": 0}, "base > 0, got base=0"),
    (power_sign, {"weight_decay": -1}, "weight_decay >= 0, got weight_decay=-1"),
    (power_sign, {"decay_steps": 0}, "decay_steps >= 1, got decay_steps=0"),
    (training, {"epochs": 0}, "training needs epochs >= 1, got epochs=0"),
    (training, {"learning_rate": 0.0}, "learning_rate > 0, got learning_rate=0.0"),
    (training, {"weight_decay": -1.0}, "weight_decay >= 0, got weight_decay=-1.0"),
    (training, {"warm_up": 1.0}, "warm_up in (0, 1), got warm_up=1.0"),
    (training, {"momentum": 1.0}, "momentum in [0, 1), got momentum=1.0"),
    (training, {"head_factor": 0.0}, "head_factor > 0, got head_factor=0.0"),
    (training, {"head_factor": 2.0, "optimizer": "sgd"}, "got 2.0 with 'sgd'"),
    (training, {"head_factor": 2.0, "optimizer": "powersign"}, "with 'powersign'"),
    (
        training,
        {"optimizer": "nope"},
        "unknown optimizer of networks 'nope'; known: adam, ",
    ),
    (training, {"schedule": "nope"}, "schedule must be one of 'one-cycle', "),
    (training, {"precision": "nope"}, "'fastest', got 'nope'"),
    (
        OffsetSearch,
        {"passes": 0},
        "a search of offsets needs passes >= 1, got ",
    ),
    (OffsetSearch, {"candidates": 1}, "candidates >= 2, got candidates=1"),
    (OffsetSearch, {"reach": 0.0}, "reach in (0, inf), got reach=0.0"),
    (OffsetSearch, {"reach": math.nan}, "reach in (0, inf), got reach=nan"),
    (OffsetSearch, {"max_queries": 0}, "max_queries >= 1, got max_queries=0"),
    (OffsetEvolution, {"max_queries": 0}, "max_queries >= 1, got max_queries=0"),
    (OffsetEvolution, {"deviation": 0.0}, "deviation > 0, got deviation=0.0"),
    (OffsetTrials, {"reach": 0.0}, "a study of offsets needs reach in (0, inf), got"),
    (OffsetTrials, {"max_queries": 0}, "max_queries >= 1, got max_queries=0"),
    (SurrogateLoss, {"pretrain_epochs": -1}, ">= 0, got pretrain_epochs=-1"),
]


@pytest.mark.parametrize(("kind", "settings", "message"), CASES)
def test_a_setting_out_of_its_range_is_named_with_its_value(kind, settings, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        kind(**settings)

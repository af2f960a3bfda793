"""L2T-DLF: a teacher that learns, and what it costs."""

import pytest
import torch

from baselines.network_methods.l2t_dlf import LearningToTeach
from baselines.training.optimization import Training
from metricopt.errors import DivergedError
from tests.baselines.toy_images import TRAINING, train_on_images


def trained(training=TRAINING, **settings):
    settings = {"students": 2, "held_out": 32} | settings
    return train_on_images(LearningToTeach(**settings), training, seed="l2t")


def test_queries_are_one_an_epoch_of_the_last_student():
    result, validation = trained()
    assert result.queries == validation.queries == 3
    assert result.gradient_steps == (2 * 3 + 3) * 4
    # 12 steps are a window of 10 and one of 2.
    assert len(result.notes["student_0"]) == len(result.notes["student_1"]) == 2


def test_the_loss_of_the_last_student_is_noted():
    result, _ = trained(teaching_epochs=1)
    # At the beginning of both windows, and at the end.
    assert result.notes["phi_steps"] == [0, 10, 12]
    assert len(result.notes["phi"]) == 3 * 4 * 4
    assert result.gradient_steps == (2 * 1 + 3) * 4
    identity = [float(i == j) for i in range(4) for j in range(4)]
    assert result.notes["phi"][-16:] != identity


def test_a_teacher_at_a_greater_rate_moves_its_loss_further():
    moved = []
    for rate in (1e-4, 1e-1):
        result, _ = trained(teacher_rate=rate)
        moved.append(torch.tensor(result.notes["phi"][-16:]).view(4, 4) - torch.eye(4))
    assert moved[1].norm() > 2 * moved[0].norm()


def test_students_learn():
    course = trained(Training(12, 0.05, optimizer="sgd"))[0].notes["student_0"]
    assert course[-1] > course[0] + 0.1


def test_students_that_diverge_are_reported():
    with pytest.raises(DivergedError, match="all students"):
        trained(student_rate=1e30)

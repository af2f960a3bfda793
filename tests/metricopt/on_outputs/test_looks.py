"""What held-out folds say of descents, and which of them is taken."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from metricopt.on_outputs.looks import Followed, Look, simplest, without_a_say

FOLDS = torch.tensor([0, 1, 2, 0, 1, 2])


def look(cost, without, steps=0, name=""):
    """Return a look whose outputs are its number of steps."""
    held_out = torch.full((1, 6, 1), float(steps))
    without = torch.tensor(without)
    return Look(SimpleNamespace(name=name), steps, None, cost, cost, without, held_out)


def test_a_fold_is_judged_at_the_length_that_is_best_without_it():
    found = Followed(look(0.5, [0.5, 0.5, 0.5]), FOLDS)
    found.add(look(0.4, [0.6, 0.3, 0.4], steps=10))
    found.add(look(0.45, [0.4, 0.4, 0.45], steps=20))
    assert found.best.steps == 10
    assert found.held_out.flatten().tolist() == [20, 10, 10, 20, 10, 10]
    assert found.without.tolist() == pytest.approx([0.4, 0.3, 0.4])


def test_the_first_look_is_left_as_it_was():
    first = look(0.5, [0.5, 0.5, 0.5])
    copy = replace(first, without=first.without.clone())
    found = Followed(first, FOLDS)
    found.add(look(0.1, [0.1, 0.1, 0.1], steps=10))
    assert torch.equal(first.without, copy.without)
    assert first.held_out.eq(0).all()


def test_what_differs_by_chance_is_as_good():
    costs, errors = torch.tensor([0.32, 0.31, 0.30]), torch.tensor([0.02, 0.005, 0.0])
    assert simplest(costs, errors) == 0
    assert simplest(costs.flip(0), errors.flip(0)) == 0
    assert simplest(torch.full((3,), 0.2), torch.zeros(3)) == 0


def test_what_is_better_by_more_than_chance_is_taken():
    costs, errors = torch.tensor([0.32, 0.31, 0.22]), torch.tensor([0.02, 0.02, 0.0])
    assert simplest(costs, errors) == 2
    assert simplest(costs.flip(0), errors.flip(0)) == 0


def test_the_choice_of_a_descent_is_made_without_the_fold_it_is_judged_on():
    one = Followed(look(0.3, [0.2, 0.4, 0.4], steps=1), FOLDS)
    two = Followed(look(0.3, [0.3, 0.2, 0.3], steps=2), FOLDS)
    views = without_a_say([one, two], torch.zeros(2), FOLDS)
    assert views.flatten().tolist() == [1, 2, 2, 1, 2, 2]
    # A difference within chance leaves the simpler one.
    views = without_a_say([one, two], torch.tensor([0.15, 0.0]), FOLDS)
    assert views.flatten().tolist() == [1, 2, 1, 1, 2, 1]

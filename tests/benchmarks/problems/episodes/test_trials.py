"""Short meta-trainings by which learners get the rate of their map."""

from dataclasses import replace

import pytest

from benchmarks.__main__ import main
from benchmarks.problems.episodes.learner_spec import LearnerSpec
from benchmarks.problems.episodes.tiers import images
from benchmarks.problems.episodes.trials import FACTORS, FILE, MAPS, best, trials
from benchmarks.problems.pretrained import trial_file
from benchmarks.problems.pretrained.trial_file import TrialFile
from benchmarks.rows.learners import GEOMETRIES, LEARNED
from metricopt.errors import DivergedError


def test_every_map_is_tried_at_the_same_rates_for_a_third_of_the_training():
    (first, *_), found = images("local"), trials()
    assert [(t.learner, t.factor) for t in found] == [
        *((learner, factor) for learner in MAPS for factor in FACTORS),
        ("maml", 1.0),
    ]
    assert len({trial.network.digest for trial in found}) == len(found)
    whole = first.learning.training
    for trial in found:
        assert trial.network.learner().geometry_rate == trial.factor
        learning = trial.network.learning
        assert learning.training == replace(whole, iterations=233)
        assert learning.episodes == first.learning.episodes


def test_what_trials_reached_is_kept_line_by_line(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(trial_file, "RELEASED", tmp_path)
    file, (first, second, *_) = TrialFile("own"), trials("smoke")
    file.keep(first)

    def diverge(*arguments):
        raise DivergedError("the loss became nan")

    monkeypatch.setattr(LearnerSpec, "train", diverge)
    file.keep(second)
    done, diverged = file.read()
    assert done["spec"] == first.network.digest
    assert (done["learner"], done["geometry_rate"]) == ("meta-sgd", 1.0)
    assert 0 <= done["score"] <= 1 and done["seconds"] > 0
    assert (diverged["score"], diverged["diverged"]) == (0.0, "the loss became nan")


@pytest.mark.parametrize(("greatest", "factor"), [(0.81, 1.0), (0.82, 0.01)])
def test_the_usual_rate_is_left_for_more_than_chance(greatest, factor):
    scores = {1.0: 0.8, 0.1: 0.7, 0.01: greatest}
    tried = [
        {"learner": "meta-sgd", "geometry_rate": rate, "score": score}
        for rate, score in scores.items()
    ]
    assert best("meta-sgd", tried) == factor


def test_rates_of_the_table_are_those_of_the_best_trials():
    tried = FILE.read()
    assert len(tried) == len(trials())
    problem = images("local")[0]
    rates = {
        row.name: LearnerSpec(row.on(problem).learning, 0).learner().geometry_rate
        for row in LEARNED
    }
    assert {name for name, rate in rates.items() if rate != 1} <= set(MAPS)
    assert {name: rates[name] for name in MAPS} == {
        name: best(name, tried) for name in MAPS
    }
    assert set(GEOMETRIES) - set(MAPS) == {"mirror-descent-released"}


def test_an_experiment_without_trials_is_named(capsys):
    assert main(["pretrain", "table3", "--trials"]) == 2
    told = capsys.readouterr().err
    assert "settings are chosen by short trainings, got 'table3'; known: " in told

"""Short trainings by which settings of network methods are chosen."""

from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.problems.images.method_networks import FORM_OF, WHOLE, Tuned
from benchmarks.problems.images.trials import FILE, TRIED_FIRST, best, trials
from benchmarks.problems.pretrained import trial_file
from benchmarks.problems.pretrained.trial_file import TrialFile
from benchmarks.tables.learned_losses import ala_figs, ala_table2
from benchmarks.tables.learned_losses.learned_losses import TABLE
from metricopt.errors import DivergedError

LITERAL = "ala-literal"


def test_every_method_has_as_many_trials_or_says_whose_choice_it_has():
    every = trials("smoke")
    counts = Counter(trial.method for trial in every)
    assert set((counts - Counter({LITERAL: 2})).values()) == {4}
    tables = (TABLE, ala_figs.TABLE, ala_table2.TABLE)
    trained = {method for table in tables for method in table.methods}
    assert trained == {*counts, *FORM_OF, "moew"}
    assert set(FORM_OF.values()) < set(counts)
    assert len({trial.network.digest for trial in trials("smoke")}) == sum(
        counts.values()
    )


def test_a_trial_is_a_short_training_from_the_same_weights():
    whole = WHOLE["smoke"].pretraining
    for trial in trials("smoke"):
        short = trial.network.backbone.pretraining
        assert short == replace(whole, epochs=1, rate=trial.tuned.rate or whole.rate)
    assert len({trial.network.seed for trial in trials("smoke")}) == 1


def test_what_trials_reached_is_kept_line_by_line(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(trial_file, "RELEASED", tmp_path / "folder")
    file, (first, second, *_) = TrialFile("own"), trials("smoke")
    assert (file.read(), best("ce", [])) == ([], None)
    file.keep(first)

    def diverge(*arguments):
        raise DivergedError("the loss became nan")

    monkeypatch.setattr(type(second.network), "train", diverge)
    file.keep(second)
    done, diverged = file.read()
    assert done["spec"] == first.network.digest
    assert (done["method"], done["rate"], done["settings"]) == ("ce", 0.1, {})
    assert 0 < done["observe_mcr"] < 1 and done["core_seconds"] > 0
    assert "surfaces" not in first.network.trained_here().facts["notes"]
    assert diverged["diverged"] == "the loss became nan"
    assert best("ce", [diverged, done]) == first.tuned


@pytest.mark.parametrize(("least", "rate"), [(0.123, None), (0.122, 0.4)])
def test_usual_settings_are_left_for_more_than_the_error_of_a_difference(least, rate):
    # sqrt(2 .129 (1 - .129) / 5000) = .0067.
    usual = {"method": "ce", "rate": 0.2, "settings": {}, "observe_mcr": 0.129}
    other = usual | {"rate": 0.4, "observe_mcr": least}
    assert best("ce", [other, usual]) == Tuned(rate)


@pytest.mark.parametrize(("least", "rate"), [(0.81, None), (0.79, 0.4)])
def test_usual_settings_stay_if_nothing_trained(least, rate):
    usual = {"method": "ce", "rate": 0.2, "settings": {}, "observe_mcr": 0.9}
    other = usual | {"rate": 0.4, "observe_mcr": least}
    assert best("ce", [other, usual]) == Tuned(rate)


def test_losses_of_aucpr_are_chosen_by_it():
    usual = {"method": "aucpr", "rate": 0.2, "settings": {}}
    usual |= {"observe_mcr": 0.1, "observe_aucpr": 0.6}
    other = usual | {"rate": 0.8, "observe_mcr": 0.4, "observe_aucpr": 0.7}
    diverged = usual | {"rate": 0.4, "observe_mcr": 1.0, "diverged": "nan"}
    del diverged["observe_aucpr"]
    assert best("aucpr", [usual, diverged, other]) == Tuned(0.8)
    alike = other | {"observe_aucpr": 0.602}
    assert best("aucpr", [usual, alike]) == Tuned()


def test_settings_of_the_table_are_those_of_the_best_trials():
    tried, chosen = FILE.read(), WHOLE["local"].tuned
    methods = {trial.method for trial in trials("smoke")}
    for method in methods:
        expected = 6 if method == LITERAL else 4
        if sum(line["method"] == method for line in tried) >= expected:
            assert chosen.get(method, Tuned()) == best(method, tried)
    assert set(chosen) <= {line["method"] for line in tried}


def test_trials_of_a_method_train_the_same_network_as_long():
    networks, epochs = {}, set()
    for trial in trials("local"):
        backbone = trial.network.backbone
        networks.setdefault(trial.method, set()).add(backbone.network)
        epochs.add(backbone.pretraining.epochs)
    usual = WHOLE["local"].network
    expected = {m: {"resnet20" if m in TRIED_FIRST else usual} for m in networks}
    assert (networks, epochs) == (expected, {10})
    for method in ("ala", "ala-level", "reloss", "reloss-anchored"):
        assert expected[method] == {"resnet9"}

"""Networks that are trained before any run: their order, threads and processes."""

import os

import pytest
import torch

from benchmarks.execution import networks
from benchmarks.execution.networks import networks_of, release_all, train_all
from benchmarks.problems.prerequisite import Prerequisite
from benchmarks.tables.registry import find_experiment
from metricopt.errors import DivergedError
from tests.benchmarks.execution.kept_networks import KeptNetwork
from tests.benchmarks.problems.data_variants import variants_are_full
from tests.benchmarks.problems.pipeline_cases import method_spec


class Network(Prerequisite):
    """Notes that it was made, and on how many threads."""

    def __init__(self, name, made, *, error=None):
        self.name = self.digest = name
        self.made, self.error = made, error

    @property
    def is_ready(self):
        return self.is_made

    @property
    def is_made(self):
        return self.name in self.made

    def make(self, *, quiet=False):
        if self.error is not None:
            raise self.error
        self.made[self.name] = torch.get_num_threads()

    def release(self):
        if self.error is not None:
            raise self.error
        self.made[f"{self.name} released"] = True
        return {"network": self.name, "MB": "0.10"}


def test_networks_come_after_those_they_go_on_from(monkeypatch):
    variants_are_full(monkeypatch)
    specs = find_experiment("table2").specs("local", 1, True)
    names = [theta.name for theta in networks_of(specs)]
    methods = {spec.row for spec in specs if spec.column == "methods/aucpr"}
    # Nine networks, six optimizers of phi, and one network for each method.
    assert len(names) == len(set(names)) == 9 + 6 + len(methods)
    for loss in ("blackbox-ap", "aucpr"):
        place = names.index(f"cifar10-resnet32-{loss}-r0")
        assert names.index("cifar10-resnet32-cross-entropy-r0") < place


def test_tabular_runs_need_no_network_before_them():
    assert networks_of([method_spec("untouched")]) == []


def test_missing_networks_have_the_threads_of_the_process():
    torch.set_num_threads(3)
    made = {"there": 1}
    train_all([Network(name, made) for name in ("there", "a", "b")])
    assert made == {"there": 1, "a": 3, "b": 3}
    assert torch.get_num_threads() == 3


def test_a_diverging_network_does_not_keep_the_others_from_being_made(capsys):
    made = {}
    diverges = Network("wild", made, error=DivergedError("the loss became nan"))
    train_all([diverges, Network("calm", made)])
    assert list(made) == ["calm"]
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "network 1 of 2: wild",
        "wild: the loss became nan",
        "network 2 of 2: calm",
    ]


def test_networks_are_released_one_by_one():
    made = {}
    wild = Network("wild", made, error=DivergedError("the loss became nan"))
    killed = Network("killed", made, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        train_all([wild, Network("calm", made), killed], released=True)
    assert set(made) == {"calm", "calm released"}


def test_an_interrupt_gives_the_threads_back():
    torch.set_num_threads(1)
    with pytest.raises(KeyboardInterrupt):
        train_all([Network("long", {}, error=KeyboardInterrupt())])
    assert torch.get_num_threads() == 1


def test_released_networks_are_listed():
    wild = Network("wild", {}, error=DivergedError("the loss became nan"))
    lines = release_all([Network("one", {}), wild, Network("two", {})]).splitlines()
    assert [line.split() for line in lines] == [
        ["network", "MB"],
        ["one", "0.10"],
        ["two", "0.10"],
    ]


def test_what_was_trained_before_has_ended_too():
    made, ended = {"there": 1}, []
    train_all([Network("there", made), Network("a", made)], ended=ended.append)
    assert [network.name for network in ended] == ["there", "a"]


def test_several_are_trained_at_once_and_what_goes_on_from_another_after_it(tmp_path):
    first, wild = KeptNetwork(tmp_path, "first"), KeptNetwork(tmp_path, "wild", True)
    second = KeptNetwork(tmp_path, "second", start=first)
    ended = []
    torch.set_num_threads(4)
    train_all([first, wild, second], released=True, workers=2, ended=ended.append)
    assert {network.name for network in ended} == {"first", "wild", "second"}
    assert first.note["process"] == second.note["process"] != os.getpid()
    assert first.note["made"] < second.note["made"]
    assert first.note["threads"] == 2
    assert first.note["released"] and not wild.is_made


def test_what_goes_on_from_a_network_that_is_there_waits_for_no_other(
    tmp_path, monkeypatch
):
    given = []

    def noted(groups, *others):
        given.extend([network.name for network in group] for group in groups)

    monkeypatch.setattr(networks, "run_groups", noted)
    start = KeptNetwork(tmp_path, "start")
    both = [KeptNetwork(tmp_path, name, start=start) for name in ("one", "other")]
    train_all(both, workers=2)
    start.make()
    train_all(both, workers=2)
    assert given == [["one", "other"], ["one"], ["other"]]

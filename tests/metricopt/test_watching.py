"""What watches a call: a callback, the clock, a log, a bar or plain lines."""

import io
import logging
import time

import numpy as np
import pytest
import torch
from torch import nn

from metricopt import ConfigError, FinetuneOptions, at_least, finetune, tune
from metricopt.process import query_bar
from metricopt.process.query_bar import QueryBar
from metricopt.process.watch import Watch
from tests.metricopt.digits_network import pretrained, splits

LABELS = np.arange(200) % 2
ODDS = np.where(LABELS, 0.5, -1.5) + np.random.default_rng(0).normal(size=200)
QUICK = {"queries": 16, "progress": False}


def asked(metric="f1", **settings):
    """A short call with the queries that its callback saw."""
    seen, given = [], QUICK | settings
    found = tune(
        ODDS, LABELS, metric, callback=lambda *each: seen.append(each), **given
    )
    return found, seen


def test_a_callback_sees_every_query_in_the_metrics_own_unit():
    found, seen = asked("f1")
    queries, values, best = zip(*seen, strict=True)
    assert values == pytest.approx(found.values.tolist())
    assert best == pytest.approx(found.values.cummax(0).values.tolist())
    assert queries[0] == 1
    assert queries[-1] == found.spent.queries
    assert list(queries) == sorted(set(queries))


def test_the_best_value_of_a_metric_that_should_be_low():
    found, seen = asked("neg_log_loss", queries=8)
    assert max(best for *_, best in seen) == seen[-1][-1] <= 0
    found, seen = asked("worst-class-error", queries=8)
    least = found.values.cummin(0).values.tolist()
    assert [best for *_, best in seen] == pytest.approx(least)


def test_a_callback_ends_the_search_and_the_call_concludes():
    def enough(query, value, best):
        return query >= 6

    found = tune(ODDS, LABELS, "f1", callback=enough, queries=40, progress=False)
    whole = tune(ODDS, LABELS, "f1", queries=40, progress=False)
    assert 6 <= found.spent.queries < 6 + 12
    assert found.spent.queries != whole.spent.queries
    assert found.warnings[0].startswith("the callback ended the search; ")
    assert found.evidence.reason
    other = tune(
        ODDS, LABELS, "f1", callback=enough, method="cma-es", queries=40, progress=False
    )
    assert 6 <= other.spent.queries < 12  # a generation may be asked at once
    assert other.warnings[0].startswith("ended by the callback after ")
    assert other.metric_after == other.values.max()


@pytest.mark.parametrize("callback", [lambda query: None, lambda *, best: None])
def test_a_callback_that_takes_other_arguments_is_refused(callback):
    with pytest.raises(ConfigError, match=r"called as f\(query, value, best\).* got"):
        tune(ODDS, LABELS, "f1", callback=callback)


def test_a_callback_that_raises_ends_the_call_like_an_interruption():
    def fails(query, value, best):
        if query == 7:
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full") as caught:
        tune(ODDS, LABELS, "f1", callback=fails, **QUICK)
    partial = caught.value.partial
    assert partial.spent.queries == 7
    assert partial.metric_after == partial.values.max()


def slow_noise(outputs, targets, generator=torch.Generator().manual_seed(0)):  # noqa: B008
    """Takes a while, and is no function of anything."""
    time.sleep(0.02)
    return torch.rand(1, generator=generator).item()


@pytest.mark.parametrize("method", ["auto", "cma-es"])
def test_a_call_ends_in_time(method):
    began = time.perf_counter()
    found = tune(
        ODDS,
        LABELS,
        lambda outputs, targets: slow_noise(outputs, targets),
        higher_is_better=True,
        check_direction=False,
        method=method,
        queries=5_000,
        timeout=1.5,
        progress=False,
    )
    assert time.perf_counter() - began < 10  # a hundred seconds without
    assert found.spent.queries < 200
    assert any("timeout=1.5" in warning for warning in found.warnings)


def test_time_that_is_long_enough_changes_nothing():
    plain, timed = (tune(ODDS, LABELS, "f1", timeout=t, **QUICK) for t in (None, 1e4))
    assert torch.equal(plain.offsets, timed.offsets)
    assert plain.spent.queries == timed.spent.queries
    assert timed.warnings == ()


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until a stage, then ticks when it is looked at."""
    seen = {"from": "", "runs": False, "ticks": 0}
    begins = Watch.stage

    def stage(self, what):
        seen["runs"] = seen["runs"] or what == seen["from"]
        begins(self, what)

    def seconds(self):
        seen["ticks"] += seen["runs"]
        return float(seen["ticks"])

    def run_from(stage):
        seen.update({"from": stage, "runs": False, "ticks": 0})
        return seen

    monkeypatch.setattr(Watch, "stage", stage)
    monkeypatch.setattr(Watch, "seconds", property(seconds))
    return run_from


CUT = "ended computations between queries early; the choice is from what was found"


def timed(timeout, **settings):
    train, observe, _ = splits()
    given = {"train": train, "observe": observe, "loss": nn.CrossEntropyLoss()}
    given = given | {"metric": "f1_macro", "timeout": timeout} | QUICK | settings
    return finetune(pretrained(), **given)


def test_cross_fitting_within_bounds_ends_where_time_is_up(clock):
    seen = clock("cross-fitting")
    found = timed(5.0, constraints=[at_least("mcr", 0.5)])
    assert 5 < seen["ticks"] < 40  # each of 100 steps of every descent looks
    assert CUT in found.warnings[-1]
    assert found.bounds[0].before < 0.5 <= found.bounds[0].after


def test_what_is_known_when_time_is_up_is_chosen_from(clock):
    clock("cross-fitting")
    none = timed(1e-9)
    assert not none.phi.any()
    assert none.metric_after == none.metric_before
    assert "That is no evidence of a gain." in none.evidence.reason
    # The exact search of output offsets is over after the first looks.
    seen = clock("cross-fitting")
    some = timed(10.0)
    assert 10 < seen["ticks"] < 40
    assert "Moved: output offsets." in some.evidence.reason
    assert some.metric_after > some.metric_before == none.metric_before
    assert CUT in some.warnings[-1]


def test_fine_tuning_under_other_losses_ends_where_time_is_up(clock):
    seen = clock("fine-tuning under other losses")
    found = timed(70.0)
    assert seen["ticks"] < 100  # five losses take 50 steps each
    assert any(CUT in each for each in found.warnings)
    assert "timeout=70 ended the search" in " ".join(found.warnings)
    assert found.metric_after >= found.metric_before


class Slow(nn.Module):
    """A network that takes a while for every example."""

    def __init__(self):
        super().__init__()
        self.network = pretrained()

    def forward(self, images):
        time.sleep(2e-4 * len(images))
        return self.network(images)


def test_a_slow_network_runs_once_over_a_split():
    train, observe, _ = splits()
    given = {"train": train, "observe": observe, "loss": nn.CrossEntropyLoss()}
    found = finetune(Slow(), metric="balanced_accuracy", timeout=0.4, **given, **QUICK)
    assert set(found.adapter.parts) == {"offsets"}
    text = "a pass of the network over observe takes about"
    assert any(each.startswith(text) for each in found.warnings)
    assert not any("no layer" in each for each in found.warnings)
    assert found.spent.queries <= 16


def test_a_log_says_what_is_done(caplog):
    with caplog.at_level(logging.INFO, "metricopt"):
        found = tune(ODDS, LABELS, "f1", **QUICK)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith("a pass over observe takes about")
    assert lines[1].startswith("metricopt-outputs asks for f1 of 200 examples up to 16")
    queries = [line for line in lines if line.startswith("query ")]
    assert len(queries) == len(found.values)
    assert queries[0] == f"query 1: {found.values[0]:.6g}, best {found.values[0]:.6g}"
    assert {"searching", "cross-fitting"} <= set(lines)
    assert lines[-1].startswith("f1 on the observe split")


def test_lines_where_there_is_no_terminal(capsys, monkeypatch):
    tune(ODDS, LABELS, "f1", queries=8)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(query_bar, "EVERY", 0.0)
    tune(ODDS, LABELS, "f1", queries=8)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("metricopt: 1 of 8 queries in 0 s, best 0.")
    assert "s more" in lines[0]
    assert any(line.endswith(", cross-fitting") for line in lines)
    tune(ODDS, LABELS, "f1", queries=8, progress=False)
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_names_what_is_done(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with QueryBar(10, shown=True) as bar:
        bar.update(3, 0.5)
        bar.stage("cross-fitting")
    assert "cross-fitting" in terminal.getvalue()
    assert "3/10" in terminal.getvalue()
    assert "metricopt:" not in terminal.getvalue()


def test_the_clock_leaves_time_for_the_conclusion(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    watch = Watch(QueryBar(50, shown=False), 50, timeout=100.0)
    values = torch.zeros(1, dtype=torch.float64)
    now[0] = 1.0
    watch.queried(1, values, values)
    assert not watch.is_over
    now[0] = 69.0
    assert not watch.is_over
    now[0] = 71.0
    assert watch.is_over
    # Where a query takes 20 s, three more end at 100.
    dear = Watch(QueryBar(50, shown=False), 50, timeout=100.0)
    now[0] += 1.0
    dear.queried(1, values, values)
    now[0] += 41.0
    dear.queried(2, values, values)
    assert dear.is_over


@pytest.mark.parametrize(
    ("timeout", "text"),
    [(8.0, "no time for the 4 queries that check it"), (16.0, "On 4 parts of the")],
)
def test_the_check_on_parts_of_a_dear_metric_ends_in_time(monkeypatch, timeout, text):
    now, generator = [0.0], torch.Generator().manual_seed(1)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def dear(outputs, targets):
        now[0] += 0.5
        return torch.rand(1, generator=generator).item()

    settings = {"higher_is_better": True, "check_direction": False, "progress": False}
    found = tune(ODDS, LABELS, dear, timeout=timeout, **settings)
    assert now[0] <= timeout
    assert text in found.evidence.reason


WRONG = {
    "callback": ({"callback": 3}, "callback must be a function or None, got 3"),
    "text": ({"timeout": "1 h"}, "timeout must be a number of seconds or None, got '1"),
    "none": ({"timeout": 0}, "finetune needs timeout > 0, got timeout=0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings_are_refused(name):
    settings, text = WRONG[name]
    with pytest.raises(ConfigError, match=text):
        FinetuneOptions(**settings)

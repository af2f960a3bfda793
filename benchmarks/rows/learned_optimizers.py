"""Optimizers of phi: those that are meta-trained, and others than SGD on the loss.

Source: Huang et al., CVPR 2021, supplement B and Fig. 4.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.problems.optimizers.learning import (
    OptimizerLearning,
    Supervision,
    metric_queries,
)
from benchmarks.problems.problem import Problem
from benchmarks.rows.contract import LOSS_ONLY, UNTOUCHED, Fill, Row, Run
from benchmarks.rows.controls import finetuned, method
from benchmarks.runs.codec import encode
from benchmarks.runs.spec import Arm, Unit
from metricopt.algorithm_s1.metricopt_learned import SCALE, TRAINING
from metricopt.learned_optimizers.metricopt_mlp import ALL_INPUTS, METRIC_INPUTS
from metricopt.tasks.descent import START_DEVIATION

STATISTICS_QUERIES = 150
"""Queries that the value function of statistics is fitted to."""
WITHOUT_METRIC = tuple(name for name in ALL_INPUTS if name not in METRIC_INPUTS)
FORMS: dict[str, dict[str, Any]] = {
    "metricopt-mlp": {"inputs": list(ALL_INPUTS), "scale": SCALE},
    "lstm": {"scale": 0.1},
    "mlp": {"scale": 0.1, "exponent": 1.0},
}
"""Settings of each kind of optimizer, without the horizon.

The released MLP has a scale and an exponent of .001, for thousands of steps, and the
released LSTM a scale of .01. With 50 steps these were worse in the training loss of
held-out runs.
"""
SHARED = ("replay", "inner_steps")
"""Settings of a recipe that Algorithm S1 takes over from MetricOpt."""
REVISION = 2
"""`OptimizerLearning.revision` of those that are learned with a metric."""
LONGER = {"lstm": 2}
"""How many times the iterations of others a kind has whose iterations take less."""


def learning_of(
    problem: Problem,
    supervision: Supervision,
    kind: str = "metricopt-mlp",
    *,
    start_deviation: float = START_DEVIATION,
    **training: Any,
) -> OptimizerLearning:
    """Return how an optimizer is meta-trained for a problem.

    Args:
        problem: gives the length of fine-tunings, and of the meta-training.
        supervision: what runs are judged by beside their loss.
        kind: registered kind of learned optimizer.
        start_deviation: standard deviation of every coordinate of a random start.
        **training: further changes to `OptimizerTraining`.
    """
    size, form = problem.size, FORMS[kind]
    if supervision == "loss" and kind == "metricopt-mlp":
        form = form | {"inputs": list(WITHOUT_METRIC)}
    # With a metric, as many tasks as MetricOpt learns its value function from.
    with_loss = size.optimizer_iterations * LONGER.get(kind, 1)
    with_metric = max(1, size.tasks // TRAINING.tasks)
    iterations = with_loss if supervision == "loss" else with_metric
    learning = OptimizerLearning(
        steps=size.steps,
        kind=kind,
        form=form,
        supervision=supervision,
        start_deviation=start_deviation,
        queries=1,
        training={"iterations": iterations, **training},
        recipe=_recipe(problem) if supervision == "value function" else None,
        revision=1 if supervision == "loss" else REVISION,
    )
    queries = {
        "loss": 0,
        "value function": size.metricopt_queries,
        "metric": metric_queries(learning.settings, size.steps),
        "statistics": min(STATISTICS_QUERIES, size.metricopt_queries),
    }
    return replace(learning, queries=queries[supervision])


def _recipe(problem: Problem) -> dict[str, Any] | None:
    """Return what MetricOpt changes for a large phi, of what Algorithm S1 has, too."""
    changes = problem.size.recipe("metricopt")
    return {name: changes[name] for name in SHARED if name in changes} or None


def learned(
    supervision: Supervision,
    kind: str = "metricopt-mlp",
    *,
    on: Callable[[Problem], Problem] = lambda problem: problem,
    start_deviation: float = START_DEVIATION,
    **training: Any,
) -> Fill:
    """Return fine-tuning by a meta-trained optimizer.

    Args:
        supervision: what runs of its meta-training are judged by beside their loss.
        kind: registered kind of learned optimizer.
        on: from the problem of a run to the one whose lengths it is trained with.
        start_deviation: standard deviation of every coordinate of a random start.
        **training: further changes to `OptimizerTraining`.
    """

    def run(problem: Problem, metric: Unit) -> Run:
        learning = learning_of(
            on(problem), supervision, kind, start_deviation=start_deviation, **training
        )
        arm = Arm("learned-optimizer", settings=encode(learning))
        own = problem.size.steps if learning.asks_metric else 0
        size = problem.size
        # Algorithm S1 keeps what its own run needs.
        allowed = learning.queries + (0 if supervision == "value function" else own)
        return Run(arm, allowed, size.meta_tests, value_functions=size.value_functions)

    return run


def of_the_loss(optimizer: str, **chosen: float) -> Fill:
    """Return fine-tuning on the loss by an optimizer whose rate is tuned.

    Args:
        optimizer: name of the optimizer of phi.
        **chosen: further settings of the method `loss-only`.
    """

    def run(problem: Problem, metric: Unit) -> Run:
        arm = method("loss-only", optimizer=optimizer, **chosen)
        return Run(arm, meta_tests=problem.size.meta_tests)

    return run


def row(name: str, label: str, run: Fill, *base: str, **more: Any) -> Row:
    """Return a row of fine-tuning runs with bases, the first that its table has."""
    return finetuned(name, label, run=run, base=(*base, LOSS_ONLY, UNTOUCHED), **more)


MOMENTUM = row("loss-only-momentum", "momentum on the loss", of_the_loss("momentum"))
ADAM = row("loss-only-adam", "Adam on the loss", of_the_loss("adam"))
POWERSIGN = row(
    "loss-only-powersign", "PowerSign on the loss", of_the_loss("powersign")
)
LSTM = row("lstm-optimizer", "LSTM optimizer (2016)", learned("loss", "lstm"))
MLP = row("mlp-optimizer", "MLP optimizer (2019)", learned("loss", "mlp"))
LOSS_MLP = row(
    "loss-metricopt-mlp", "MetricOpt's optimizer, loss alone", learned("loss")
)
LEARNED = row(
    "metricopt-learned",
    "MetricOpt (learned)",
    learned("value function"),
    family="metricopt",
    paper={"Table 1": "metricopt-learned", "Table 2": "metricopt-learned"},
    note="Algorithm S1: the optimizer sees the metric as last observed",
)
LEARNED_BELOW_ZERO = replace(
    LEARNED,
    run=learned("value function", objective={"loss_term": "sum"}),
    note=f"{LEARNED.note}; the loss may be below 0, so eq. (6) has its sum over the "
    "steps instead of logarithms",
)
TRUE_METRIC = row(
    "metricopt-learned-metric",
    "MetricOpt (learned), true metric instead of f",
    learned("metric"),
    "metricopt-learned",
    family="metricopt",
    note="every step of every run of the meta-training is a query",
)
STATISTICS = row(
    "metricopt-learned-statistics",
    "MetricOpt (learned), value function of statistics",
    learned("statistics"),
    "metricopt-learned",
    family="metricopt",
    sees="outputs and labels",
    note=f"{STATISTICS_QUERIES} queries, then predictions of the metric instead of f",
)


def _variant(name: str, words: str, run: Fill) -> Row:
    """Return MetricOpt (learned) with one change to its meta-training."""
    return row(
        f"{LEARNED.name}-{name}",
        f"{LEARNED.label}, {words}",
        run,
        LEARNED.name,
        family=LEARNED.family,
    )


def _runs_of(times: float) -> Callable[[Problem], Problem]:
    """Return the change of a problem to fine-tunings so many times as long."""

    def on(problem: Problem) -> Problem:
        steps = round(times * problem.size.steps)
        return replace(problem, size=replace(problem.size, steps=steps))

    return on


_by_value_function = partial(learned, "value function")
VARIANTS = (
    _variant("smoothing-0.1", "smoothing .1", _by_value_function(deviation=0.1)),
    _variant("smoothing-0.01", "smoothing .01", _by_value_function(deviation=0.01)),
    _variant("half-horizon", "horizon T / 2", _by_value_function(on=_runs_of(0.5))),
    _variant("twice-horizon", "horizon 2 T", _by_value_function(on=_runs_of(2))),
)
"""Another deviation of the weights' noise, eq. (7), or another horizon."""
RIVALS = (LSTM, MLP)
"""Learned optimizers that see the loss alone, of other authors."""

"""Arms that move the decision of the untouched network, without training.

They see outputs and labels of the observe split. A spec of 0 queries leaves their
number to the arm; any other number is its limit.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from baselines.post_hoc.class_offsets import OffsetSearch, tune_offsets
from baselines.post_hoc.class_scores import Improvement
from baselines.post_hoc.cma_offsets import OffsetEvolution, evolve_offsets
from baselines.post_hoc.cw_plugin import PairSearch, pairwise_weights
from baselines.post_hoc.fairlearn_thresholds import equalize_odds
from baselines.post_hoc.fw_eg import FrankWolfe, frank_wolfe
from baselines.post_hoc.logit_adjustment import LogitAdjustment, adjust_logits
from baselines.post_hoc.one_vs_rest import tune_one_vs_rest
from baselines.post_hoc.optuna_offsets import OffsetTrials, study_offsets
from baselines.post_hoc.prior_correction import PriorCorrection, correct_prior
from baselines.post_hoc.threshold_grid import tune_threshold_on_grid
from baselines.post_hoc.threshold_shift import tune_threshold
from baselines.validation import Validation, labels
from benchmarks.arms.contract import ARMS, ArmKind
from benchmarks.problems.choices import Chosen, Point, Shifted, Trained
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.runs.codec import changed
from benchmarks.runs.spec import RunSpec
from metricopt.errors import ConfigError, ShapeError
from metricopt.metrics.base import Metric
from metricopt.metrics.confusion import class_shares
from metricopt.reading.inputs import Inputs

THRESHOLDS, GRID = 2_000, 100
"""Most thresholds of a shift, and those of scikit-learn's grid."""
SCIKIT_LEARN = ("sklearn.metrics", "sklearn.model_selection")
RANDOM = (OffsetEvolution, OffsetTrials)
"""Searches of offsets that draw random numbers."""


def run_prior_correction(
    spec: RunSpec, pipeline: NetworkPipeline, metric: Metric
) -> Chosen:
    """Correct the logits for class shares that training had and observe has not.

    Raises:
        ConfigError: if the pipeline does not know the class shares of training.
    """
    found = _prior_correction(pipeline, pipeline.validation(metric))
    if found is None:
        raise ConfigError(
            f"the pipeline {spec.pipeline.name} does not say which class shares its "
            "network was trained on, which a prior correction needs"
        )
    notes = {"log_ratio": _rounded(found.log_ratio), "trivial": found.is_trivial}
    return Chosen(Shifted(found.shift), notes=notes)


def _threshold(tune: Callable[..., Any], limit: str, most: int) -> ArmKind:
    """Return arms that choose the threshold of a binary problem, of so many at most."""

    def run(spec: RunSpec, pipeline: NetworkPipeline, metric: Metric) -> Chosen:
        validation = pipeline.validation(metric, _limit(spec))
        limited = {limit: min(most, _limit(spec) or most)}
        found = tune(_class_outputs(spec, pipeline), validation, **limited)
        return _chosen(found.shift, validation, (), {"threshold": found.threshold})

    return ArmKind(run)


def _offsets(tune: Callable[..., Sequence[Improvement]], search: type[Any]) -> ArmKind:
    """Return arms that search shifts of the log-probability of every class."""

    def run(spec: RunSpec, pipeline: NetworkPipeline, metric: Metric) -> Chosen:
        validation = pipeline.validation(metric, _limit(spec))
        outputs = _class_outputs(spec, pipeline)
        more = _noise(spec, pipeline) if search in RANDOM else {}
        trace = tune(outputs, validation, search=_limited(search(), spec), **more)
        points = ((each.queries, each.value, each.shift) for each in trace)
        notes = {"offsets": _rounded(trace[-1].offsets)}
        return _chosen(trace[-1].shift, validation, points, notes)

    return ArmKind(run)


def run_one_vs_rest(spec: RunSpec, pipeline: NetworkPipeline, metric: Metric) -> Chosen:
    """Choose a threshold for every class against the rest, of a grid for each."""
    validation = pipeline.validation(metric, _limit(spec))
    outputs = _class_outputs(spec, pipeline)
    affordable = (_limit(spec) or math.inf) // outputs.shape[1]
    found = tune_one_vs_rest(outputs, validation, thresholds=int(min(GRID, affordable)))
    notes = {"thresholds": _rounded(found.thresholds)}
    return _chosen(found.shift, validation, (), notes)


def run_fw_eg(spec: RunSpec, pipeline: NetworkPipeline, metric: Metric) -> Chosen:
    """Elicit the gain of every class by probes, with Frank-Wolfe.

    Outputs are corrected to the class shares of observe where those of training are
    known.
    """
    validation = pipeline.validation(metric, _limit(spec))
    correction = _prior_correction(pipeline, validation)

    def corrected(outputs: Tensor) -> Tensor:
        return outputs if correction is None else correction.shift(outputs)

    trace = frank_wolfe(
        corrected(_class_outputs(spec, pipeline)),
        validation,
        search=_limited(FrankWolfe(), spec),
        **_noise(spec, pipeline),
    )

    def shift_of(classifier: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda outputs: classifier(corrected(outputs))

    points = (
        (each.queries, each.value, shift_of(each.mixture.shift)) for each in trace
    )
    best = trace[-1].mixture
    notes = {"gains": _rounded(best.gains[-1])}
    return _chosen(shift_of(best.shift), validation, points, notes)


def run_fairlearn_thresholds(
    spec: RunSpec, pipeline: NetworkPipeline, metric: Metric
) -> Chosen:
    """Equalise the error rates of groups, whose numbers are the network's last input.

    Raises:
        ConfigError: if the network has a single input.
    """
    phi = torch.zeros(pipeline.adapter.size)

    def scored(inputs: Inputs) -> tuple[Any, Tensor]:
        if not isinstance(inputs, tuple):
            raise ConfigError(
                f"{spec.arm.kind} needs groups as the last input of the network, and "
                f"the network of the pipeline {spec.pipeline.name} has a single input"
            )
        return pipeline.predict(inputs, phi), inputs[-1]

    observe = pipeline.splits.observe
    found = equalize_odds(
        *scored(observe.batch(slice(None))), labels(observe), **_noise(spec, pipeline)
    )
    return Chosen(Trained(lambda inputs: found.decide(*scored(inputs))))


def _prior_correction(
    pipeline: NetworkPipeline, validation: Validation
) -> PriorCorrection | None:
    """Return the correction to the class shares of observe; None without training's."""
    training = pipeline.training_shares
    if training is None:
        return None
    observed = class_shares(labels(validation.observe), len(training))
    return correct_prior(training, observed)


def _chosen(
    shift: Callable[[Tensor], Tensor],
    validation: Validation,
    points: Iterable[tuple[int, float, Callable[[Tensor], Tensor]]],
    notes: dict[str, object],
) -> Chosen:
    """Return a shift with what it cost, and (queries, value, shift) on the way."""
    return Chosen(
        Shifted(shift),
        queries=validation.queries,
        evaluations=dict(validation.meter.made),
        points=tuple(
            Point(0, made, (value,), Shifted(at)) for made, value, at in points
        ),
        notes=notes,
    )


def _limited(search: Any, spec: RunSpec) -> Any:
    """Return a search with the settings and the limit of a spec."""
    found = changed(search, spec.arm.settings)
    return replace(found, max_queries=_limit(spec) or found.max_queries)


def _limit(spec: RunSpec) -> int | None:
    return spec.budget.queries or None


def _noise(spec: RunSpec, pipeline: NetworkPipeline) -> dict[str, torch.Generator]:
    return {"generator": pipeline.seeds.generator(spec.arm.kind, spec.metric.label)}


def _rounded(numbers: Tensor) -> list[float]:
    return [round(number, 3) for number in numbers.tolist()]


def _class_outputs(spec: RunSpec, pipeline: NetworkPipeline) -> Tensor:
    outputs = pipeline.outputs()
    if not isinstance(outputs, Tensor):
        raise ShapeError(
            f"{spec.arm.kind} needs class outputs in one tensor, got a tuple of "
            f"{len(outputs)} tensors from the pipeline {spec.pipeline.name}"
        )
    return outputs


ARMS.register("prior-correction")(ArmKind(run_prior_correction))
ARMS.register("threshold-shift")(
    _threshold(tune_threshold, "max_candidates", THRESHOLDS)
)
ARMS.register("threshold-grid")(
    replace(
        _threshold(tune_threshold_on_grid, "thresholds", GRID), imports=SCIKIT_LEARN
    )
)
ARMS.register("one-vs-rest")(ArmKind(run_one_vs_rest, imports=SCIKIT_LEARN))
ARMS.register("fairlearn-thresholds")(
    ArmKind(run_fairlearn_thresholds, imports=("fairlearn.postprocessing",))
)
ARMS.register("class-offsets")(_offsets(tune_offsets, OffsetSearch))
ARMS.register("logit-adjustment")(_offsets(adjust_logits, LogitAdjustment))
ARMS.register("cma-offsets")(_offsets(evolve_offsets, OffsetEvolution))
ARMS.register("optuna-offsets")(
    replace(_offsets(study_offsets, OffsetTrials), imports=("optuna",))
)
ARMS.register("cw-plugin")(_offsets(pairwise_weights, PairSearch))
ARMS.register("fw-eg")(ArmKind(run_fw_eg, sees=lambda arm: "edited predictions"))

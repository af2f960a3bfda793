"""Arms that move the decision of the untouched network, without training.

They see outputs and labels of the observe split. A spec of 0 queries leaves their
number to the arm; any other number is its limit.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from baselines.post_hoc.class_offsets import OffsetSearch, tune_offsets
from baselines.post_hoc.class_scores import Improvement
from baselines.post_hoc.cma_offsets import OffsetEvolution, evolve_offsets
from baselines.post_hoc.cw_plugin import PairSearch, pairwise_weights
from baselines.post_hoc.fw_eg import FrankWolfe, frank_wolfe
from baselines.post_hoc.prior_correction import PriorCorrection, correct_prior
from baselines.post_hoc.threshold_grid import tune_threshold_on_grid
from baselines.post_hoc.threshold_shift import tune_threshold
from baselines.validation import Validation, labels
from benchmarks.arms.contract import ARMS, ArmKind
from benchmarks.problems.choices import Chosen, Point, Shifted
from benchmarks.problems.contract import Pipeline
from benchmarks.runs.codec import changed
from benchmarks.runs.spec import RunSpec
from metricopt.errors import ConfigError, ShapeError
from metricopt.methods.contract import Sees
from metricopt.metrics.base import Metric
from metricopt.metrics.confusion import class_shares

Search = TypeVar("Search", OffsetSearch, OffsetEvolution, PairSearch, FrankWolfe)
THRESHOLDS, GRID = 2_000, 100
"""Most thresholds of a shift, and those of scikit-learn's grid."""


def run_prior_correction(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
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


def run_threshold_shift(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Shift the threshold of a binary problem to where the metric is best."""
    validation = _validation(spec, pipeline, metric)
    found = tune_threshold(
        _class_outputs(spec, pipeline),
        validation,
        max_candidates=_at_most(spec, THRESHOLDS),
    )
    return _chosen(found.shift, validation, (), {"threshold": found.threshold})


def run_threshold_grid(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Choose the threshold of a binary problem as scikit-learn does."""
    validation = _validation(spec, pipeline, metric)
    found = tune_threshold_on_grid(
        _class_outputs(spec, pipeline), validation, thresholds=_at_most(spec, GRID)
    )
    return _chosen(found.shift, validation, (), {"threshold": found.threshold})


def run_class_offsets(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Shift the log-probability of every class to where the metric is best."""
    validation = _validation(spec, pipeline, metric)
    found = tune_offsets(
        _class_outputs(spec, pipeline),
        validation,
        search=_limited(OffsetSearch(), spec),
    )
    return _offsets(found, validation)


def run_cma_offsets(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Search the same shifts with CMA-ES."""
    validation = _validation(spec, pipeline, metric)
    found = evolve_offsets(
        _class_outputs(spec, pipeline),
        validation,
        search=_limited(OffsetEvolution(), spec),
        generator=_generator(spec, pipeline),
    )
    return _offsets(found, validation)


def run_cw_plugin(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Weigh the classes by line searches over pairs of them."""
    validation = _validation(spec, pipeline, metric)
    found = pairwise_weights(
        _class_outputs(spec, pipeline),
        validation,
        search=_limited(PairSearch(), spec),
    )
    return _offsets(found, validation)


def run_fw_eg(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Chosen:
    """Elicit the gain of every class by probes, with Frank-Wolfe.

    Outputs are corrected to the class shares of observe where those of training are
    known.
    """
    validation = _validation(spec, pipeline, metric)
    correction = _prior_correction(pipeline, validation)

    def corrected(outputs: Tensor) -> Tensor:
        return outputs if correction is None else correction.shift(outputs)

    trace = frank_wolfe(
        corrected(_class_outputs(spec, pipeline)),
        validation,
        search=_limited(FrankWolfe(), spec),
        generator=_generator(spec, pipeline),
    )

    def shift_of(classifier: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda outputs: classifier(corrected(outputs))

    points = (
        (each.queries, each.value, shift_of(each.mixture.shift)) for each in trace
    )
    best = trace[-1].mixture
    notes = {"gains": _rounded(best.gains[-1])}
    return _chosen(shift_of(best.shift), validation, points, notes)


def _prior_correction(
    pipeline: Pipeline, validation: Validation
) -> PriorCorrection | None:
    """Return the correction to the class shares of observe; None without training's."""
    training = pipeline.training_shares
    if training is None:
        return None
    observed = class_shares(labels(validation.observe), len(training))
    return correct_prior(training, observed)


def _offsets(trace: Sequence[Improvement], validation: Validation) -> Chosen:
    points = ((each.queries, each.value, each.shift) for each in trace)
    best = trace[-1]
    return _chosen(best.shift, validation, points, {"offsets": _rounded(best.offsets)})


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


def _validation(spec: RunSpec, pipeline: Pipeline, metric: Metric) -> Validation:
    return pipeline.validation(metric, _limit(spec))


def _limited(search: Search, spec: RunSpec) -> Search:
    """Return a search with the settings and the limit of a spec."""
    found = changed(search, spec.arm.settings)
    return replace(found, max_queries=_limit(spec) or found.max_queries)


def _limit(spec: RunSpec) -> int | None:
    return spec.budget.queries or None


def _at_most(spec: RunSpec, count: int) -> int:
    return min(count, _limit(spec) or count)


def _generator(spec: RunSpec, pipeline: Pipeline) -> torch.Generator:
    return pipeline.seeds.generator(spec.arm.kind, spec.metric.label)


def _rounded(numbers: Tensor) -> list[float]:
    return [round(number, 3) for number in numbers.tolist()]


def _class_outputs(spec: RunSpec, pipeline: Pipeline) -> Tensor:
    outputs = pipeline.outputs()
    if not isinstance(outputs, Tensor):
        raise ShapeError(
            f"{spec.arm.kind} needs class outputs in one tensor, got a tuple of "
            f"{len(outputs)} tensors from the pipeline {spec.pipeline.name}"
        )
    return outputs


def _sees_edited_predictions(arm: object) -> Sees:
    return "edited predictions"


ARMS.register("prior-correction")(ArmKind(run_prior_correction))
ARMS.register("threshold-shift")(ArmKind(run_threshold_shift))
ARMS.register("threshold-grid")(ArmKind(run_threshold_grid))
ARMS.register("class-offsets")(ArmKind(run_class_offsets))
ARMS.register("cma-offsets")(ArmKind(run_cma_offsets))
ARMS.register("cw-plugin")(ArmKind(run_cw_plugin))
ARMS.register("fw-eg")(ArmKind(run_fw_eg, sees=_sees_edited_predictions))

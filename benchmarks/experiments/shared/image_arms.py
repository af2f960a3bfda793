"""The arms that the experiments on images share, each with the row it fills."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.experiments.shared import arms
from benchmarks.experiments.shared import output_arms as outputs
from benchmarks.experiments.shared.arms import FinetuningSize
from benchmarks.experiments.shared.plans import Plan
from benchmarks.problems.images.settings import ImageProblem
from benchmarks.problems.images.tiers import (
    CROSS_ENTROPY,
    FILM,
    FILM_AND_OFFSETS,
    TrainedNetwork,
    image_pipeline,
)
from benchmarks.report.layout import Row, finetuned
from benchmarks.runs.spec import Arm, Unit

METRICOPT_BUDGETS = (500,)
IMAGE_RECIPE = {"replay": 8, "inner_steps": 10, "step_share": 0.1}
"""Changes to the recipe for d = 128, where a trajectory covers little of the phi space.

Every update sees earlier tasks again and is fitted for longer. On-policy steps are
shorter: there are more of them, and in so many dimensions the random start is already
long. Chosen for worst-class error on observe only: one half queried, the other judged.
"""
STEP_CANDIDATES = [0.05, 0.1, 0.2, 0.4, 0.8]
"""Candidate lengths of the first step, in spreads of phi, around observe's choice."""
DEVIATION = 0.1
"""Of the first samples of a search."""

RECIPE_NOTE = (
    "MetricOpt replays earlier tasks and takes shorter steps than on A9A, because the "
    "recipe of A9A had made the error worse on observe and on test. Both changes were "
    "chosen for worst-class error on observe only: one half was queried, the other "
    "half judged. Later, at tier local, candidate step lengths were added because "
    "observe had chosen the longest one; the test results of the smaller set had been "
    "seen by then."
)
SIZE_NOTE = (
    "Tier local: T = 100 and K = 5; the paper has T = 200 and K = 10. Fine-tuning "
    "takes its gradients on 10,000 training images without augmentation, so everything "
    "before FiLM is computed only once."
)
QUERY_ARMS = (*arms.SEARCHES, "class-offsets", "metricopt", *outputs.EFFICIENT_ARMS)
OFFSETS_NOTE = (
    "Rows from prior correction on search FiLM with an offset for every output, but "
    "for the one that says it has none. MetricOpt on outputs is run with five seeds."
)
MOVING_SCORES = ("prior-correction", "cw-plugin", "cma-offsets", "fw-eg")
"""Rows that move decisions between classes, which leaves every ranking as it is."""
NOT_ON_IMAGES = ("lq-cma-es", "metricopt-no-harm")
"""lq-CMA-ES needs d <= 32; Table 3 shows what the check for harm makes of MetricOpt."""

LONGER = Row(
    "longer",
    "CE, 6 more epochs",
    "cross-entropy",
    note="control for the networks that are trained from cross-entropy for as long",
)
"""Row of the network whose training goes on with cross-entropy itself."""

CONTROL_ROWS = (
    finetuned("loss-only", "CE fine-tune, last step"),
    finetuned("loss-only-dense", "CE fine-tune, dense eval", "loss-only", "dense"),
    Row(
        "class-offsets",
        "class offsets",
        "cross-entropy",
        note="post hoc; needs the scores of the network, which a black box hides",
        sees=outputs.SCORES,
    ),
    *outputs.search_rows("loss-only"),
    Row(
        "oracle-observe",
        "long CMA-ES",
        note="makes at least as many queries on observe as 50 dense fine-tunings",
        sees=outputs.VALUES,
    ),
    outputs.ORACLE_ROW,
)
METRICOPT_ROWS = (
    finetuned(
        "metricopt-literal",
        "MetricOpt, literal",
        "loss-only",
        note="Algorithm 1 as published: raw targets, one task and one step per update",
    ),
    finetuned("metricopt", "MetricOpt (SGD)", "loss-only", "metricopt-sgd"),
    finetuned("metricopt-adam", "MetricOpt (Adam)", "loss-only"),
    *(
        finetuned(f"metricopt-q{queries}", f"MetricOpt, {queries} queries", "loss-only")
        for queries in METRICOPT_BUDGETS
    ),
)
OUTPUT_ROWS = outputs.rows(
    "cw-plugin",
    f"{outputs.OURS}-unsorted",
    *(name for name in outputs.SHARED if name not in NOT_ON_IMAGES),
)
"""What sees outputs and labels, and the rivals of today, with output offsets."""


def query_budgets(size: FinetuningSize) -> tuple[int, ...]:
    """Return the numbers of queries at which arms are compared."""
    return (*(q for q in (50, 150, 500, 1_500) if q < size.queries), size.queries)


def controls(size: FinetuningSize, *, reach: float = 1.0) -> dict[str, Plan]:
    """Return what every method has to beat, by row.

    Args:
        size: of the tier.
        reach: of the class offsets; see `baselines.post_hoc.class_offsets`.
    """
    shared = arms.controls(
        size, steps=size.steps, queries=size.queries, deviation=DEVIATION
    )
    return shared | {
        "class-offsets": class_offsets(reach),
        "oracle-observe": oracle("method", size),
        "oracle-test": oracle("oracle", size),
    }


def cross_entropy_plans(size: FinetuningSize) -> dict[str, tuple[str, Plan]]:
    """Return all rows on the cross-entropy network, with that loss."""
    return on_cross_entropy(controls(size) | metricopt_plans(size))


def on_cross_entropy(plans: Mapping[str, Plan]) -> dict[str, tuple[str, Plan]]:
    """Return rows on the cross-entropy network, with that loss."""
    return {row: (CROSS_ENTROPY, plan) for row, plan in plans.items()}


def image_row(
    tier: str, problem: ImageProblem, trained: TrainedNetwork, plan: Plan
) -> tuple[Unit, Plan]:
    """Return a row on a network of its own, with output offsets if its plan asks."""
    adapter = FILM_AND_OFFSETS if plan.offsets else FILM
    return image_pipeline(tier, problem, trained, adapter=adapter), plan


def output_plans(metric: str, size: FinetuningSize) -> dict[str, Plan]:
    """Return what sees outputs and labels, with its ablations and ceilings, by row."""
    found = outputs.post_hoc_plans(*MOVING_SCORES) | outputs.line_plans()
    found |= outputs.rival_plans(size.queries) | outputs.ceiling_plans(metric)
    found |= outputs.without_offsets_plans()
    found |= outputs.no_harm_plans(size.queries, deviation=DEVIATION)
    if metric == "worst-class-error":
        found |= outputs.unsorted_plans()
    found[outputs.OURS] = replace(outputs.ours(), meta_tests=size.seeds)
    return {row: plan for row, plan in found.items() if row not in NOT_ON_IMAGES}


def class_offsets(reach: float) -> Plan:
    """Return offsets of the class scores, chosen on observe."""
    return Plan(Arm("class-offsets", settings={"reach": reach}))


def oracle(kind: str, size: FinetuningSize) -> Plan:
    """Return a long search: `method` on observe, `oracle` on test."""
    search = Arm(kind, "cma-es", {"deviation": DEVIATION})
    return Plan(search, queries=size.oracle)


def metricopt_plans(size: FinetuningSize) -> dict[str, Plan]:
    """Return the forms of MetricOpt by row, with all queries and with fewer."""
    found = {
        "metricopt-literal": metricopt(size, name="metricopt-literal"),
        "metricopt": metricopt(size),
        "metricopt-adam": metricopt(size, optimizer="adam"),
    }
    for queries in METRICOPT_BUDGETS:
        if queries <= size.queries:
            found[f"metricopt-q{queries}"] = metricopt(size, queries=queries)
    return found


def metricopt(
    size: FinetuningSize,
    *,
    name: str = "metricopt",
    optimizer: str | None = None,
    queries: int | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Plan:
    """Return one form of MetricOpt.

    Args:
        size: of the tier.
        name: of the method.
        optimizer: of the fine-tuning stage; None for the method's own.
        queries: budget of one result; None for all that its tasks and trials take.
        changes: to the recipe.
    """
    rollout = {"steps": size.steps, "observations": size.observations}
    changed: dict[str, Any] = {"tasks": size.tasks, "rollout": rollout}
    chosen: dict[str, Any] = {} if optimizer is None else {"optimizer": optimizer}
    if name == "metricopt":
        changed |= IMAGE_RECIPE
        chosen["steps"] = STEP_CANDIDATES
    return Plan(
        arms.method(name, recipe=changed | dict(changes or {}), **chosen),
        queries=queries or size.queries,
        meta_tests=size.meta_tests,
        diagnose=optimizer is None and queries is None,
        value_functions=size.value_functions,
    )

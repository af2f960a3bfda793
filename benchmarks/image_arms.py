"""The arms that the experiments on images share, each with the row it fills."""

from collections.abc import Mapping
from typing import Any

from benchmarks.images import Size
from benchmarks.layout import Row
from benchmarks.protocol import Arm, method

METRICOPT_BUDGETS = (500,)
WIDE = {"replay": 8, "inner_steps": 10, "step_share": 0.1}
"""Changes to the recipe for phi of d = 128, of which a trajectory shows little.

Every update sees earlier tasks again, and is fitted for longer; on-policy steps are
shorter, for there are more of them, and start noise of so many numbers is long. Chosen
for worst-class error on the observe split alone, one half queried, the other judging.
"""
STEPS = [0.05, 0.1, 0.2, 0.4, 0.8]
"""Candidate lengths of the first step, in spreads of phi: around what observe chose."""

RECIPE_NOTE = (
    "MetricOpt learns with replay of earlier tasks and shorter steps than on A9A. Both "
    "were chosen for worst-class error on observe alone, one half queried, the other "
    "judging, after the recipe of A9A had made the error worse on observe and test. "
    "At tier local the candidate step lengths were then widened, since observe had "
    "chosen the longest; test figures of the narrower set had been seen."
)
SIZE_NOTE = (
    "Tier local: T = 100 and K = 5 where the paper has T = 200 and K = 10. Fine-tuning "
    "takes its gradients on 10,000 of the training images without augmentation, so "
    "that all before FiLM is computed once."
)
SEARCHES = ("random-search", "cma-es", "guided-cma", "class-offsets", "metricopt")

LONGER = Row(
    "longer",
    "CE, 6 more epochs",
    "cross-entropy",
    note="control of the networks that go on from cross-entropy for as long",
)
"""Row of the network that goes on with cross-entropy, where others do so without."""

CONTROL_ROWS = (
    Row("loss-only", "CE fine-tune, last step"),
    Row("loss-only-dense", "CE fine-tune, dense eval", "loss-only", "dense"),
    Row(
        "class-offsets",
        "class offsets",
        "cross-entropy",
        note="post hoc: needs scores, not a black box",
    ),
    Row("random-search", "random search", "loss-only"),
    Row("cma-es", "CMA-ES", "loss-only"),
    Row("guided-cma", "guided CMA-ES (ours)", "loss-only"),
    Row(
        "oracle-observe",
        "long CMA-ES",
        note="at least as many queries on observe as 50 dense fine-tunings make",
    ),
    Row(
        "oracle-test",
        "oracle: CMA-ES on test itself",
        note=(
            "one search of the test split, and no result: the adapter can express at "
            "least so much"
        ),
    ),
)
METRICOPT_ROWS = (
    Row(
        "metricopt-literal",
        "MetricOpt, literal",
        "loss-only",
        note="Algorithm 1 as published: raw targets, one task and one step per update",
    ),
    Row("metricopt", "MetricOpt (SGD)", "loss-only", "metricopt-sgd"),
    Row("metricopt-adam", "MetricOpt (Adam)", "loss-only"),
    *(
        Row(f"metricopt-q{queries}", f"MetricOpt, {queries} queries", "loss-only")
        for queries in METRICOPT_BUDGETS
    ),
)


def query_budgets(size: Size) -> tuple[int, ...]:
    """Return the numbers of queries at which arms are compared."""
    return (*(q for q in (50, 150, 500, 1_500) if q < size.queries), size.queries)


def controls(size: Size, *, reach: float = 1.0) -> dict[str, Arm]:
    """Return what every method has to beat, by row.

    Args:
        size: of the tier.
        reach: of the class offsets; see `baselines.class_offsets.OffsetSearch`.
    """
    searches = {"queries": size.queries, "meta_tests": size.search_tests}
    return {
        "loss-only": loss_only(size),
        "loss-only-dense": dense(size),
        "class-offsets": Arm("class-offsets", settings=(("reach", reach),)),
        "random-search": Arm(*method("random-search", deviation=0.1), **searches),
        "cma-es": Arm(*method("cma-es", deviation=0.1), **searches),
        "guided-cma": Arm(*method("guided-cma", deviation=0.1), **searches),
        "oracle-observe": oracle("method", size),
        "oracle-test": oracle("oracle", size),
    }


def cross_entropy_arms(size: Size) -> dict[str, tuple[str, Arm]]:
    """Return all arms on the cross-entropy network, each with that loss, by row."""
    found = {"cross-entropy": untouched()} | controls(size) | guided(size)
    return {row: ("cross-entropy", arm) for row, arm in found.items()}


def untouched() -> Arm:
    """Return the pre-trained network as it is."""
    return Arm(*method("untouched"))


def loss_only(size: Size) -> Arm:
    """Return fine-tuning with the loss alone."""
    return Arm(*method("loss-only"), meta_tests=size.meta_tests)


def dense(size: Size) -> Arm:
    """Return loss-only fine-tuning with the metric evaluated at every step."""
    return Arm(
        *method("loss-only-dense"), queries=size.steps, meta_tests=size.meta_tests
    )


def oracle(kind: str, size: Size) -> Arm:
    """Return a long search: `method` on observe, `oracle` on test."""
    settings = method("cma-es", deviation=0.1)[2]
    return Arm(kind, "cma-es", settings, queries=size.oracle)


def guided(size: Size) -> dict[str, Arm]:
    """Return MetricOpt with all its queries, and with less, by row."""
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
    size: Size,
    *,
    name: str = "metricopt",
    optimizer: str | None = None,
    queries: int | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Arm:
    """Return one form of MetricOpt.

    Args:
        size: of the tier.
        name: of the method.
        optimizer: of the fine-tuning stage; None for the method's own.
        queries: budget of one result; None for all that its tasks and trials take.
        changes: to the recipe.
    """
    rollout = {"steps": size.steps, "observations": size.observations}
    recipe: dict[str, Any] = {"tasks": size.tasks, "rollout": rollout}
    settings: dict[str, Any] = {} if optimizer is None else {"optimizer": optimizer}
    if name == "metricopt":
        recipe |= WIDE
        settings["steps"] = STEPS
    return Arm(
        *method(name, recipe=recipe | dict(changes or {}), **settings),
        queries=queries or size.queries,
        meta_tests=size.meta_tests,
        diagnose=optimizer is None and queries is None,
    )

"""Runs of tier paper with few steps and queries, for miniatures of its data."""

from dataclasses import replace

from benchmarks.runs.codec import merged
from benchmarks.runs.spec import Spending

STEPS, TASKS = 10, 3


def shrunk_unit(unit, settings):
    """A pipeline with some of its settings made small."""
    return replace(unit, settings=merged(unit.settings, settings))


def shrunk(spec, settings, *, queries, also):
    """A run with small settings of its pipeline, and a recipe of few tasks."""
    arm = spec.arm
    if "recipe" in arm.settings:
        rollout = {"steps": STEPS, "observations": 2}
        recipe = arm.settings["recipe"] | {"tasks": TASKS, "rollout": rollout}
        arm = replace(arm, settings=arm.settings | {"recipe": recipe})
    if arm.source is not None:
        arm = replace(arm, source=shrunk_unit(arm.source, settings))
    return replace(
        spec,
        pipeline=shrunk_unit(spec.pipeline, settings),
        arm=arm,
        budget=Spending(min(spec.budget.queries, queries), STEPS),
        also=also,
        meta_tests=1,
    )

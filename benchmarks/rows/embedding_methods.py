"""Embedding networks that ALA trains by losses it adapts, and those of fixed losses."""

from typing import Any

from benchmarks.problems.problem import Problem
from benchmarks.problems.retrieval.method_networks import MethodRetrieval
from benchmarks.rows.contract import Row, Run
from benchmarks.runs.spec import Arm, Unit

PAPER = "ALA Table 3"
LABELS: dict[str, tuple[str, str | None]] = {
    "triplet": ("triplet loss", "triplet"),
    "margin": ("margin loss", "margin"),
    "triplet-mixture": ("triplet + ALA, distance mixture", "triplet+mixture"),
    "margin-mixture": ("margin + ALA, distance mixture", "margin+mixture"),
    "margin-mixture-powers": ("margin + ALA, distance mixture of powers", None),
    "margin-mixture-noise": ("margin + distance mixture, random weights", None),
    "margin-focal": ("margin + ALA, focal weighting", "margin+focal"),
    "margin-mixture-transfer": (
        "margin + ALA, distance mixture, policy of the other problem",
        "margin+faces",
    ),
}
"""Methods by name: the label, and the row of the paper's table."""
NOTES = {
    "triplet": "semi-hard triplets of the mini-batch, by pytorch-metric-learning",
    "margin": "distance-weighted negatives; its boundaries are learned, "
    "by pytorch-metric-learning",
    "margin-mixture-powers": "another set of ten functions; the paper says that the "
    "choice matters little",
    "margin-mixture-transfer": "the policy that `margin-mixture` of the other problem "
    "ended with, which stays as it is and makes no query; the steps of that training "
    "are not counted",
    "margin-mixture-noise": "control without a policy: the default weights with 10 % "
    "noise, which stay as they are",
}


def trained(method: str) -> Row:
    """Return the row of the network that a method trains, see `LABELS`.

    Each is tested against the loss alone of its framework.
    """
    label, paper = LABELS[method]
    framework, _, form = method.partition("-")

    def on(problem: Problem) -> Any:
        assert isinstance(problem, MethodRetrieval)
        return problem.by(method)

    def run(problem: Problem, metric: Unit) -> Run:
        return Run(Arm("theta", "ala" if form else framework))

    return Row(
        method,
        label,
        "networks",
        run=run,
        base=(framework,) if form else (),
        paper={} if paper is None else {PAPER: paper},
        note=NOTES.get(method, ""),
        compared=False,
        on=on,
    )

"""Rows of networks that methods train, and of MetricOpt on top of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.experiments.shared import output_arms as outputs
from benchmarks.experiments.shared.image_arms import metricopt
from benchmarks.experiments.shared.plans import Plan
from benchmarks.experiments.shared.problems import NamedProblem
from benchmarks.problems.images import tiers as images
from benchmarks.problems.images.settings import ImageProblem
from benchmarks.problems.images.taught import (
    CE,
    SIZES,
    TaughtNetwork,
    TaughtSize,
    taught_pipeline,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import Row, finetuned
from benchmarks.runs.spec import Arm, Unit

LABELS = {
    CE: "cross-entropy",
    "self-paced": "self-paced, within the mini-batch",
    "self-paced-global": "self-paced, one threshold",
    "large-margin": "large-margin softmax",
    "pairwise-aucroc": "pairwise AUCROC loss",
    "aucpr": "AUCPR loss",
    "l2t-dlf": "L2T-DLF (our loss)",
    "moew": "MOEW",
    "ala-noise": "ALA (our loss), random matrix",
    "ala-confusion": "ALA (our loss), confusion matrix",
    "ala": "ALA (our loss), one network",
    "ala-multi": "ALA (our loss), several networks",
    "ala-literal": "ALA, one network",
    "ala-reuse": "ALA (our loss), 2nd run with the policy of the 1st",
    "ala-finetune": "ALA (our loss), 2nd run, the policy learns on",
    "reloss": "ReLoss",
    "reloss-anchored": "ReLoss, anchored (ours)",
    "reloss-regression": "ReLoss by regression",
}
NOTES = {
    "l2t-dlf": "the teacher sees labels of the observe split, not the metric",
    "ala-multi": "one of the networks that share the controller; the steps and seconds "
    "of all are counted",
    "ala-literal": "eq. 6 as printed, times 4; our loss has no sigmoid, and a negative "
    "parameter is a weight of log(1 - p)",
    "moew": "one query a trial; a trial is a shorter training from the same weights",
    "ala-confusion": "eq. 7 in units of log C, at most 1",
    "reloss": "trains twice: first with cross-entropy, to record logits",
    "reloss-anchored": "|h(p) - h(1)| instead of |h(p)|; ours",
    "reloss-regression": "the surrogate learns values instead of ranks",
}
ANOTHER_NETWORK = "another network and fewer images than the paper's"
ON_TOP = ("metricopt", outputs.OURS)
"""Methods that go on with a trained network, as the ends of row names."""
TRAINING = (
    "The last training of every method takes as many steps as cross-entropy, from the "
    "same weights; `times` below counts all its steps."
)


def row(name: str, base_row: str, paper_row: str | None = None) -> Row:
    """Return the row of a network that a method trains."""
    base = None if name == base_row else base_row
    return Row(name, LABELS[name], base, paper_row, NOTES.get(name, ""))


def rows_on_top(name: str) -> tuple[Row, ...]:
    """Return the rows of MetricOpt, and of MetricOpt on outputs, on a network."""
    label = LABELS[name]
    return (
        finetuned(f"{name}+metricopt", f"{label} + MetricOpt", name),
        Row(
            f"{name}+{outputs.OURS}",
            f"{label} + MetricOpt on outputs",
            name,
            sees=outputs.SCORES,
        ),
    )


def plans_on_top(size: TaughtSize) -> dict[str, Plan]:
    """Return how they are filled, by method."""
    return dict(zip(ON_TOP, (metricopt(size), outputs.ours()), strict=True))


def taught_rows(
    tier: str,
    networks: Mapping[str, TaughtNetwork],
    on_top: Iterable[str],
    *,
    offline: bool | None,
) -> dict[str, tuple[Unit, Plan]]:
    """Return the pipeline and plan of every row, by name.

    Args:
        tier: of the runs.
        networks: what the methods train, by row.
        on_top: rows whose networks MetricOpt goes on with.
        offline: see `benchmarks.data.registry.resolve_variant`.
    """

    def filled(trained: TaughtNetwork, plan: Plan) -> tuple[Unit, Plan]:
        adapter = images.FILM_AND_OFFSETS if plan.offsets else images.FILM
        found = taught_pipeline(tier, trained, offline=offline, adapter=adapter)
        return found, plan

    rows = {
        # The arm names what trained the network.
        name: filled(trained, Plan(Arm("theta", trained.trained_by(tier))))
        for name, trained in networks.items()
    }
    for name in on_top:
        for end, plan in plans_on_top(SIZES[tier]).items():
            rows[f"{name}+{end}"] = filled(networks[name], plan)
    return rows


def taught_column(
    tier: str, name: str, label: str, metric: str, named: NamedProblem[ImageProblem]
) -> Column:
    """Return the column of such networks, without a paper's."""
    more: dict[str, Any] = {}
    if tier == "local":
        more["not_comparable"] = ANOTHER_NETWORK
    test_per_train = named.problem.test_per_train
    return Column(name, label, Unit(metric), test_per_train=test_per_train, **more)

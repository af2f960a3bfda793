"""Figure S2 of MetricOpt: training loss and test metric around solutions for AUCPR.

Source: Huang et al., CVPR 2021, Fig. S2 and Sec. C of the supplement: solutions of the
AUCPR loss, ALA, RaMBO (black-box differentiation) and MetricOpt. Differs: there is a
plane of whole networks and one of phi, a row for every solution, and straight paths.
"""

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.problems.images import tiers
from benchmarks.problems.images.method_networks import (
    AUCPR,
    MethodImages,
    described,
    size_at,
)
from benchmarks.problems.images.tiers import Images
from benchmarks.problems.problem import Problem
from benchmarks.report.layout import Block
from benchmarks.rows.contract import Row, Run, always, family
from benchmarks.rows.controls import CROSS_ENTROPY, LOSS_ONLY_ROW, finetuned
from benchmarks.rows.metricopt import METRICOPT as USUAL
from benchmarks.rows.metricopt import metricopt
from benchmarks.rows.network_methods import trained
from benchmarks.rows.networks import blackbox, longer, network
from benchmarks.rows.on_outputs import WITHOUT_OFFSETS
from benchmarks.runs.spec import Arm, RunSpec, Unit
from benchmarks.tables.network_methods import method_column
from benchmarks.tables.parts import NATURAL, SIZE_NOTE, column_of
from benchmarks.tables.registry import EXPERIMENTS, Experiment
from benchmarks.tables.table import Place, Table, experiment_of, table

RAW, SOFTMAX = Unit("aucpr-macro-logits"), Unit(AUCPR)
PLANES = Block("planes", "planes through the solutions")
METRICOPT = replace(USUAL, run=metricopt(diagnose=False), is_pictured=False)
ON_PHI = (LOSS_ONLY_ROW, METRICOPT, WITHOUT_OFFSETS)
NETWORKS = (
    longer(),
    network("aucpr", "AUCPR loss", AUCPR, {}),
    blackbox("blackbox-ap", "with the AP loss"),
)
TAUGHT = tuple(
    trained(name, base=CROSS_ENTROPY.name)
    for name in ("ala", "moew", "reloss-anchored")
)
"""Networks of methods that start from the weights cross-entropy starts from."""

_plane = family("ceilings", sees="test", compared=False)
NETWORK_PLANE = _plane(
    "network-plane",
    "plane of networks: best point of its grid",
    always(Run(Arm("network-plane"))),
)
PHI_PLANE = _plane(
    "phi-plane", "plane of phi: best point of its grid", always(Run(Arm("phi-plane")))
)
NETWORK_SOLUTIONS = tuple(
    row.name for row in (*NETWORKS, *TAUGHT, METRICOPT, WITHOUT_OFFSETS)
)
PHI_SOLUTIONS = (*(row.name for row in ON_PHI), "phi-aucpr", "phi-blackbox")
SMALL = {"side": 3, "along": 3, "train": 100, "test": 200}
FINE = {"side": 15, "along": 11}
"""Changes to what is drawn: at tier smoke, and of phi, which is cheap to evaluate."""


def figs2(tier: str) -> Table:
    """Return the figure's table at a tier."""
    size = replace(tiers.SIZES[tier], value_functions=1, seeds=1)
    name = tiers.default_network(tier)
    problem = tiers.cifar10(tier, size=size)
    few = _few_images(tier)
    column, other = f"{name}/{RAW.label}", f"methods/{AUCPR}"
    rows = (CROSS_ENTROPY, *NETWORKS, *_other_losses(problem), *ON_PHI)
    # One method is enough to see that all runs.
    taught = TAUGHT[:1] if tier == "smoke" else TAUGHT
    few_rows = (CROSS_ENTROPY, *taught, *ON_PHI)
    planes = (NETWORK_PLANE, PHI_PLANE)
    return table(
        [
            Place("natural", problem, RAW, column, rows=rows, asks=ASKS),
            Place("natural", few, SOFTMAX, other, rows=few_rows, asks=ASKS),
            Place(PLANES.name, problem, RAW, column, rows=planes, asks=ASKS),
            Place(PLANES.name, few, SOFTMAX, other, rows=planes, asks=ASKS),
        ],
        title="Figure S2: training loss and test AUCPR around solutions",
        caption=(
            f"FiLM on the last batch norm, T = {size.steps}, K = {size.observations}. "
            f"First column: {tiers.network_label(tier)}, {size.tasks} tasks. Second "
            f"column: {described(tier)}; {few.size.tasks} tasks."
        ),
        convention="Loss is cross-entropy on training images; AUCPR is on test images.",
        blocks=(*NATURAL, PLANES),
        columns=(
            column_of(problem, RAW, f"{name} AUCPR, raw outputs", name=column),
            replace(method_column(tier, few, AUCPR, "methods AUCPR"), name=other),
        ),
        untouched_row=CROSS_ENTROPY.name,
        query_budgets=(),
        notes=NOTES,
    )


ASKS = "is not one of the solutions drawn here"


def _few_images(tier: str) -> Images:
    images = tiers.DIGITS if tier == "smoke" else tiers.CIFAR10
    size = replace(size_at(tier, whole=False), seeds=1)
    return MethodImages.of(images, tier, metric=AUCPR, size=size)


def _other_losses(problem: Images) -> tuple[Row, Row]:
    """Return fine-tuning of phi by losses that other networks were trained with."""

    def run(problem: Problem, metric: Unit) -> Run:
        return Run(Arm("other-loss", "loss-only"), meta_tests=problem.size.meta_tests)

    known = {"run": run, "base": (LOSS_ONLY_ROW.name,)}
    note = "phi follows the loss as the network trained with it left it"
    named = (
        ("phi-aucpr", "AUCPR loss on phi"),
        ("phi-blackbox", "black-box loss on phi"),
    )
    pairs = zip(named, NETWORKS[1:], strict=True)
    first, second = (
        finetuned(*names, **known, note=note, learns_on=row.on(problem))
        for names, row in pairs
    )
    return first, second


NOTES = (
    "AUCPR of the first column ranks images by raw outputs, of the second by softmax "
    "probabilities, which its methods worked towards. ALA, MOEW and ReLoss trained "
    "networks of the second column's size alone, so they stand there.",
    "Loss is on training images and AUCPR on test images, as in the paper's figure: "
    "where their optima differ, some of it is training against test. Grids of networks "
    "have 7 x 7 points; what lies between is interpolated.",
    "The planes compete with nobody. They read the test split after all solutions are "
    "chosen; their rows show the best point of a plane, which no method could know.",
    "A plane holds the untouched network and is spanned by the first two principal "
    "directions of the displacements from it. Figures say how much of the squared "
    "displacement lies on it. A solution is drawn where it is projected to.",
    "On the plane of networks lengths are in units of each filter's norm. Batch norms "
    "get the statistics of the 1,000 training images that give the loss. They are "
    "rougher than those of the whole training, so that AUCPR is lower there than in "
    "the table. It is on 2,000 test images drawn at random.",
    "On the plane of phi AUCPR is on all test images, the loss on 1,000 training "
    "images.",
    "Solutions are the first results of their rows. A result of phi stands on the "
    "plane of networks with phi in its weights, which moves the last batch norm alone.",
    SIZE_NOTE,
)


def _with_solutions(found: Experiment) -> Experiment:
    """Return the experiment with the runs that lead to solutions told to the planes."""

    def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
        every = found.specs(tier, replicates, offline)
        return [_told(spec, every) for spec in every]

    return replace(found, specs=specs)


def _told(spec: RunSpec, every: Sequence[RunSpec]) -> RunSpec:
    if spec.block != PLANES.name:
        return spec
    of_phi = spec.row == PHI_PLANE.name
    names = PHI_SOLUTIONS if of_phi else NETWORK_SOLUTIONS
    place = spec.column, spec.replicate
    solutions = [
        each.to_json()
        for each in every
        if each.row in names and (each.column, each.replicate) == place
    ]
    changes = FINE if of_phi else {}
    changes = SMALL if spec.tier == "smoke" else changes
    settings = {"solutions": solutions, **changes}
    return replace(spec, arm=replace(spec.arm, settings=settings))


EXPERIMENTS.register("figs2")(_with_solutions(experiment_of("figs2", figs2)))

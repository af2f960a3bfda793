"""Learned optimizers on new tasks: like those they learned on, longer, and elsewhere.

Ours. They learned on fine-tunings of one network, T steps long. They are held against
SGD, momentum, Adam and PowerSign, whose rates are tuned for each column.
"""

from dataclasses import replace

from benchmarks.problems.images import tiers as images
from benchmarks.problems.optimizers.learning import Supervision
from benchmarks.problems.problem import Problem
from benchmarks.problems.tabular import tiers as tabular
from benchmarks.report.layout import Block, OverTasks
from benchmarks.rows import controls, learned_optimizers
from benchmarks.rows.contract import Row
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import column_of
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

METRIC = Unit("log-loss")
LENGTHS = (1, 2, 5)
"""Lengths of fine-tunings, in those of meta-training."""
REPLICATES = {"paper": 10, "local": 3, "smoke": 1}
BEST = "loss-only-adam"
START_DEVIATION = 1.0
"""Deviation of starts so far away that there is something to be learned.

The usual ones, of .1, lie in reach of the first step.
"""


def _tuned(row: Row, optimizer: str, label: str) -> Row:
    run = learned_optimizers.of_the_loss(optimizer, start_deviation=START_DEVIATION)
    return replace(row, label=f"{label}, tuned", run=run)


TUNED: tuple[Row, ...] = (
    controls.CROSS_ENTROPY,
    _tuned(controls.LOSS_ONLY_ROW, "sgd", "SGD"),
    _tuned(learned_optimizers.MOMENTUM, "momentum", "momentum"),
    _tuned(learned_optimizers.ADAM, "adam", "Adam"),
    _tuned(learned_optimizers.POWERSIGN, "powersign", "PowerSign"),
)
"""Optimizers with a rate, and the network before any step."""
KINDS = {
    learned_optimizers.LSTM: "lstm",
    learned_optimizers.MLP: "mlp",
    learned_optimizers.LOSS_MLP: "metricopt-mlp",
}
ASKS = "is not one of the optimizers of the loss compared here"
BLOCK = Block("new-tasks", "new tasks")


def optimizers(tier: str) -> Table:
    """Return the table at a tier."""
    learned_on, problems = _learned_on(tier), _problems(tier)
    rows = (*TUNED, *(_learned(row, kind, learned_on) for row, kind in KINDS.items()))
    places = [
        Place(BLOCK.name, problem, METRIC, name, rows=rows, asks=ASKS)
        for name, (_, problem) in problems.items()
    ]
    steps = learned_on.size.steps
    return table(
        places,
        title="Learned optimizers on new tasks",
        caption=(
            "A task is a fine-tuning of phi from a random start of deviation "
            f"{START_DEVIATION:g}, far from phi = 0. Optimizers learned on "
            f"{steps} steps of {learned_on.name}, an MLP with d = "
            f"{learned_on.phi_size} input biases, from the loss alone."
        ),
        convention="Mean negative log-likelihood on test after the last step.",
        blocks=(BLOCK,),
        columns=tuple(
            column_of(problem, METRIC, label, name=name)
            for name, (label, problem) in problems.items()
        ),
        loss_only_row="loss-only",
        untouched_row="cross-entropy",
        rival_row="loss-only",
        over_tasks=OverTasks(
            tuple(row.name for row in KINDS),
            tuple(row.name for row in TUNED[1:]),
            learners=False,
        ),
        query_budgets=(),
        mixed=True,
        notes=NOTES,
    )


def _learned(row: Row, kind: str, learned_on: Problem) -> Row:
    """Return the row of an optimizer that learned on one problem, for any other."""
    supervision: Supervision = "loss"
    run = learned_optimizers.learned(
        supervision,
        kind,
        on=lambda _: learned_on,
        start_deviation=START_DEVIATION,
    )
    return replace(row, run=run, learns_on=learned_on, base=(BEST,))


def _learned_on(tier: str) -> tabular.Binary:
    return _sized(tabular.DIGIT if tier == "smoke" else tabular.COVTYPE, tier, 1)


def _sized(problem: tabular.Binary, tier: str, length: int) -> tabular.Binary:
    """Return a problem with fine-tunings so many times as long."""
    size = tabular.SIZES[tier]
    sized = replace(size, steps=length * size.steps, replicates=REPLICATES[tier])
    return problem.at(tier, size=sized, sampling="natural")


def _problems(tier: str) -> dict[str, tuple[str, Problem]]:
    """Return problems with their labels, by the names of their columns."""
    smoke, own = tier == "smoke", _learned_on(tier)
    found: dict[str, tuple[str, Problem]] = {}
    for length in LENGTHS:
        text = "T" if length == 1 else f"{length} T"
        longer = _sized(own, tier, length)
        found[f"{own.name}/{length}T"] = (f"{own.name}, {text}", longer)
    other = tabular.CANCER if smoke else tabular.A9A
    found[other.name] = (f"{other.name}, same d", _sized(other, tier, 1))
    network = "digit-net" if smoke else "small"
    image = images.cifar10(tier, network=images.TrainedNetwork(network))
    found[network] = (f"{image.name}, d = {image.phi_size}", image)
    return found


NOTES = (
    "SGD, momentum, Adam and PowerSign have the rate of seven with the least training "
    "loss, tuned on the column itself. Learned optimizers are not tuned: they learned "
    "on the first column's tasks, with other starts and mini-batches.",
    "T is the length they learned on. In longer runs their inputs of time lie beyond "
    "what they have seen.",
    "Signs hold a learned optimizer against Adam, the next table against SGD, over "
    "replicates. Task by task it is held against every tuned optimizer, over the same "
    "starts and mini-batches. On CIFAR-10 the mean of three optimizers counts.",
)

EXPERIMENTS.register("optimizers")(experiment_of("optimizers", optimizers))

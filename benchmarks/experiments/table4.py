"""Table 4 of MetricOpt: top-1 and top-5 accuracy on ImageNet, and transfer to it.

Source: Huang et al., CVPR 2021, Table 4 and Sec. 4.3. All runs work towards the error
rate. The control arms, MetricOpt on outputs, the oracle and the arms at equal queries
are ours.
"""

from dataclasses import replace

from benchmarks.data.any_source import find_any
from benchmarks.experiments.registry import EXPERIMENTS, Experiment, check_tier
from benchmarks.experiments.shared import arms
from benchmarks.experiments.shared import output_arms as outputs
from benchmarks.experiments.shared.image_arms import (
    DEVIATION,
    class_offsets,
    metricopt,
    oracle,
    query_budgets,
)
from benchmarks.experiments.shared.plans import (
    Part,
    Plan,
    on_pipeline,
    table_specs,
)
from benchmarks.problems.photographs.tiers import (
    CAPTIONS,
    ELSEWHERE,
    NETWORKS,
    OWN,
    POWERSIGN,
    SECOND,
    SIZES,
    SMALLER,
    PhotographSize,
    network_of,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block, Row, TableLayout, finetuned
from benchmarks.runs.spec import RunSpec, Unit

METRIC = "mcr"
SHOWN = ("top-1", "top-5")
NOT_IMAGENET = "other data and another network than the paper's"
UNTOUCHED, BASE, RIVAL = "rmsprop", "loss-only", "loss-only-dense"
SOURCES = {f"metricopt-{name}": name for name in (SMALLER, ELSEWHERE)}
"""What the value function of a row was learned on, by row."""
BLOCKS = (Block("natural", "natural sampling"),)
QUERY_ARMS = (
    *arms.SEARCHES,
    "metricopt",
    *SOURCES,
    "class-offsets",
    "portfolio",
    outputs.OURS,
)
SECOND_QUERIES = 20
"""More queries of a second run: it chooses its step again."""
TRANSFER_NOTE = (
    "the queries that its value function was learned with were made on that network, "
    "and are not counted here"
)
ROWS = (
    Row(UNTOUCHED, "RMSProp + CE, untouched (phi = 0)", paper_row="rmsprop"),
    Row(
        "powersign",
        "PowerSign-cd",
        UNTOUCHED,
        "powersign-cd",
        note="another network, trained with it from the start",
    ),
    finetuned(BASE, "CE fine-tune, last step"),
    finetuned(RIVAL, "CE fine-tune, dense eval", BASE),
    *outputs.search_rows(BASE),
    finetuned(
        f"metricopt-{SMALLER}",
        "MetricOpt (SGD), f of ResNet-18",
        BASE,
        "metricopt-resnet18",
        note=TRANSFER_NOTE,
    ),
    finetuned(
        f"metricopt-{ELSEWHERE}",
        "MetricOpt (SGD), f of CIFAR-10",
        BASE,
        "metricopt-cifar10",
        note=TRANSFER_NOTE,
    ),
    finetuned("metricopt", "MetricOpt (SGD)", BASE, "metricopt-nasnet"),
    Row(
        "second-run",
        "MetricOpt + 2nd run",
        BASE,
        "metricopt-second",
        note="theta is trained for another epoch with the tuned phi in it, then phi is "
        "fine-tuned again from there with the same value function",
        sees=outputs.GRADIENTS,
    ),
    Row(
        "class-offsets",
        "class offsets",
        UNTOUCHED,
        note="post hoc; needs the scores of the network, which a black box hides",
        sees=outputs.SCORES,
    ),
    *outputs.only(UNTOUCHED, "portfolio", outputs.OURS, "cma-es-no-harm"),
    outputs.ORACLE_ROW,
)


def plans(tier: str, size: PhotographSize) -> dict[str, Plan]:
    """Return how every row on the network of the table is filled, by row."""
    own = metricopt(size)
    no_harm = outputs.no_harm_plans(size.queries, deviation=DEVIATION)
    transferred = {
        row: _with_source(own, NETWORKS[tier][name].pipeline(tier))
        for row, name in SOURCES.items()
    }
    return {
        UNTOUCHED: arms.untouched(),
        BASE: arms.loss_only(size),
        RIVAL: arms.dense(size, size.steps),
        **arms.searches(size, size.queries, deviation=DEVIATION),
        **transferred,
        "metricopt": own,
        "second-run": replace(
            own,
            arm=replace(own.arm, kind="second-run", schedule=SECOND),
            queries=own.queries + SECOND_QUERIES,
            meta_tests=1,
            diagnose=False,
        ),
        "class-offsets": class_offsets(1.0),
        "portfolio": outputs.line_plans()["portfolio"],
        outputs.OURS: replace(outputs.ours(), meta_tests=size.seeds),
        "cma-es-no-harm": no_harm["cma-es-no-harm"],
        "oracle-test": oracle("oracle", size),
    }


def _with_source(plan: Plan, source: Unit) -> Plan:
    """Return a plan whose value function is learned on another pipeline."""
    return replace(plan, arm=replace(plan.arm, source=source), diagnose=False)


def specs(tier: str, replicates: int | None, offline: bool | None) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    size, networks = SIZES[tier], NETWORKS[tier]
    if offline is False:
        # Downloads what is missing, before any run.
        for name in {each.problem.dataset for each in networks.values()}:
            find_any(name).load()
    own = networks[OWN]
    rows = on_pipeline(
        own.pipeline(tier),
        plans(tier, size),
        with_offsets=own.pipeline(tier, offsets=True),
    )
    powersign = own.trained(POWERSIGN[tier]).pipeline(tier)
    rows["powersign"] = (powersign, arms.untouched())
    part = Part(
        BLOCKS[0].name,
        own.problem.dataset,
        METRIC,
        size.steps,
        rows,
        tuple(map(Unit, SHOWN)),
    )
    return table_specs("table4", tier, [part], replicates=replicates or size.replicates)


def layout(tier: str) -> TableLayout:
    """Return what Table 4 looks like at a tier."""
    size, dataset = SIZES[tier], NETWORKS[tier][OWN].problem.dataset
    columns = tuple(
        Column(
            f"{dataset}/{metric}",
            metric,
            Unit(metric),
            runs=dataset,
            paper_column=f"imagenet/{metric}",
            not_comparable="" if tier == "paper" else NOT_IMAGENET,
        )
        for metric in SHOWN
    )
    return TableLayout(
        experiment="table4",
        title="Table 4 of MetricOpt (CVPR 2021): accuracy on ImageNet",
        caption=(
            f"{CAPTIONS[tier]}. FiLM on the last feature map, d = 256, "
            f"T = {size.steps}, K = {size.observations}, {size.tasks} tasks. Queries "
            "of meta-training count."
        ),
        convention="All runs work towards the error rate, 1 - top-1.",
        blocks=BLOCKS,
        rows=ROWS,
        columns=columns,
        paper_table="Table 4",
        loss_only_row=BASE,
        untouched_row=UNTOUCHED,
        rival_row=RIVAL,
        query_budgets=(outputs.QUERIES, *query_budgets(size)),
        query_arms=QUERY_ARMS,
        network_of=network_of,
        notes=NOTES,
    )


NOTES = (
    "The paper does not say how a value function of phi can be used on another "
    "network. Here all networks have one generator of FiLM by replicate: the first "
    "channels of their last feature maps take the same rows of it. Nothing makes the "
    "channels of two networks mean the same.",
    "The paper does not say on which images the error is queried. Here they are "
    "training images that training does not see, drawn anew for every replicate; the "
    "test images are the same for all.",
    "Fine-tuning sees training images without augmentation, so everything before FiLM "
    "is computed only once.",
    "Rows that see outputs and labels search FiLM with an offset for every output.",
)

EXPERIMENTS.register("table4")(Experiment("table4", layout, specs))

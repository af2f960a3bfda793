"""Table 6 of MetricOpt with either back end: AP50 of Faster R-CNN on PASCAL VOC.

Source: Huang et al., CVPR 2021, Table 6 and Sec. 4.5. The control arms, MetricOpt on
outputs, the oracle, the arms at equal queries and AP by class are ours.
"""

from functools import partial

from benchmarks.data.detection.contract import DETECTION
from benchmarks.experiments.registry import Experiment, check_tier
from benchmarks.experiments.shared import moved_by_film
from benchmarks.experiments.shared.plans import Part, on_pipeline, table_specs
from benchmarks.problems.detection.settings import DetectionProblem
from benchmarks.problems.detection.theta import fetch_base
from benchmarks.problems.detection.tiers import (
    LOSSES,
    PROBLEMS,
    SIZES,
    BackEnd,
    backbone,
    caption,
    classes_of,
    detection_pipeline,
    network_of,
)
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.spec import RunSpec, Unit

METRIC = "ap50"
OTHERS = {"ap50-area": "AP50, area", "ap50-coco": "AP50, COCO"}
"""Other conventions of AP50, by metric."""
NOT_VOC = "other data and another network than the paper's"

BLOCKS = tuple(
    Block(name, f"detectors trained with {label}", paper_part=name)
    for name, label in LOSSES.items()
)


def table6(name: str, back_end: BackEnd) -> Experiment:
    """Return the experiment of a name with the detectors of a back end."""
    return Experiment(
        name, partial(layout, name, back_end), partial(specs, name, back_end)
    )


def specs(
    name: str,
    back_end: BackEnd,
    tier: str,
    replicates: int | None,
    offline: bool | None,
) -> list[RunSpec]:
    """Return the runs of a tier."""
    check_tier(tier, replicates)
    if offline is False:
        # Downloads what is missing, before any run.
        for problem in PROBLEMS[tier].values():
            DETECTION.get(problem.dataset)().load()
        fetch_base(backbone(back_end, tier, "cross-entropy"))
    size = SIZES[tier]
    also = (*map(Unit, OTHERS), *(unit for unit, _ in _by_class(tier)))
    parts = [
        Part(
            loss,
            problem.dataset,
            METRIC,
            size.steps,
            on_pipeline(
                detection_pipeline(back_end, tier, problem, loss),
                moved_by_film.plans(size),
            ),
            also,
        )
        for loss in LOSSES
        for problem in PROBLEMS[tier].values()
    ]
    return table_specs(name, tier, parts, replicates=replicates or size.replicates)


def columns(tier: str) -> tuple[Column, ...]:
    """Return the columns of a tier: metrics of the same runs, problem by problem."""
    shown = [(Unit(METRIC), "AP50"), *_by_class(tier)]
    shown += [(Unit(name), label) for name, label in OTHERS.items()]
    several = len(PROBLEMS[tier]) > 1
    return tuple(
        Column(
            f"{problem.dataset}/{unit.label}",
            f"{name}: {label}" if several else label,
            unit,
            runs=problem.dataset,
            paper_column=_of_paper(tier, problem) if unit.label == METRIC else None,
            not_comparable="" if tier == "paper" else NOT_VOC,
        )
        for name, problem in PROBLEMS[tier].items()
        for unit, label in shown
    )


def layout(name: str, back_end: BackEnd, tier: str) -> TableLayout:
    """Return what Table 6 looks like at a tier."""
    size = SIZES[tier]
    return moved_by_film.table(
        size,
        experiment=name,
        title="Table 6 of MetricOpt (CVPR 2021): AP50 of object detection",
        caption=(
            f"{caption(back_end, tier)}. FiLM on the box head, d = 128, "
            f"T = {size.steps}, K = {size.observations}, {size.tasks} tasks. Queries "
            "of meta-training count."
        ),
        convention=(
            "AP50 is the mean over classes of the 11-point average precision of PASCAL "
            "VOC 2007; a detection is right if its overlap is above one half."
        ),
        blocks=BLOCKS,
        columns=columns(tier),
        paper_table="Table 6",
        network_of=network_of,
        notes=NOTES,
    )


NOTES = (
    "All runs work towards AP50 with 11 points; every column shows another metric of "
    "the same runs, those of one class with the same 11 points.",
    "The paper adapts the detector as a whole, and sees proposals improve. Here FiLM "
    "stands on the box head: the 100 likeliest proposals of every image are computed "
    "once and stay as they are, so that a query costs the head alone.",
    "The paper does not say on which images AP50 is queried. Here it is a share of the "
    "training images that training does not see, drawn anew for every replicate; the "
    "test images are the same for all.",
    "Fine-tuning sees the training images without augmentation, and of each all "
    "proposals, none sampled.",
    "The AP loss ranks the classes without the background; a share of .1 of "
    "cross-entropy beside it, in pre-training, tells the background from them. Its "
    "margin and strength are not known for detection.",
    "AP ranks within classes, so that an offset for a class would change little of it: "
    "there are no offsets in this table.",
)


def _of_paper(tier: str, problem: DetectionProblem) -> str:
    """Return the column of the paper; small problems stand beside VOC 07."""
    return f"{problem.dataset if tier == 'paper' else 'voc07'}/{METRIC}"


def _by_class(tier: str) -> list[tuple[Unit, str]]:
    return [
        (Unit(METRIC, {"label": label}), name)
        for label, name in enumerate(classes_of(tier), start=1)
    ]

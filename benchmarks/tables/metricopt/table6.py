"""Table 6 of MetricOpt with either back end: AP50 of Faster R-CNN on PASCAL VOC.

Source: Huang et al., CVPR 2021, Table 6 and Sec. 4.5. The control arms, MetricOpt on
outputs, the oracle, the arms at equal queries and AP by class are ours.
"""

from functools import partial

from benchmarks.problems.detection import tiers
from benchmarks.problems.detection.pipeline import DetectionProblem
from benchmarks.report.columns import Column
from benchmarks.report.layout import Block
from benchmarks.runs.spec import Unit
from benchmarks.tables.parts import (
    BASE_LOSS_ROWS,
    UNTOUCHED,
    brief_place,
    finetuning_fields,
)
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Place, Table, experiment_of, table

METRIC = Unit("ap50")
OTHERS = {Unit("ap50-area"): "AP50, area", Unit("ap50-coco"): "AP50, COCO"}
"""Other conventions of AP50, with their labels."""
NOT_VOC = "other data and another network than the paper's"

BLOCKS = tuple(
    Block(name, f"detectors trained with {label}", paper_part=name)
    for name, label in tiers.LOSSES.items()
)


def table6(back_end: tiers.BackEnd, tier: str) -> Table:
    """Return Table 6 at a tier, with the detectors of a back end."""
    size = tiers.SIZES[tier]
    return table(
        [
            _place(tier, tiers.Detection.at(tier, data, back_end, loss), loss)
            for loss in tiers.LOSSES
            for data in tiers.PROBLEMS[tier].values()
        ],
        title="Table 6 of MetricOpt (CVPR 2021): AP50 of object detection",
        caption=(
            f"{tiers.caption(back_end, tier)}. FiLM on the box head, d = 128, "
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
        notes=NOTES,
        **finetuning_fields(size, 15, untouched=UNTOUCHED.name),
    )


def _place(tier: str, problem: tiers.Detection, loss: str) -> Place:
    also = (*OTHERS, *_by_class(tier))
    return brief_place(loss, problem, METRIC, also=also, own=BASE_LOSS_ROWS)


def columns(tier: str) -> tuple[Column, ...]:
    """Return the columns of a tier: metrics of the same runs, problem by problem."""
    several = len(tiers.PROBLEMS[tier]) > 1
    return tuple(
        Column(
            f"{data.dataset}/{metric.label}",
            f"{name}: {label}" if several else label,
            metric,
            runs=data.dataset,
            paper_column=_of_paper(tier, data) if metric == METRIC else None,
            not_comparable="" if tier == "paper" else NOT_VOC,
        )
        for name, data in tiers.PROBLEMS[tier].items()
        for metric, label in {METRIC: "AP50", **_by_class(tier), **OTHERS}.items()
    )


def _of_paper(tier: str, data: DetectionProblem) -> str:
    """Return the column of the paper; small problems stand beside VOC 07."""
    return f"{data.dataset if tier == 'paper' else 'voc07'}/{METRIC.label}"


def _by_class(tier: str) -> dict[Unit, str]:
    """Return AP50 of every class, with their labels."""
    return {
        Unit(METRIC.name, {"label": label}): name
        for label, name in enumerate(tiers.classes_of(tier), start=1)
    }


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
    "Nearly all objects are among the proposals, see `Proposals`: what is left to gain "
    "is in their classes and scores.",
)

EXPERIMENTS.register("table6")(experiment_of("table6", partial(table6, "torchvision")))

EXPERIMENTS.register("table6-detectron2")(
    experiment_of("table6-detectron2", partial(table6, "detectron2"))
)

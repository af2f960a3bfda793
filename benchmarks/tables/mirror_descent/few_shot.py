"""Few-shot classification: does a learned loss geometry beat MAML? The poster's table.

Source: Zhang, Li, Giannakis, ICASSP 2024, the poster's table on miniImageNet.
"""

from benchmarks.problems.episodes.metrics import ACCURACY
from benchmarks.problems.episodes.tiers import EpisodeProblem, check_of_maml, images
from benchmarks.report.columns import Column
from benchmarks.report.layout import OverTasks
from benchmarks.rows.learners import (
    GEOMETRIES,
    LEARNED,
    MAML,
    NEAREST_CLASS_MEAN,
    POSTER,
)
from benchmarks.runs.spec import Unit
from benchmarks.tables.mirror_descent.learners import (
    AGAINST,
    CLIP_NOTE,
    FIELDS,
    LIKE_FOR_LIKE,
    MENDED_NOTE,
    RATE_NOTE,
    WIDER_NOTE,
    caption,
    label,
    place,
)
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import Table, experiment_of, table

CONVENTION = (
    "An episode has its own batch statistics: those of the queries when queries are "
    "answered. So a query sees the others, as in all code of MAML."
)
CHECK_OF_MAML = (
    "The column of Omniglot's 5-way tasks is a check of MAML, and other learners are "
    "not trained on them. With 64 channels and all of Omniglot, Finn et al. (ICML "
    "2017) have .987 there and .958 on 20-way 1-shot tasks; Meta-SGD (Li et al., 2017) "
    "has .995 and .959."
)
OTHER_DATA = "the poster's numbers are of miniImageNet, with 84 pixels and 64 channels"


def few_shot(tier: str) -> Table:
    """Return the table at a tier."""
    problems, easy = images(tier), check_of_maml(tier)
    every = (*problems, *easy)
    rows = (NEAREST_CLASS_MEAN, *LEARNED)
    return table(
        [
            *(place(problem, ACCURACY, rows) for problem in problems),
            *(place(problem, ACCURACY, (NEAREST_CLASS_MEAN, MAML)) for problem in easy),
        ],
        title="Few-shot classification with learned loss geometries",
        caption=caption(every),
        convention=CONVENTION,
        columns=tuple(map(_column, every)),
        paper_table=POSTER,
        over_tasks=OverTasks(GEOMETRIES, AGAINST),
        notes=(
            LIKE_FOR_LIKE,
            MENDED_NOTE,
            RATE_NOTE,
            WIDER_NOTE,
            CLIP_NOTE,
            *([CHECK_OF_MAML] if easy else []),
            *_deviations(tier),
        ),
        **FIELDS,
    )


def _column(problem: EpisodeProblem) -> Column:
    data, _, kind = problem.name.partition("/")
    # The poster has no table of Omniglot.
    paper = None if data.startswith("omniglot") else f"miniimagenet/{kind}"
    return Column(
        problem.name,
        label(problem),
        Unit(ACCURACY),
        paper_column=paper,
        not_comparable="" if data == "miniimagenet" or not paper else OTHER_DATA,
    )


def _deviations(tier: str) -> tuple[str, ...]:
    if tier != "local":
        return ()
    return (
        "Tier local is for two processor cores: networks are smaller and trainings "
        "shorter than in any publication. The poster has 64 channels, 60,000 "
        "meta-iterations and inner steps of rate .01.",
        "omniglot-small: characters of six alphabets to train, of Latin and Greek to "
        "test, each in four rotations. Every replicate draws the characters to "
        "validate.",
        "tinyimagenet-fewshot100: the protocol of miniImageNet on other images, 60 of "
        "a class instead of 600. Every replicate draws the classes of each part.",
    )


EXPERIMENTS.register("few-shot")(experiment_of("few-shot", few_shot))

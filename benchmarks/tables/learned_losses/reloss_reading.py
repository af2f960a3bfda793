"""ReLoss on reading comprehension: a surrogate of the probabilities of both ends.

Source: Huang et al., ICLR 2022, the table of machine reading comprehension. MetricOpt
on top of the networks is ours.
"""

from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.structured import StructuredTable
from benchmarks.tables.table import experiment_of

TABLE = StructuredTable(
    experiment="reloss-reading",
    modality="spans",
    title="ReLoss (ICLR 2022): machine reading comprehension",
    captions={
        "paper": "MacBERT-base on CMRC 2018",
        "local": (
            "Convolutions of width 96 with attention between question and paragraph, "
            "from random weights, on the 3,219 questions of the validation file of "
            "CMRC 2018; 1,000 of its trial file are the test"
        ),
        "smoke": "a small network on made-up questions",
    },
    convention=(
        "Characters count where words would in English. F1 is that of the longest "
        "common run of characters, as in CMRC's own script; BLEU-4 is of all answers "
        "together."
    ),
    paper_table="ReLoss reading",
    paper_data="reading",
    not_comparable="other questions, and at tier local a network without pre-training",
    anchored=(
        "|h(p, q) - h(1, 1)| instead of |h(p, q)|, p and q the probabilities of both "
        "right places; ours"
    ),
    notes=(
        "The poster does not say which data these numbers are of. Its network is "
        "MacBERT; those of tier local begin at random.",
        "A network sees a window of the paragraph with most of the question's pairs of "
        "characters. Answers outside of it count as they are: they cannot be found.",
    ),
)

EXPERIMENTS.register("reloss-reading")(experiment_of("reloss-reading", TABLE))

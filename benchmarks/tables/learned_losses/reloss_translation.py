"""ReLoss on translation: a surrogate reads the log-probabilities of right pieces.

Source: Huang et al., ICLR 2022, the table of machine translation. MetricOpt on top of
the networks is ours.
"""

from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.structured import StructuredTable
from benchmarks.tables.table import experiment_of

TABLE = StructuredTable(
    experiment="reloss-translation",
    modality="sentences",
    title="ReLoss (ICLR 2022): machine translation",
    captions={
        "paper": "NAT-Base on WMT16 English-Romanian, without distillation",
        "local": (
            "A translator of two layers of 128 that writes all pieces at once, from "
            "random weights, without distillation, in four passes of mask-predict: "
            "English to German on Multi30k, English and Romanian on RO-STS"
        ),
        "smoke": "a small network on made-up sentences",
    },
    convention="BLEU is that of all test sentences together, by sacrebleu.",
    paper_table="ReLoss translation",
    paper_data={
        "wmt16-en-ro": "wmt16-en-ro",
        "wmt16-ro-en": "wmt16-ro-en",
        "ro-sts-en-ro": "wmt16-en-ro",
        "ro-sts-ro-en": "wmt16-ro-en",
    },
    not_comparable="other sentences, of other texts, and a smaller network",
    anchored=(
        "|v(l) - v(0)| instead of |v(l)|, l the log-probabilities of right pieces; ours"
    ),
    notes=(
        "The published networks learn from the translations of an autoregressive one "
        "(distillation), and their BLEU is of tokenised text. These learn from the "
        "references.",
        "The surrogate reads the pieces. The loss of the length is beside it, as it is "
        "beside cross-entropy.",
        "MetricOpt moves the last decision on every piece. Lengths, and the pieces of "
        "earlier passes, stay. Statistics are of n-grams of pieces; where they do not "
        "explain BLEU, MetricOpt on outputs hands over.",
    ),
    headings={
        "wmt16-en-ro": "EN-RO BLEU",
        "wmt16-ro-en": "RO-EN BLEU",
        "multi30k-en-de": "EN-DE BLEU",
        "ro-sts-en-ro": "EN-RO BLEU",
        "ro-sts-ro-en": "RO-EN BLEU",
    },
)

EXPERIMENTS.register("reloss-translation")(experiment_of("reloss-translation", TABLE))

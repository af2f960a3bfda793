"""ReLoss on CIFAR-10 and 100: is a surrogate that ranks as the metric a better loss?

Source: Huang et al., ICLR 2022, the table of image classification, and the poster's
comparison with the approximation-based objective. MetricOpt on top of ReLoss is ours;
on top of cross-entropy it stands in `ala-table1`.
"""

from benchmarks.problems.images.method_networks import CE
from benchmarks.problems.images.tiers import CIFAR100
from benchmarks.tables.network_methods import MethodTable
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import experiment_of

TABLE = MethodTable(
    experiment="reloss-cifar",
    title="ReLoss (ICLR 2022): image classification on CIFAR-10 and CIFAR-100",
    methods=(
        CE,
        "reloss",
        "reloss-anchored",
        "reloss-regression",
    ),
    on_top=("reloss", "reloss-anchored"),
    paper_table="ReLoss",
    paper_network="resnet56",
    more=(CIFAR100,),
    notes=(
        "The surrogate is divided by its mean slope on held-out recorded logits, so "
        "that the rate of cross-entropy suits it. The published code does not do that: "
        "its penalty asks for a slope of 128 per example.",
        "The published surrogate is |h(p)|, p the probability of the true class. Where "
        "recorded networks are seldom sure, it is least at the p that right answers "
        "usually have: it ranks groups well, yet lowers a larger p. Anchored it is "
        "|h(p) - h(1)|, and no p has a smaller loss than 1.",
        "The paper records logits of ImageNet once and uses the surrogate on all data. "
        "Here they are recorded in a training with cross-entropy on the same images.",
        "ReLoss has higher mean errors than cross-entropy; the difference is shown "
        "for regression alone, three replicates are too few for the spread of the "
        "others. In AUCPR (table2, methods) it is shown for anchored ReLoss. "
        "MetricOpt on top of ReLoss is worse than ReLoss alone. In all nine trainings "
        "the surrogate ranks held-out groups by their error better than cross-entropy "
        "does, and groups of the observe split at the end of training. Anchored at p "
        "= 1 two replicates of three come near self-paced learning; the third stays "
        "far behind.",
    ),
)

EXPERIMENTS.register("reloss-cifar")(experiment_of("reloss-cifar", TABLE))

"""Losses that are learned, on all of CIFAR-10, near the error of the papers.

Sources: ALA (Huang et al., ICML 2019), Table 1, the column of ResNet-32, and ReLoss
(Huang et al., ICLR 2022). MetricOpt on top of the networks is ours. Networks come as
they are trained: rows without a network are missing.
"""

from benchmarks.problems.images.method_networks import CE
from benchmarks.tables.network_methods import MethodTable
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import experiment_of

TABLE = MethodTable(
    experiment="learned-losses",
    title="Learned losses: classification error on CIFAR-10",
    methods=(
        CE,
        "self-paced",
        "self-paced-global",
        "large-margin",
        "l2t-dlf",
        "ala-literal-fixed",
        "ala-literal",
        "ala-noise",
        "ala-walk",
        "ala-confusion",
        "ala-level",
        "ala",
        "ala-multi",
        "ala-reuse",
        "ala-finetune",
        "reloss",
        "reloss-anchored",
        "reloss-regression",
        "moew",
    ),
    on_top=(CE, "ala", "reloss"),
    paper_table="ALA Table 1",
    rival="ala-noise",
    whole=True,
    notes=(
        "ALA as printed has one network, not several that share a controller: none of "
        "six short trainings, at rates from .02 to .4, came below an error of .84.",
        "Large-margin softmax has a last layer without offsets. With it the network "
        "begins with other random weights.",
        "Tier local: ALA decides every 200 steps, 57 times, each time by four "
        "measurements of the metric, as in the paper; as printed every 50 steps, 225 "
        "times, by one. 3 networks share a controller instead of 10.",
        "Tier local: the teacher of L2T-DLF takes 106 steps, from one student of 3 "
        "epochs, at ten times the usual rate: at the usual one it would not leave "
        "cross-entropy. MOEW has 40 trials of 4 epochs, equal weights the first of "
        "them; its paper has 200 whole trainings.",
        "Tier local: the surrogate of ReLoss is fitted to the outputs of a training "
        "with cross-entropy of a quarter of the epochs, 8 instead of 32. It is scaled "
        "so that its mean slope equals the slope of cross-entropy on recorded outputs "
        "with their own labels. The paper records a whole training, and its penalty "
        "asks for a slope of 128 per example.",
        "Tier local: settings are chosen on observe, by four trainings of 10 epochs "
        "for each method: of ResNet-9 for ALA and ReLoss, of ResNet-20 for the others. "
        "Self-paced learning begins with 80 % of the examples instead of 50 %, ALA has "
        "the period of its paper, ReLoss anchored a quarter of the usual rate. Other "
        "methods keep their usual settings.",
    ),
)

EXPERIMENTS.register("learned-losses")(
    experiment_of("learned-losses", TABLE, takes_days=True)
)

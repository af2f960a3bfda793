"""Figs. 3 to 5 of ALA: four rewards, loss surfaces, and loss beside metric.

Source: Huang et al., ICML 2019, Figs. 3 to 5 and Sec. 6.4. Differs: errors after an
epoch are on observe, as the test split is read once; loss and error on the training
split are those of 2,000 of its images, loss surfaces those of 500.
"""

from benchmarks.problems.images.method_networks import CE
from benchmarks.tables.network_methods import MethodTable
from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.table import experiment_of

TABLE = MethodTable(
    experiment="ala-figs",
    title="Figs. 3 to 5 of ALA (ICML 2019): rewards and loss surfaces",
    methods=(CE, "ala", "ala-loss", "ala-train", "ala-train-loss", "ala-literal"),
    whole=True,
    notes=(
        "Fig. 3: the paper reports that rewards by the training loss lower that loss, "
        "that the other three lower errors, and that the metric on observe lowers the "
        "test error most. Errors after an epoch are on the observed images, which "
        "reward two of the four: test errors in the table decide.",
        "Fig. 4: the paper reports that the loss surface of ALA is smoother, by its "
        "mean Gaussian curvature, and names neither grid nor number of images. Here "
        "all surfaces are of the same cross-entropy, on 9 x 9 points up to a distance "
        "of the filters' own norm.",
        "Eq. 6 as printed takes the slope from images whose true class is unlikely: at "
        "a probability p it is 4 p / (1 + p)^2 times that of cross-entropy, a third at "
        "p = .1, where its parameters are the identity.",
        "Fig. 5(a) is the figure of metric and loss of observe in training.",
    ),
)

EXPERIMENTS.register("ala-figs")(experiment_of("ala-figs", TABLE, takes_days=True))

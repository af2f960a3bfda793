"""ReLoss on human pose estimation: a surrogate of squared errors weighs every joint.

Source: Huang et al., ICLR 2022, the table of human pose estimation. MetricOpt on top of
the networks is ours.
"""

from benchmarks.tables.registry import EXPERIMENTS
from benchmarks.tables.structured import StructuredTable
from benchmarks.tables.table import experiment_of

TABLE = StructuredTable(
    experiment="reloss-pose",
    modality="poses",
    title="ReLoss (ICLR 2022): human pose estimation",
    captions={
        "paper": "SimpleBaseline, ResNet-50 at 256 x 192 pixels, on COCO key points",
        "local": (
            "A simple baseline on SqueezeNet 1.1 with weights for ImageNet, at 128 x "
            "96 pixels, on lspet-upright: 2,315 upright people of Leeds Sports Pose "
            "extended, of whom 282 are the test"
        ),
        "smoke": "a small network on drawn people",
    },
    convention=(
        "PCK@.2: share of the labelled joints nearer than a fifth of the torso, "
        "the longer of its diagonals. AP: of object key point similarity, with the "
        "spreads of CrowdPose and .53 of the box of the joints as the area."
    ),
    paper_table="ReLoss pose",
    paper_data="coco",
    not_comparable="other people and another network than the paper's",
    anchored=(
        "the weight of a joint rises with each of its errors, so that no larger "
        "error has a smaller loss; ours"
    ),
    notes=(
        "The paper does not say which metric the surrogate of poses is learned for. "
        "Here it is PCK@.2 of groups of people.",
        "People are boxed by their joints, and a detector's errors are not in the AP.",
    ),
)

EXPERIMENTS.register("reloss-pose")(experiment_of("reloss-pose", TABLE))

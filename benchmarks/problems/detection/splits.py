"""Detection problems: images to learn from, to observe and to test, by seed."""

import torch

from benchmarks.data.detection.contract import DETECTION
from benchmarks.problems.detection.scenes import Scenes
from benchmarks.problems.detection.settings import DetectionProblem
from benchmarks.problems.splits import Splits, require_classes
from metricopt.detection.packed import counted
from metricopt.errors import DataError
from metricopt.process.seeding import make_generator


def load_splits(problem: DetectionProblem, replicate: int) -> Splits:
    """Return the splits of a detection problem for one replicate.

    The data set says which images are the test, for all replicates. Of the training
    images a random share is `observe`.

    Args:
        problem: data set, share that is observed.
        replicate: decides which training images are observed.

    Raises:
        DataError: if a part would be empty, train or observe lacks a class, or files
            are missing or wrong.
    """
    data = DETECTION.get(problem.dataset)().load(offline=True)
    learnable = data.parts["train"]
    count = round(problem.observed * len(learnable))
    if not 0 < count < len(learnable):
        raise DataError(
            f"{data.label} has {len(learnable)} training images, of which a share of "
            f"{problem.observed} is observed: expected one or more in each part"
        )
    generator = make_generator("detection split", problem.dataset, replicate)
    order = learnable[torch.randperm(len(learnable), generator=generator)]
    parts = {"observe": order[:count], "train": order[count:]}
    parts["test"] = data.parts["test"]
    scenes = {name: Scenes(data, places) for name, places in parts.items()}
    for name in ("train", "observe"):
        objects = scenes[name].targets
        labels = objects[..., 4][counted(objects)].long()
        where = f"the {name} split of {data.label}"
        require_classes(where, labels, dict(enumerate(data.classes, 1)))
    return Splits(
        **scenes, variant=data.label, digest=data.digest, classes=len(data.classes)
    )

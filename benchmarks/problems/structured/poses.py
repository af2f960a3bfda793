"""Poses: where the joints of a person are."""

import base64
import io
from collections.abc import Mapping
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from baselines.training.batches import Batches
from benchmarks.data.poses.contract import POSES, TEST, TRAIN
from benchmarks.networks.poses.contract import (
    STRIDE,
    PoseNetwork,
    build_pose_network,
    check_sides,
)
from benchmarks.problems.splits import Splits
from benchmarks.problems.structured.contract import (
    MODALITIES,
    Modality,
    StructuredProblem,
    StructuredTraining,
)
from benchmarks.problems.structured.people import People, PeopleBatches
from benchmarks.runs.spec import Unit
from metricopt.process.seeding import make_generator
from metricopt.structured.poses import decoded, distances, labelled

SHOWN = 5
"""People of a picture."""
WITHIN = 0.2
"""Distance in reference lengths within which a joint is right."""
QUALITY = 80


@MODALITIES.register("poses")
class PoseModality(Modality):
    """Heat maps of joints. The size of a problem is height and width of the inputs."""

    kind = "poses"
    usual = "mse"
    sources = POSES
    metrics = (Unit("pck"), Unit("oks-ap"))
    labels = ("PCK@.2", "AP")

    def splits(self, problem: StructuredProblem, replicate: int) -> Splits:
        """Return the splits for one replicate.

        The data set says who is the test, for all replicates. Of the others a random
        share is `observe`, other people in every replicate; people of one series of
        photographs stay together.
        """
        sides = _sides(problem)
        data = self.loaded(problem)
        learnable = data.parts[TRAIN]
        series = data.series[learnable]
        observed = problem.observed_groups(
            series.unique().tolist(),
            "pose split",
            replicate,
            data.label,
            "series of people to train on",
        )
        is_observed = torch.isin(series, torch.tensor([*observed]))
        return Splits(
            People(data, learnable[~is_observed], sides),
            People(data, learnable[is_observed], sides),
            People(data, data.parts[TEST], sides),
            data.label,
            data.digest,
        )

    def fresh(self, problem: StructuredProblem, network: str, seed: int) -> PoseNetwork:
        """Return a network with random weights."""
        joints = len(POSES.get(problem.dataset).skeleton.joints)
        return build_pose_network(network, joints, seed)

    def batches(self, train: People, recipe: StructuredTraining) -> Batches:
        """Return mini-batches of people turned, scaled and mirrored."""
        return PeopleBatches(train, recipe.batch_size)

    def example(self, problem: StructuredProblem) -> Tensor:
        """Return an input of a network."""
        return torch.zeros(1, 3, *_sides(problem))

    def pictured(self, test: People, outputs: Tensor) -> Mapping[str, Any]:
        """Return notes with the joints found in people drawn by a fixed seed.

        Args:
            test: the N people.
            outputs: heat maps, shape [N, J, H, W].

        Returns:
            `people`: of each its `jpeg` in base64, `joints`, lists of x, y in pixels
            and whether it is near, None where the joint is not labelled; `bones`:
            places of joints that are joined.
        """
        order = torch.randperm(len(test), generator=make_generator("people"))
        chosen = order[:SHOWN]
        poses = test.targets.cpu()[chosen]
        points, _ = decoded(outputs.cpu()[chosen])
        near = distances(points[None], poses)[0] < WITHIN
        known = labelled(poses)
        people = []
        for row, place in enumerate(chosen.tolist()):
            joints = [
                [round(x, 1), round(y, 1), ok if seen else None]
                for (x, y), ok, seen in zip(
                    (STRIDE * points[row]).tolist(),
                    near[row].tolist(),
                    known[row].tolist(),
                    strict=True,
                )
            ]
            people.append({"jpeg": _jpeg(test.pixels(place)), "joints": joints})
        return {"people": people, "bones": [list(b) for b in test.skeleton.bones]}


def _sides(problem: StructuredProblem) -> tuple[int, int]:
    height, width = problem.two_sizes("height and width")
    check_sides(height, width)
    return height, width


def _jpeg(pixels: Tensor) -> str:
    content = io.BytesIO()
    Image.fromarray(pixels.numpy()).save(content, "JPEG", quality=QUALITY)
    return base64.b64encode(content.getvalue()).decode()

"""Arms that draw: training loss and test metric on a plane through solutions.

They compete with nobody: after every solution is chosen they read the test split, and
return the best point of the plane, which no method could know. A solution is the first
result of another run, which is made again from its spec.

Source: Huang et al., CVPR 2021, Fig. S2.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from benchmarks.arms.contract import ARMS, ArmKind, run_arm
from benchmarks.arms.diagnosis import rounded
from benchmarks.problems.choices import Adapted, Choice, Chosen, Trained
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.planes import axes, filter_units, principal_plane
from benchmarks.problems.prerequisite import Prerequisite
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from benchmarks.problems.pretrained.weight_space import WeightSpace
from benchmarks.runs.codec import decode, encode
from benchmarks.runs.notes import SURFACE
from benchmarks.runs.record import DIGITS
from benchmarks.runs.spec import RunSpec
from metricopt.errors import ConfigError
from metricopt.metrics.base import Metric, to_cost

AT_ONCE = 16
"""Points that are held in memory at once."""
Levels = tuple[Tensor, Tensor]
"""Training losses [n] and test metrics [n] of n points."""


@dataclass(frozen=True)
class Drawing:
    """Which solutions are drawn, and how finely.

    Attributes:
        solutions: specs of the runs whose first results are the solutions, as JSON.
        side: points of the grid along an axis.
        along: points of the straight path from the untouched network to a solution,
            both ends included.
        margin: how far the grid goes beyond the solutions, as a share of their extent.
        train: training images of a network's loss, the first ones.
        test: test images of a network's metric, drawn at random.
    """

    solutions: tuple[Any, ...] = ()
    side: int = 7
    along: int = 7
    margin: float = 0.25
    train: int = 1_000
    test: int = 2_000

    def specs(self) -> list[RunSpec]:
        """Return the specs of the solutions.

        Raises:
            ConfigError: if one is no spec.
        """
        return [decode(RunSpec, each) for each in self.solutions]


@dataclass(frozen=True, eq=False)
class Space:
    """The weights that move.

    Attributes:
        origin: those of the untouched network, shape [D].
        units: length of one unit along each, shape [D].
        levels: returns how good points [n, D] are.
        choice: returns what is judged at a point [D].
        halfway: metric halfway to solutions with interpolated statistics, by row;
            empty where nothing is interpolated.
    """

    origin: Tensor
    units: Tensor
    levels: Callable[[Tensor], Levels]
    choice: Callable[[Tensor], Choice]
    halfway: Mapping[str, float] = field(default_factory=dict)

    def many(self, count: int, at: Callable[[slice], Tensor]) -> Levels:
        """Return how good many points are, which `at` returns a few at a time."""
        starts = range(0, count, AT_ONCE)
        found = [self.levels(at(slice(start, start + AT_ONCE))) for start in starts]
        losses, values = zip(*found, strict=True)
        return torch.cat(losses), torch.cat(values)


def _drawing(spec: RunSpec) -> Drawing:
    return decode(Drawing, spec.arm.settings)


def _needs(spec: RunSpec) -> list[Prerequisite]:
    solutions = _drawing(spec).specs()
    pipelines = [make_pipeline(each.pipeline, each.replicate) for each in solutions]
    return [needed for pipeline in pipelines for needed in pipeline.prerequisites]


def run_phi_plane(
    spec: RunSpec, pipeline: PretrainedPipeline, metric: Metric
) -> Chosen:
    """Return the best phi of the plane through phi = 0 and solutions of phi.

    Loss is that of the first training images, the metric that of all test images.

    Raises:
        ConfigError: if a solution has another network or adapter, or they span no
            plane.
    """
    drawing, found = _drawing(spec), dict[str, Tensor]()
    for each in drawing.specs():
        if encode(each.pipeline) != encode(spec.pipeline):
            raise ConfigError(
                f"solutions on a plane of phi share a network, {each.row!r} has another"
            )
        found[each.row] = _chosen_phi(each, pipeline)
    judge, size = pipeline.judged("test").judge, pipeline.adapter.size

    def levels(phi: Tensor) -> Levels:
        phi = phi.float()
        return pipeline.train_loss(phi), judge.values(metric, phi)

    def choice(phi: Tensor) -> Choice:
        return Adapted(phi.float()[None])

    space = Space(torch.zeros(size), torch.ones(size), levels, choice)
    return drawn(drawing, space, found, metric)


def run_network_plane(
    spec: RunSpec, pipeline: PretrainedPipeline, metric: Metric
) -> Chosen:
    """Return the best network of the plane through the untouched one and solutions.

    A phi is the network with phi in its weights.

    Raises:
        ConfigError: if a solution has weights of other names or shapes, or they span
            no plane.
    """
    drawing = _drawing(spec)
    place = WeightSpace(pipeline, metric, train=drawing.train, test=drawing.test)
    found, halfway = {}, {}
    for each in drawing.specs():
        own = make_pipeline(each.pipeline, each.replicate)
        assert isinstance(own, PretrainedPipeline)
        network = own.adapter.merged(_chosen_phi(each, own))
        found[each.row] = place.weights(network)
        halfway[each.row] = place.interpolated(network)

    def choice(point: Tensor) -> Choice:
        network = place.network(point)
        return Trained(torch.no_grad()(network.forward))

    units = filter_units(dict(place.origin.named_parameters())).detach()
    origin = place.weights(place.origin)
    space = Space(origin, units, place.levels, choice, halfway)
    return drawn(drawing, space, found, metric)


def _chosen_phi(spec: RunSpec, pipeline: PretrainedPipeline) -> Tensor:
    """Return the first phi [d] that a run chooses."""
    choice = run_arm(spec, pipeline).choice
    if not isinstance(choice, Adapted):
        raise ConfigError(f"a solution on a plane is a phi, {spec.row!r} has none")
    return choice.phi[0].detach()


def drawn(
    drawing: Drawing, space: Space, found: Mapping[str, Tensor], metric: Metric
) -> Chosen:
    """Return the best point of the plane's grid, with what is drawn as a note.

    Args:
        drawing: how finely it is drawn.
        space: the weights that move.
        found: solutions [D] by row.
        metric: that the levels of the space are of.

    Raises:
        ConfigError: if the solutions span no plane.
    """
    ends = torch.stack(list(found.values()))
    plane = principal_plane(space.origin, ends, space.units)
    places = plane.coordinates(ends)
    grid = axes(places, drawing.side, drawing.margin)
    points = torch.cartesian_prod(*grid)
    loss, value = space.many(len(points), lambda part: plane.at(points[part]))
    best = points[int(to_cost(metric, value).argmin())]
    off = plane.distances(ends) / ((ends - space.origin) / space.units).norm(dim=1)
    paths = _paths(drawing, space, ends)
    side = (drawing.side, drawing.side)
    surface = {
        "x": rounded(grid[0]),
        "y": rounded(grid[1]),
        "loss": [rounded(line) for line in loss.view(side)],
        "metric": [rounded(line) for line in value.view(side)],
        "share": round(plane.share, DIGITS),
        "solutions": [
            {"row": row, "place": rounded(place), "off": round(float(far), DIGITS)}
            for row, place, far in zip(found, places, off, strict=True)
        ],
        "paths": [
            {"row": row, "loss": rounded(losses), "metric": rounded(values)}
            for row, losses, values in zip(found, *paths, strict=True)
        ],
        "halfway": {row: round(level, DIGITS) for row, level in space.halfway.items()},
    }
    made = len(points) + 1 + len(ends) * (drawing.along - 1) + len(space.halfway)
    return Chosen(
        space.choice(plane.at(best[None])[0]),
        queries=made,
        evaluations={"test": made},
        notes={SURFACE: surface},
    )


def _paths(drawing: Drawing, space: Space, ends: Tensor) -> Levels:
    """Return how good equally spaced points on the way to each end are, [n, along]."""
    shares = torch.linspace(0, 1, drawing.along)[1:]
    start = space.levels(space.origin[None])
    lines = []
    for end in ends:
        way = space.origin + shares[:, None] * (end - space.origin)
        found = space.many(len(way), way.__getitem__)
        lines.append([torch.cat(pair) for pair in zip(start, found, strict=True)])
    losses, values = zip(*lines, strict=True)
    return torch.stack(losses), torch.stack(values)


def _kind(run: Callable[[RunSpec, Any, Metric], Chosen]) -> ArmKind:
    return ArmKind(
        run,
        # In the turn of the runs whose value functions its solutions share.
        prepares=lambda spec: "solutions",
        reads_test=True,
        sees=lambda arm: "test",
        on=PretrainedPipeline,
        needs=_needs,
    )


ARMS.register("phi-plane")(_kind(run_phi_plane))
ARMS.register("network-plane")(_kind(run_network_plane))

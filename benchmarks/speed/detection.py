"""How fast detectors are judged: `python -m benchmarks.speed.detection`.

AP50 of random detections in as many images and classes as the test of PASCAL VOC 2007
has: ours, that of pycocotools, and that of torchmetrics, which calls pycocotools. And a
metric query of a detector whose regions are cached, against one that sees the images.
Side by side in this one run, best of several; figures that differ are an error.
"""

import argparse
import contextlib
import io
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.networks.detection.contract import build_detector
from benchmarks.speed.measurement import Measurement, as_table
from metricopt.detection.curves import curves, objects_of
from metricopt.detection.detections import Detections
from metricopt.detection.matching import matched
from metricopt.detection.truths import pack_truths
from metricopt.errors import MetricOptError
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric

SECONDS, GAIN, QUERY_GAIN = 10, 5, 20
"""What ours may take, and how much faster it, and a query, should be."""
EQUAL = 1e-4
PROPOSALS = 100


@dataclass(frozen=True)
class Problem:
    """Random objects, found with some errors; scores tell right from wrong a little.

    Attributes:
        images: number of images.
        classes: number of classes.
        alarms: detections of an image that are of no object.
    """

    images: int = 4_952
    classes: int = 20
    alarms: int = 20

    def draw(self) -> tuple[Detections, Tensor]:
        """Return detections, and objects [N, G, 6]."""
        generator = make_generator("speed of detection")
        targets, parts = [], []
        for _ in range(self.images):
            count = int(torch.randint(1, 6, (), generator=generator))
            boxes, labels = self._boxes(count, generator)
            targets.append({"boxes": boxes, "labels": labels})
            moved = boxes + 8 * torch.randn(count, 4, generator=generator)
            wrong, kinds = self._boxes(self.alarms, generator)
            score = torch.rand(count + self.alarms, generator=generator)
            score[:count] = score[:count].sqrt()
            parts.append((torch.cat([labels, kinds]), score, torch.cat([moved, wrong])))
        sizes = torch.tensor([len(score) for _, score, _ in parts])
        image = torch.arange(self.images).repeat_interleave(sizes)
        label, score, box = (torch.cat(each) for each in zip(*parts, strict=True))
        order = score.argsort(descending=True)
        order = order[image[order].argsort(stable=True)]
        found = Detections(image, label, score, box, torch.zeros_like(image))
        return found.at(order), pack_truths(targets)

    def _boxes(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        corner = 300 * torch.rand(count, 2, generator=generator)
        size = 30 + 150 * torch.rand(count, 2, generator=generator)
        labels = torch.randint(1, self.classes + 1, (count,), generator=generator)
        return torch.cat([corner, corner + size], 1), labels


def ours(problem: Problem, found: Detections, truths: Tensor) -> float:
    """Return AP50 by the convention of COCO."""
    weights = torch.ones(1, problem.images, dtype=torch.float64)
    flags = matched(found, truths, rule="coco")
    objects = objects_of(truths, problem.classes, weights)
    averages = curves(found, flags, weights, objects, rows=1).coco()
    return float(averages[objects > 0].mean())


def pycocotools(problem: Problem, found: Detections, truths: Tensor) -> float:
    """Return AP50 as the code of COCO finds it, at this one overlap and any size."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    wanted, said = COCO(), COCO()
    kinds = [{"id": kind} for kind in range(1, problem.classes + 1)]
    images = [{"id": at} for at in range(problem.images)]
    there = truths[..., 4] > 0
    place = there.nonzero()[:, 0].tolist()
    objects = truths[there]
    given = zip(place, objects[:, 4].tolist(), objects[:, :4].tolist(), strict=True)
    wanted.dataset = {
        "images": images,
        "categories": kinds,
        "annotations": [_coco(at, *each) for at, each in enumerate(given, 1)],
    }
    each_found = zip(
        found.image.tolist(), found.label.tolist(), found.box.tolist(), strict=True
    )
    scores = found.score.tolist()
    said.dataset = {
        "images": images,
        "categories": kinds,
        "annotations": [
            {**_coco(at, *each), "score": scores[at - 1]}
            for at, each in enumerate(each_found, 1)
        ],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        wanted.createIndex()
        said.createIndex()
        judge = COCOeval(wanted, said, "bbox")
        judge.params.iouThrs = judge.params.iouThrs[:1]
        judge.params.areaRng, judge.params.areaRngLbl = [[0, 1e10]], ["all"]
        judge.params.maxDets = [100]
        judge.evaluate()
        judge.accumulate()
    precision = judge.eval["precision"]
    return float(precision[precision > -1].mean())


def torchmetrics(problem: Problem, found: Detections, truths: Tensor) -> float:
    """Return AP50 of `torchmetrics.detection.MeanAveragePrecision`."""
    from torchmetrics.detection import MeanAveragePrecision

    # Its own recalls are rounded to float32, which shifts some.
    recalls = [step / 100 for step in range(101)]
    judge: Any = MeanAveragePrecision(iou_thresholds=[0.5], rec_thresholds=recalls)
    counts = torch.bincount(found.image, minlength=problem.images).tolist()
    parts = [part.split(counts) for part in (found.box, found.score, found.label)]
    for place, (boxes, scores, labels) in enumerate(zip(*parts, strict=True)):
        objects = truths[place][truths[place, :, 4] > 0]
        wanted = {"boxes": objects[:, :4], "labels": objects[:, 4].long()}
        judge.update([{"boxes": boxes, "scores": scores, "labels": labels}], [wanted])
    return float(judge.compute()["map_50"])


CONTESTANTS = {"ours": ours, "pycocotools": pycocotools, "torchmetrics": torchmetrics}


def _coco(
    number: int, image: int, label: float, box: Sequence[float]
) -> dict[str, Any]:
    x1, y1, x2, y2 = box
    size = (x2 - x1, y2 - y1)
    return {
        "id": number,
        "image_id": image,
        "category_id": int(label),
        "bbox": [x1, y1, *size],
        "area": size[0] * size[1],
        "iscrowd": 0,
    }


def best_of(repeats: int, run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least seconds of a call, and what the last one returned."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        found = run()
        times.append(time.perf_counter() - started)
    return min(times), found


def evaluators(problem: Problem, repeats: int) -> list[Measurement]:
    """Return the lines of the evaluators, ours first.

    Raises:
        MetricOptError: if figures differ.
    """
    found, truths = problem.draw()
    what = f"{problem.images:,} images, {problem.classes} classes, {len(found.score):,}"
    lines, fastest, expected = [], 0.0, 0.0
    for name, contestant in CONTESTANTS.items():
        # A name of its own for every turn of the loop.
        seconds, figure = best_of(
            repeats, lambda run=contestant: run(problem, found, truths)
        )
        text = f"{seconds:.2f} s, AP50 {figure:.4f}"
        if name == "ours":
            fastest, expected = seconds, figure
            target, met = f"<= {SECONDS} s", seconds <= SECONDS
        else:
            if abs(figure - expected) > EQUAL:
                raise MetricOptError(
                    f"AP50 is {expected:.6f} by 'ours', {figure:.6f} by {name!r}"
                )
            gain = seconds / fastest
            text += f", {gain:.1f} x ours"
            target, met = f">= {GAIN} x", gain >= GAIN
        lines.append(Measurement(f"{what} detections: {name}", text, target, met))
    return lines


@torch.no_grad()
def queries(name: str, images: int, side: tuple[int, int], repeats: int) -> Measurement:
    """Return the line of a metric query, with cached regions and without.

    Args:
        name: of a detector.
        images: that are observed.
        side: height and width of an image.
        repeats: the best counts.
    """
    generator = make_generator("speed of detection", "queries")
    detector: Any = build_detector(name, 3, 0).eval()
    seen = [torch.rand(3, *side, generator=generator) for _ in range(images)]
    boxes = torch.tensor([[10.0, 10, 60, 60], [50, 30, 90, 90]])
    target = {"boxes": boxes, "labels": torch.tensor([1, 3])}
    truths, metric = pack_truths([target] * images), make_metric("ap50")
    head = detector.head(PROPOSALS)
    kept = torch.cat([head.regions([image]) for image in seen])

    def whole() -> float:
        regions = torch.cat([head.regions([image]) for image in seen])
        return metric.value(head(regions), truths)

    long, one = best_of(repeats, whole)
    short, other = best_of(repeats, lambda: metric.value(head(kept), truths))
    if one != other:
        raise MetricOptError(f"ap50 is {one} of the images, {other} of their regions")
    gain = long / short
    return Measurement(
        f"query of {name}, {images} images of {side[1]} x {side[0]}",
        f"{1e3 * long:.0f} ms whole, {1e3 * short:.1f} ms of regions: {gain:.0f} x",
        f">= {QUERY_GAIN} x",
        gain >= QUERY_GAIN,
    )


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Return what is asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=Problem().images, metavar="N")
    parser.add_argument("--observed", type=int, default=41, help="images of a query")
    parser.add_argument("--detector", default="squeezenet1_1")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=3, help="the best counts")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Measure and print the table; return 0, also where a target is missed."""
    asked = arguments(given)
    torch.set_num_threads(asked.threads)
    print(
        f"torch {torch.__version__}, {asked.threads} threads of {os.cpu_count()} cores "
        f"{platform.machine()}, best of {asked.repeats}",
        flush=True,
    )
    lines = evaluators(Problem(asked.images), asked.repeats)
    lines.append(queries(asked.detector, asked.observed, (192, 256), asked.repeats))
    print(as_table(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Our exact metrics against those of libraries: `python -m benchmarks.speed.libraries`.

AP50 of random detections in as many images as the test of PASCAL VOC 2007 has, against
torchmetrics, which calls pycocotools. Mean average precision at R of random embeddings,
against pytorch-metric-learning, which searches with faiss. Side by side in this one
run, best of three; figures that differ are an error.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.speed.measurement import Line, as_table, interleaved
from metricopt.detection.curves import curves, objects_of
from metricopt.detection.detections import Detections, matched
from metricopt.detection.truths import pack_truths
from metricopt.errors import MetricOptError
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric

EQUAL = 1e-4
"""Greatest difference of figures: float32 orders some of many pairs otherwise."""
CLASSES, ALARMS, PER_CLASS, SIZE = 20, 20, 5, 512
REPEATS = 3

Boxes = list[dict[str, Tensor]]


def drawn_boxes(images: int) -> tuple[Boxes, Boxes]:
    """Return what is found, and what is there: scores tell right from wrong a little.

    Args:
        images: number of images; each has 1 to 5 objects and `ALARMS` false ones.
    """
    generator = make_generator("speed of detection")
    found, there = [], []
    for _ in range(images):
        count = int(torch.randint(1, 6, (), generator=generator))
        corner = 300 * torch.rand(count + ALARMS, 2, generator=generator)
        size = 30 + 150 * torch.rand(count + ALARMS, 2, generator=generator)
        boxes = torch.cat([corner, corner + size], 1)
        labels = torch.randint(1, CLASSES + 1, (count + ALARMS,), generator=generator)
        there.append({"boxes": boxes[:count].clone(), "labels": labels[:count]})
        boxes[:count] += 8 * torch.randn(count, 4, generator=generator)
        scores = torch.rand(count + ALARMS, generator=generator)
        scores[:count] = scores[:count].sqrt()
        found.append({"boxes": boxes, "scores": scores, "labels": labels})
    return found, there


def ap50(found: Boxes, there: Boxes) -> float:
    """Return AP50 by the convention of COCO."""
    sizes = torch.tensor([len(each["scores"]) for each in found])
    image = torch.arange(len(found)).repeat_interleave(sizes)
    label, score, box = (
        torch.cat([each[name] for each in found])
        for name in ("labels", "scores", "boxes")
    )
    order = score.argsort(descending=True)
    order = order[image[order].argsort(stable=True)]
    packed = Detections(image, label, score, box, torch.zeros_like(image)).at(order)
    truths = pack_truths(there)
    weights = torch.ones(1, len(found), dtype=torch.float64)
    objects = objects_of(truths, CLASSES, weights)
    flags = matched(packed, truths, rule="coco")
    averages = curves(packed, flags, weights, objects, rows=1).coco()
    return float(averages[objects > 0].mean())


def ap50_of_torchmetrics(found: Boxes, there: Boxes) -> float:
    """Return AP50 of `torchmetrics.detection.MeanAveragePrecision`."""
    from torchmetrics.detection import MeanAveragePrecision

    # Its own recalls are rounded to float32, which shifts some.
    recalls = [step / 100 for step in range(101)]
    judge: Any = MeanAveragePrecision(iou_thresholds=[0.5], rec_thresholds=recalls)
    judge.update(found, there)
    return float(judge.compute()["map_50"])


def drawn_embeddings(examples: int) -> tuple[Tensor, Tensor]:
    """Return embeddings [N, E] around class centres, neither easy nor hopeless."""
    generator = make_generator("speed of retrieval")
    classes = examples // PER_CLASS
    labels = torch.randperm(examples, generator=generator) % classes
    centres = torch.randn(classes, SIZE, generator=generator)
    noise = torch.randn(examples, SIZE, generator=generator)
    return centres[labels] + 0.55 * SIZE**0.25 * noise, labels


def map_at_r(embeddings: Tensor, labels: Tensor) -> float:
    """Return the mean average precision at R."""
    return make_metric("map@r").value(embeddings, labels)


def map_at_r_of_metric_learning(embeddings: Tensor, labels: Tensor) -> float:
    """Return the mean average precision at R of pytorch-metric-learning."""
    import faiss
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

    faiss.omp_set_num_threads(torch.get_num_threads())
    name = "mean_average_precision_at_r"
    calculator = AccuracyCalculator(
        include=(name,), k="max_bin_count", device=torch.device("cpu")
    )
    return float(calculator.get_accuracy(normalize(embeddings), labels)[name])


def compared(
    what: str, ours: Callable[[], float], theirs: Callable[[], float]
) -> list[Line]:
    """Return the lines of two ways to compute one figure.

    Raises:
        MetricOptError: if the figures differ.
    """
    figures = ours(), theirs()
    if abs(figures[0] - figures[1]) > EQUAL:
        raise MetricOptError(f"{what} is {figures[0]:.6f} here, {figures[1]:.6f} there")
    fast, slow = interleaved([ours, theirs], REPEATS)
    return [
        (f"{what}, here", f"{fast:.2f} s"),
        ("  the library over ours", f"{slow / fast:.1f} x"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=4_952, metavar="N")
    parser.add_argument("--embeddings", type=int, default=20_000, metavar="N")
    asked = parser.parse_args(arguments)
    boxes, vectors = drawn_boxes(asked.images), drawn_embeddings(asked.embeddings)
    lines = compared(
        f"AP50 of {asked.images:,} images",
        partial(ap50, *boxes),
        partial(ap50_of_torchmetrics, *boxes),
    ) + compared(
        f"MAP@R of {asked.embeddings:,} embeddings",
        partial(map_at_r, *vectors),
        partial(map_at_r_of_metric_learning, *vectors),
    )
    print(as_table(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""What a checkpoint compares: settings of any object, and versions of packages."""

import copy
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from sklearn.metrics import f1_score
from torch import nn
from torchvision.ops import nms

from metricopt.detection.detections import Kept
from metricopt.journal.digests import digest
from metricopt.journal.run_facts import _packages_of
from metricopt.metrics.detection.own import DetectionMetric
from metricopt.reading.callables import make_metric
from tests.robustness.checkpoint_calls import Judge, call


class Of:
    """Holds what it is given, under the same name or a private one."""

    def __init__(self, given: object, parent: object = None) -> None:
        self._given, self.parent = given, parent


class Slotted:
    __slots__ = ("given",)

    def __init__(self, given: object) -> None:
        self.given = given


class Wrapped(nn.Module):
    def __init__(self, given: nn.Module) -> None:
        super().__init__()
        self.given = given


def family(ages: list[float]) -> Of:
    """Parents who hold their children, who know them."""
    parent = Of([])
    parent._given = [Of(age, parent) for age in ages]
    return parent


def test_a_digest_tells_values_apart_wherever_they_are() -> None:
    one = torch.arange(6.0)
    nested = {"ids": one, "mask": (one > 2, [one.int()]), "name": "a"}
    alike = {"ids": one.clone(), "mask": (one > 2, [one.int()]), "name": "a"}
    assert digest(nested) == digest(alike)
    others = [
        nested | {"ids": one + 1e-6},
        nested | {"ids": one.double()},
        nested | {"ids": one.view(2, 3)},
        nested | {"mask": (one > 3, [one.int()])},
        nested | {"name": "b"},
        {"ids": one},
        [nested],
        one.numpy(),
        one.numpy().astype("float64"),
        partial(f1_score, average="macro"),
        partial(f1_score, average="micro"),
        nn.CrossEntropyLoss(weight=one),
        nn.CrossEntropyLoss(weight=one + 1),
        Judge,
        Judge.__call__,
    ]
    assert len({digest(other) for other in [nested, *others]}) == len(others) + 1


OBJECTS: dict[str, tuple[object, object]] = {
    "paths": (Path("a"), Path("b")),
    "decimals": (Decimal("0.1"), Decimal("0.2")),
    "dates": (date(2021, 6, 19), date(2021, 6, 20)),
    "complex": (1j, 2j),
    "sets": ({Of(1.0), Of(2.0), Of(3.0)}, {Of(1.0), Of(2.0), Of(4.0)}),
    "modules": (Wrapped(nn.ReLU()), Wrapped(nn.Tanh())),
    "families": (family([1.0] * 9), family([1.0] * 8 + [2.0])),
    "averages": (
        make_metric(partial(f1_score, average="macro")),
        make_metric(partial(f1_score, average="micro")),
    ),
    "kept": (
        DetectionMetric(f1_score, kept=Kept(0.1)),
        DetectionMetric(f1_score, kept=Kept(0.2)),
    ),
}


@pytest.mark.parametrize("kind", [Of, Slotted, lambda given: {"given": given}])
@pytest.mark.parametrize("name", OBJECTS)
def test_a_digest_tells_what_objects_hold(
    kind: Callable[[object], object], name: str
) -> None:
    one, another = OBJECTS[name]
    assert digest(kind(one)) == digest(kind(copy.deepcopy(one)))
    assert digest(kind(one)) != digest(kind(another))


def test_a_digest_knows_no_order_where_there_is_none() -> None:
    assert digest({"a": 1, "b": 2.0}) == digest({"b": 2.0, "a": 1})
    ages = [float(age) for age in range(20)]
    # Sets of objects have the order of their addresses.
    assert digest({*map(Of, ages)}) == digest({*map(Of, reversed(ages))})


def test_versions_are_those_of_what_is_used(queries_file: Path) -> None:
    used = (AccuracyCalculator(), partial(partial(nms, 1), 2), partial(f1_score))
    assert _packages_of(*used, None, "mcr") == ["pytorch-metric-learning"]
    call(checkpoint=queries_file)
    assert b"version of torchmetrics" in queries_file.read_bytes()
    assert b"version of timm" not in queries_file.read_bytes()
    queries_file.unlink()
    metric = Judge()
    metric.__module__ = "timm.utils"
    call(metric=metric, checkpoint=queries_file)
    assert b"version of timm" in queries_file.read_bytes()

"""Which parameters of phi belong together, by adapter."""

import pytest
import torch
from torch import nn

from metricopt.adapters.blocks import quarters
from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.film import FiLM
from metricopt.adapters.group_offsets import GroupOffsets, ShiftedByGroup
from metricopt.adapters.offsets_alone import OffsetsAlone
from metricopt.adapters.output_offsets import MeantAdapter, OutputOffsets
from metricopt.geometry import vector_partition
from metricopt.reading.meaning import Meaning
from metricopt.tasks.recorded_task import RecordedTask
from tests.contracts.outputs_task import OutputsTask
from tests.metricopt.quadratic_task import QuadraticTask

IMAGES = torch.zeros(4, 1, 8, 8)


def ends(blocks):
    return [[(place.start, place.stop) for place in block] for block in blocks]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (16, [[(0, 4)], [(4, 8)], [(8, 12)], [(12, 16)]]),
        (6, [[(0, 1)], [(1, 3)], [(3, 4)], [(4, 6)]]),
        (2, [[(0, 1)], [(1, 2)]]),
        (0, []),
    ],
)
def test_quarters_are_consecutive_and_alike(size, expected):
    assert ends(quarters(size)) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"sites": ["5", "1"], "form": "direct"},
            [[(0, 16), (32, 48)], [(16, 32), (48, 64)]],
        ),
        ({"sites": ["5", "1"], "form": "shift"}, [[(0, 16)], [(16, 32)]]),
        ({"sites": ["5"], "form": "direct"}, ends(quarters(32))),
        ({"sites": ["5", "1"], "form": "generator"}, ends(quarters(128))),
    ],
)
def test_film_has_a_block_for_every_site(model, settings, expected):
    assert ends(FiLM(model, IMAGES, **settings).blocks) == expected


def test_offsets_beside_an_adapter_are_the_last_block(model):
    inner = FiLM(model, IMAGES, sites=["1", "5"], form="shift")
    adapter = OutputOffsets(inner, IMAGES, scaled=True)
    assert ends(adapter.blocks) == [[(0, 16)], [(16, 32)], [(32, 42), (42, 52)]]
    assert MeantAdapter(adapter, Meaning("logits")).blocks == adapter.blocks


def test_other_adapters_have_quarters_or_their_groups():
    network = nn.Linear(2, 3)
    bias = DynamicBias(network, size=8, example_input=torch.zeros(1, 2))
    assert bias.blocks == quarters(8)
    assert OffsetsAlone(6).blocks == quarters(6)
    grouped = GroupOffsets(ShiftedByGroup(nn.Identity(), groups=2, outputs=3))
    assert ends(grouped.blocks) == [[(0, 3)], [(3, 6)]]


def test_a_task_has_those_of_its_adapter():
    task = OutputsTask()
    assert task.blocks == RecordedTask(task).blocks == task.adapter.blocks
    assert QuadraticTask().blocks == quarters(6)


def test_a_geometry_takes_them_as_its_partition(model):
    adapter = FiLM(model, IMAGES, sites=["1", "5"], form="direct")
    shapes, blocks = vector_partition(adapter.blocks)
    assert shapes.by_name == {"0": (16,), "1": (16,), "2": (16,), "3": (16,)}
    assert blocks == (("0", "2"), ("1", "3"))

"""Outputs in chunks equal those of one pass."""

import pytest
import torch
from torch import nn

from baselines.training import prediction
from baselines.training.prediction import CHUNK, predict, predict_examples
from metricopt.process.seeding import make_generator
from tests.baselines.toy_images import ToyImages, image_network


def test_predict_in_chunks_equals_one_pass():
    network = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5))
    inputs = torch.randn(CHUNK + 5, 2, generator=make_generator(0))
    actual = predict(network, inputs)
    assert not actual.requires_grad
    torch.testing.assert_close(actual, network.eval()(inputs).detach())


@pytest.mark.parametrize("numbers", [1, 10 * 64, 2**21])
def test_large_inputs_come_in_small_chunks(monkeypatch, numbers):
    monkeypatch.setattr(prediction, "NUMBERS", numbers)
    network, images, sizes = image_network(), ToyImages(), []
    network.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    outputs = predict_examples(network, images)
    assert max(sizes) == {1: 1, 640: 10}.get(numbers, 64)
    assert sum(sizes) == 64
    assert not network.training
    torch.testing.assert_close(outputs, network(images.inputs).detach())
    assert images.augmentations == 0

"""Networks that learn episodes, as settings: what they see of an image."""

import torch

from benchmarks.problems.episodes.networks import Conv4Settings
from benchmarks.problems.episodes.protocols import episodes_of

EPISODES = episodes_of("tinyimagenet-fewshot100", ways=5, shots=1)


def test_images_are_averaged_before_the_first_convolution():
    images = torch.rand(2, 3, 64, 64)
    small = torch.nn.functional.avg_pool2d(images, 2)
    whole = Conv4Settings(channels=4, shrink=2).make(EPISODES, 0)
    torch.testing.assert_close(whole(images), whole[1:](small))


def test_strided_networks_have_names_of_their_own():
    labels = [Conv4Settings(channels=4, strided=each).label for each in (False, True)]
    assert labels == ["conv4-4", "conv4-4-strided"]

"""Small networks with random weights and statistics, for the adapter tests."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from tests.metricopt.drawn import seeded


def randomise(network: nn.Module, seed: int = 0) -> nn.Module:
    """Give every weight and statistic a random value: no layer is the identity."""
    generator = seeded(seed)

    def uniform(tensor: Tensor) -> Tensor:
        return torch.rand(tensor.shape, generator=generator).to(tensor)

    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.running_var.copy_(0.5 + uniform(module.running_var))
                module.running_mean.copy_(uniform(module.running_mean) - 0.5)
        for parameter in network.parameters():
            scale = 2 / max(parameter[0].numel() if parameter.ndim > 1 else 1, 1) ** 0.5
            parameter.copy_(scale * (uniform(parameter) - 0.4))
    return network


def mlp() -> nn.Module:
    return randomise(
        nn.Sequential(
            nn.Linear(6, 12),
            nn.BatchNorm1d(12),
            nn.LeakyReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(12, 7),
            nn.BatchNorm1d(7),
            nn.LeakyReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(7, 3),
        )
    )


class Block(nn.Module):
    """Residual block; `inplace` adds onto the skip connection itself."""

    def __init__(self, channels: int, stride: int, *, inplace: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 2 * channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(2 * channels)
        self.conv2 = nn.Conv2d(2 * channels, 2 * channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(2 * channels)
        self.skip = nn.Conv2d(channels, 2 * channels, 1, stride, bias=False)
        self.inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        skip = self.skip(x)
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        if self.inplace:
            skip = skip.add_(out)
            return F.relu(skip)
        return F.relu(out + skip)


class ResNet(nn.Module):
    def __init__(self, *, inplace: bool = False) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 4, 3, 1, 1), nn.BatchNorm2d(4), nn.ReLU()
        )
        self.stage1 = Block(4, 1, inplace=inplace)
        self.stage2 = Block(8, 2, inplace=inplace)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stage2(self.stage1(self.stem(x)))
        return self.head(x.mean((2, 3)))


class Dynamic(ResNet):
    """Its control flow depends on the data, so that it cannot be traced."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.stage1(self.stem(x))
        for _ in range(int(x.abs().sum() > 0)):
            x = self.stage2(x)
        return self.head(x.mean((2, 3)))


class DynamicInside(ResNet):
    """Only a part without sites cannot be traced, which does not matter."""

    class Tail(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2 if float(x.detach().abs().sum()) > 0 else x

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(self.Tail(), nn.Linear(16, 5))


class ShapeAware(ResNet):
    """Uses the number of examples, and a constant, on the far side of the site."""

    def __init__(self) -> None:
        super().__init__()
        self.constant = nn.Parameter(torch.ones(1, 16))

    def forward(self, x: Tensor) -> Tensor:
        examples, height = x.shape[0], x.shape[2]
        x = self.stage2(self.stage1(self.stem(x)))
        x = x.reshape(examples, 16, -1).sum(2) / (height // 2) ** 2
        return self.head(x + self.constant.expand(examples, -1)).view(examples, -1)


class BatchStatistics(ResNet):
    """Standardises over the batch even in evaluation mode."""

    def forward(self, x: Tensor) -> Tensor:
        out = super().forward(x)
        return out - out.mean(0)


class SharedSite(nn.Module):
    """Runs the same normalisation twice; returns one number per example, [N]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.norm = nn.GroupNorm(1, 3)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):
            x = torch.tanh(self.norm(self.conv(x)))
        return x.sum((1, 2, 3))


IMAGES = torch.randn(4, 3, 8, 8, generator=seeded())


def resnet() -> nn.Module:
    return randomise(ResNet())

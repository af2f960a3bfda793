"""Networks of torchvision, timm and plain torch, with random weights, made small."""

import copy
from collections.abc import Callable
from functools import cache, partial

import torch
import torchvision.models as tv
from sklearn.datasets import load_digits
from timm import create_model
from timm.layers import GatedMlp, GroupNorm1
from timm.models.convmixer import ConvMixer
from timm.models.metaformer import MetaFormer
from timm.models.mlp_mixer import Affine, MlpMixer, ResBlock, SpatialGatingBlock
from torch import nn
from torchvision.models.efficientnet import MBConvConfig
from torchvision.models.maxvit import MaxVit
from torchvision.models.swin_transformer import SwinTransformer
from torchvision.models.vgg import make_layers

EXAMPLES = 24
CLASSES = 10
SMALL = 32
LARGE = 75
"""Least side of an image that inception_v3 takes."""


@cache
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Images [48, 1, 8, 8] from -1 to 1, and their labels [48]."""
    pixels, labels = load_digits(return_X_y=True)
    images = torch.tensor(pixels[: 2 * EXAMPLES] / 8 - 1).float()
    return images.view(-1, 1, 8, 8), torch.tensor(labels[: 2 * EXAMPLES])


def photographs(side: int) -> torch.Tensor:
    """The same in three channels, enlarged."""
    large = nn.functional.interpolate(digits()[0], size=side, mode="bilinear")
    return large.repeat(1, 3, 1, 1)


def _timm(name: str, **settings) -> Callable[[], nn.Module]:
    return partial(create_model, name, num_classes=CLASSES, **settings)


def _torchvision(name: str, **settings) -> Callable[[], nn.Module]:
    return partial(tv.get_model, name, num_classes=CLASSES, **settings)


def _vgg() -> nn.Module:
    layers = make_layers([8, "M", 16, "M", 32, 32, "M"], batch_norm=True)
    return nn.Sequential(layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head(32))


def _efficientnet() -> nn.Module:
    blocks = [(1, 3, 1, 8, 8, 1), (6, 3, 2, 8, 16, 2), (6, 5, 2, 16, 24, 1)]
    made = [MBConvConfig(*each) for each in blocks]
    return tv.EfficientNet(made, dropout=0.2, num_classes=CLASSES)


def _poolformer() -> nn.Module:
    scales = {"layer_scale_init_values": 1e-5, "res_scale_init_values": None}
    norms = {"norm_layers": GroupNorm1, "downsample_norm": None}
    layers = {"mlp_act": nn.GELU, "mlp_bias": True, "use_mlp_head": False}
    sizes = {"depths": (1, 1, 2, 1), "dims": (16, 24, 32, 48)}
    return MetaFormer(num_classes=CLASSES, **sizes, **scales, **norms, **layers)


def _swin() -> nn.Module:
    sizes = {"embed_dim": 12, "depths": [1, 2], "num_heads": [2, 4]}
    return SwinTransformer([2, 2], window_size=[4, 4], num_classes=CLASSES, **sizes)


def _maxvit() -> nn.Module:
    sizes = {"block_channels": [8, 16], "block_layers": [1, 1], "head_dim": 4}
    shape = {"input_size": (32, 32), "stem_channels": 8, "partition_size": 4}
    return MaxVit(stochastic_depth_prob=0.1, num_classes=CLASSES, **shape, **sizes)


def head(width: int) -> nn.Module:
    return nn.Linear(width, CLASSES)


class Recurrent(nn.Module):
    """Reads an image row by row."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.cells, self.head = kind(8, 12, batch_first=True), head(12)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.cells(images[:, 0])[0][:, -1])


class Attending(nn.Module):
    """Takes the rows of an image for tokens."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2), head(8)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(images[:, 0]).mean(1))


class Residual(nn.Module):
    """A block of a residual network of vectors."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors + self.layer(self.norm(vectors).relu())


def _sequence(*layers: nn.Module) -> Callable[[], nn.Module]:
    """Return what makes a network whose weights the seed of the moment decides."""

    def made() -> nn.Module:
        network = nn.Sequential(*copy.deepcopy(layers))
        for module in network.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
        return network

    return made


def _ended(*layers: nn.Module, width: int = 8) -> Callable[[], nn.Module]:
    return _sequence(*layers, nn.ReLU(), nn.Flatten(), head(width))


TRANSFORMER = {"embed_dim": 24, "depth": 2, "num_heads": 2}
TOKENS = {"img_size": SMALL, "patch_size": 8} | TRANSFORMER
MIXER = {"img_size": SMALL, "patch_size": 8, "embed_dim": 24, "num_blocks": 2}
STAGES = {"depths": (1, 1, 1, 1)}

OF_IMAGES: dict[str, Callable[[], nn.Module]] = {
    "resnet18": _torchvision("resnet18"),
    "vgg": _vgg,
    "densenet": partial(
        tv.DenseNet, 8, (2, 2, 2), 16, num_classes=CLASSES, memory_efficient=False
    ),
    "mobilenet_v2": _torchvision("mobilenet_v2", width_mult=0.25),
    "mobilenet_v3": _torchvision("mobilenet_v3_small", width_mult=0.5),
    "shufflenet": partial(
        tv.ShuffleNetV2, [1, 2, 1], [8, 16, 24, 32, 64], num_classes=CLASSES
    ),
    "squeezenet": _torchvision("squeezenet1_1"),
    "efficientnet": _efficientnet,
    "googlenet": _torchvision("googlenet", aux_logits=False, init_weights=False),
    "inception": _torchvision("inception_v3", aux_logits=False, init_weights=False),
    "mnasnet": _torchvision("mnasnet0_5"),
    "regnet": _timm("regnety_002"),
    "convnext": _timm("convnext_atto", dims=(8, 16, 24, 32), **STAGES),
    "swin": _swin,
    "maxvit": _maxvit,
    "vit": _timm("vit_tiny_patch16_224", **TOKENS),
    "vit, pooled": _timm(
        "vit_tiny_patch16_224", **TOKENS, global_pool="avg", class_token=False
    ),
    "deit": _timm("deit_tiny_distilled_patch16_224", **TOKENS),
    "beit": _timm("beit_base_patch16_224", **TOKENS),
    "cait": _timm("cait_xxs24_224", **TOKENS),
    "xcit": _timm("xcit_nano_12_p16_224", **TRANSFORMER | {"img_size": SMALL}),
    "mixer": partial(MlpMixer, CLASSES, **MIXER),
    "resmlp": partial(
        MlpMixer, CLASSES, block_layer=ResBlock, mlp_ratio=4, norm_layer=Affine, **MIXER
    ),
    "gmlp": partial(
        MlpMixer,
        CLASSES,
        block_layer=SpatialGatingBlock,
        mlp_layer=GatedMlp,
        mlp_ratio=6,
        **MIXER,
    ),
    "convmixer": partial(ConvMixer, 24, 2, num_classes=CLASSES),
    "ghostnet": _timm("ghostnet_050"),
    "repvgg": _timm("repvgg_a0"),
    "nfnet": _timm("nf_resnet26", channels=(16, 32, 48, 64)),
    "levit": _timm("levit_128s", img_size=64),
    "poolformer": _poolformer,
    "coat": _timm("coat_lite_tiny", img_size=SMALL, embed_dims=(16, 16, 24, 32)),
    "edgenext": _timm("edgenext_xx_small"),
    "mobilevit": _timm("mobilevit_xxs"),
    "resnest": _timm("resnest14d", channels=(16, 32, 48, 64)),
    "dla": _timm("dla46_c"),
}
"""Networks of images of three channels."""
SIDES = {"inception": LARGE, "levit": 64, "mobilevit": 64}
"""Sides of the images of those that do not take small ones."""

_COARSE = nn.AdaptiveAvgPool2d(1)
OF_DIGITS: dict[str, Callable[[], nn.Module]] = {
    "mlp": _sequence(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), head(16)),
    "residual mlp": _sequence(nn.Flatten(), Residual(64), Residual(64), head(64)),
    "lstm": partial(Recurrent, nn.LSTM),
    "gru": partial(Recurrent, nn.GRU),
    "encoder": Attending,
    "conv1d": _ended(nn.Flatten(1, 2), nn.Conv1d(8, 8, 3), nn.BatchNorm1d(8), width=48),
    "conv3d": _ended(nn.Unflatten(1, (1, 1)), nn.Conv3d(1, 2, (1, 3, 3)), width=72),
    "group norm": _ended(nn.Conv2d(1, 8, 3), nn.GroupNorm(2, 8), _COARSE),
    "instance norm": _ended(
        nn.Conv2d(1, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.Tanh(), _COARSE
    ),
    "autoencoder": _ended(
        nn.Conv2d(1, 4, 3, 2), nn.Tanh(), nn.ConvTranspose2d(4, 1, 4, 2), width=64
    ),
}
"""Networks of plain torch, of images [N, 1, 8, 8]."""

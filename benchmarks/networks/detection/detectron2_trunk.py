"""The ResNet of a detector of detectron2, by the names that torchvision gives it."""

from typing import Any

from torch import Tensor, nn

from benchmarks.networks.pretrained import Pretrained

STAGES = {"res2": "layer1", "res3": "layer2", "res4": "layer3", "res5": "layer4"}
"""Stages of detectron2's ResNet and those of torchvision's."""


class ResNetTrunk(nn.Module):
    """Both parts of the ResNet; its state has the names of torchvision's.

    Args:
        network: a detector of detectron2 whose box head is the last stage.
    """

    pretrained = Pretrained("ResNet50_Weights.IMAGENET1K_V1", ("fc",), ())

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.stages = nn.ModuleDict({"stem": network.backbone.stem})
        for place in (2, 3, 4):
            self.stages[f"res{place}"] = getattr(network.backbone, f"res{place}")
        self.stages["res5"] = network.roi_heads.res5

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Return the tensors by torchvision's names."""
        own = super().state_dict(*args, **kwargs).items()
        return {_of_torchvision(name): tensor for name, tensor in own}

    def load_state_dict(self, state: Any, strict: bool = True, **_: Any) -> Any:  # type: ignore[override]
        """Copy tensors by torchvision's names."""
        names = super().state_dict()
        own = {name: state[_of_torchvision(name)] for name in names}
        return super().load_state_dict(own, strict)


def _of_torchvision(name: str) -> str:
    """Return what torchvision calls a tensor: `stages.res2.0.conv1.norm.bias`."""
    _, stage, *rest = name.split(".")
    if stage == "stem":
        layer = "bn1" if "norm" in rest else "conv1"
        return f"{layer}.{rest[-1]}"
    own = STAGES[stage]
    block, layer, *_, last = rest
    if layer == "shortcut":
        return f"{own}.{block}.downsample.{int('norm' in rest)}.{last}"
    kind = layer.replace("conv", "bn") if "norm" in rest else layer
    return f"{own}.{block}.{kind}.{last}"

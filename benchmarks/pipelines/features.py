"""Features before the adapter, kept on disk for all processes and runs to share."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from benchmarks.runs.artifacts import Artifact, get_or_make
from metricopt.adapters.base import Adapter
from metricopt.tasks.encoding import Encoded, EncodedSplit, encoded
from metricopt.tasks.examples import Examples

KIND = "features"


def kept_features(
    adapter: Adapter, examples: Examples, key: Mapping[str, Any]
) -> Encoded:
    """Return encoded examples, read from the cache if they are there.

    Args:
        adapter: encodes them.
        examples: the examples.
        key: JSON-able; all that determines the features, except torch's version, the
            threads and the device. These affect the last bits and are added here.
    """
    device = examples.targets.device
    full_key = {
        **key,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "device": device.type,
    }

    def make() -> Artifact:
        split = encoded(adapter, examples)
        features = split.batch(slice(None))
        last = [_is_channels_last(part) for part in features]
        tensors = {
            str(place): (part.permute(0, 2, 3, 1) if turned else part).cpu()
            for place, (part, turned) in enumerate(zip(features, last, strict=True))
        }
        return Artifact(tensors, {"channels_last": last})

    tensors, facts = get_or_make(KIND, full_key, make)
    last = facts["channels_last"]
    assert isinstance(last, list)
    parts = (
        tensors[str(place)].permute(0, 3, 1, 2) if turned else tensors[str(place)]
        for place, turned in enumerate(last)
    )
    return EncodedSplit(tuple(part.to(device) for part in parts), examples.targets)


def _is_channels_last(part: Tensor) -> bool:
    """Whether feature maps [N, C, H, W] lie in memory with their channels last."""
    return part.ndim == 4 and part.is_contiguous(memory_format=torch.channels_last)

"""Features before the adapter, kept on disk for all processes and runs to share."""

from collections.abc import Mapping
from typing import Any

import torch

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
        "layout": "contiguous",
    }

    def make() -> Artifact:
        features = encoded(adapter, examples).batch(slice(None))
        parts = {str(place): part.cpu() for place, part in enumerate(features)}
        return Artifact(parts, {})

    tensors = get_or_make(KIND, full_key, make).tensors
    parts = (tensors[str(place)].to(device) for place in range(len(tensors)))
    return EncodedSplit(tuple(parts), examples.targets)

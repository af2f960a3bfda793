"""Weights of image networks as they are kept: small on disk, and identified."""

from torch import Tensor

from metricopt.adapters.export import state_digest


def half_weights(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a state whose matrices and kernels are float16, to be small on disk.

    The rounded weights are theta: all fine-tuning starts from them.
    """
    return {
        name: tensor.half().contiguous()
        if tensor.ndim > 1
        else tensor.contiguous().clone()
        for name, tensor in state.items()
    }


def weights_digest(state: dict[str, Tensor]) -> str:
    """Return the sha256 of names, types and bytes of a state, in hexadecimal.

    The heading has the format that the digests in released records were made with.
    """
    return state_digest(state, heading="{name}{dtype}{shape}")

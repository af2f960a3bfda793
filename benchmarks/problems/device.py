"""Where networks are trained and run."""

import torch


def device() -> torch.device:
    """Return where networks are trained and run: a GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")

"""One thread for tensors that are too small for more."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one torch thread inside the context, then as many as before.

    Handing a few thousand numbers to a second thread takes longer than adding them up,
    and far longer where other processes keep the cores busy.
    """
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

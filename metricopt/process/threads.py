"""One thread for tensors that are too small for more."""

from types import TracebackType
from typing import Self

import torch


def one_thread() -> "OneThread":
    """Use one torch thread inside the context, then as many as before.

    Handing a few thousand numbers to a second thread takes longer than adding them up,
    and far longer where other processes keep the cores busy.
    """
    return OneThread()


class OneThread:
    """The context of `one_thread`.

    It is a class, because a generator would assign to exceptions that pass through,
    which some refuse.
    """

    def __enter__(self) -> Self:
        self._before = torch.get_num_threads()
        if self._before > 1:
            torch.set_num_threads(1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before > 1:
            torch.set_num_threads(self._before)

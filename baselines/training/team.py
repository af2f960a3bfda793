"""Several processes that train one network together, as `torchrun` starts them.

Every process takes its share of each mini-batch. All draw alike, so that together they
see the mini-batches that one process would see.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from metricopt.errors import ConfigError
from metricopt.losses.contract import Loss


@dataclass(frozen=True)
class Team:
    """The processes of a training.

    Attributes:
        rank: place of this process, from 0 on; the first one writes files and shows
            progress.
        size: how many there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process is the first one."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """Return the places of a mini-batch that this process takes.

        Raises:
            ConfigError: if shares cannot be equal.
        """
        if count % self.size:
            raise ConfigError(
                f"a mini-batch must be a multiple of the {self.size} processes, got "
                f"{count}"
            )
        own = count // self.size
        return slice(self.rank * own, (self.rank + 1) * own)

    def check(self, loss: Loss) -> None:
        """Check that a loss does not learn: every process would learn another one.

        Raises:
            ConfigError: if it does, and there are several processes.
        """
        learned = list(loss.parameters()) if isinstance(loss, nn.Module) else []
        if self.size > 1 and learned:
            raise ConfigError(
                f"{type(loss).__name__} learns with the network, which needs one "
                f"process, got {self.size}"
            )

    def together(self, network: nn.Module) -> nn.Module:
        """Return a network whose gradients are the means over all processes.

        Statistics of batch norm are those of the first process.
        """
        return network if self.size == 1 else DistributedDataParallel(network)

    def level(self, network: nn.Module) -> None:
        """Give all processes the buffers of the first one, before they judge it.

        Each has statistics of its own share; judged by them, they would keep different
        epochs.
        """
        if self.size > 1:
            for buffer in network.buffers():
                torch.distributed.broadcast(buffer, 0)

    def mean(self, value: Tensor) -> Tensor:
        """Return the mean of a number over all processes, a scalar."""
        if self.size == 1:
            return value
        total = value.detach().clone()
        torch.distributed.all_reduce(total)
        return total / self.size


def team() -> Team:
    """Return the processes that `joined` has brought together, or this one alone."""
    if not torch.distributed.is_initialized():
        return Team()
    return Team(torch.distributed.get_rank(), torch.distributed.get_world_size())


@contextmanager
def joined() -> Iterator[Team]:
    """Bring the processes of `torchrun` together, each with a GPU of its own.

    Without `torchrun` this process is alone, and nothing is done.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Team()
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group(
        "nccl" if torch.cuda.is_available() else "gloo"
    )
    try:
        yield team()
    finally:
        torch.distributed.destroy_process_group()

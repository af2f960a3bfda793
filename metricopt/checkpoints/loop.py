"""The loop of every meta-training: go on from a checkpoint, step, save by the clock."""

import os
import time
from typing import Any, Protocol

from torch import nn
from tqdm import tqdm

from metricopt.checkpoints.state import begin, end, read_state, write_state
from metricopt.files import user_path


class Pace(Protocol):
    """What the loop asks of the settings of a training."""

    @property
    def iterations(self) -> int:
        """Iterations in all."""

    @property
    def save_every(self) -> float:
        """Seconds between two states on disk."""


class Resumable(Protocol):
    """A training between two iterations.

    Attributes:
        done: iterations that were made.
        seconds: time they took.
    """

    done: int
    seconds: float

    @property
    def settings(self) -> Pace:
        """How long it is, and how often it is saved."""

    @property
    def trained(self) -> nn.Module:
        """What is trained in place."""

    @property
    def said(self) -> str:
        """How it goes, in a few words for the bar."""

    def key(self) -> str:
        """Return what tells the training from another, before its first iteration."""

    def step(self) -> None:
        """Make one iteration, and count it as done."""

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs: tensors and plain values."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""


def run_to_end(
    run: Resumable, checkpoint: str | os.PathLike[str] | None, *, show: bool
) -> None:
    """Make all iterations of a training that are not made yet.

    Args:
        run: the training.
        checkpoint: a file for its state, to go on from; None for no file.
        show: whether a terminal shows a bar with the time left.

    Raises:
        ConfigError: if the checkpoint is of another training.
        DataError: if the checkpoint is damaged.
    """
    path = None if checkpoint is None else user_path(checkpoint)
    if path is not None:
        key = run.key()
        state = read_state(path, key)
        if state is None and end(run.trained):
            key = run.key()  # it begins with the weights an interrupted one left
        begin(run.trained)
        if state is not None:
            run.restore(state)
    total, saved = run.settings.iterations, time.monotonic()
    with tqdm(
        total=total, initial=run.done, unit=" it", disable=None if show else True
    ) as bar:
        while run.done < total:
            began = time.monotonic()
            run.step()
            run.seconds += time.monotonic() - began
            bar.update()
            bar.set_postfix_str(run.said, refresh=False)
            late = time.monotonic() - saved >= run.settings.save_every
            if path is not None and (late or run.done == total):
                write_state(path, key, run.state())
                saved = time.monotonic()
    end(run.trained)

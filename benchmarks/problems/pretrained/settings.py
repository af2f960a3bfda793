"""Settings that every problem with a pre-trained network has, and its FiLM adapter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from baselines.training.optimization import Training
from benchmarks.runs.codec import later
from metricopt.adapters.film import FiLM
from metricopt.errors import require_ranges

LOOP = frozenset(field.name for field in fields(Training))
"""Settings of the training loop; fields of these names are handed on to it."""


@dataclass(frozen=True)
class FilmSettings:
    """The adapter; see `metricopt.adapters.film.FiLM`.

    Attributes:
        form: kind of maps from phi to scales and shifts.
        sites: names of the modules it stands after; None for the usual ones.
        size: number d of parameters; None where the form decides it.
        offsets: whether output offsets stand beside it.
    """

    form: Literal["generator", "shared", "direct", "shift"] = "direct"
    sites: tuple[str, ...] | None = None
    size: int | None = None
    offsets: bool = later(False)

    def film(
        self, network: nn.Module, example: Tensor, *, seed: int, usual: Sequence[str]
    ) -> FiLM:
        """Return FiLM for a network.

        Args:
            network: frozen from now on.
            example: inputs of the network, [N, ...].
            seed: seed of the generator.
            usual: sites where the settings name none; empty for those of FiLM.
        """
        return FiLM(
            network,
            example,
            sites=self.sites or usual or None,
            form=self.form,
            size=self.size,
            seed=seed,
        )


DIRECT = FilmSettings()
"""A scale and a shift for every channel of the last normalisation layer."""


@dataclass(frozen=True)
class ThetaTraining:
    """How theta is trained; a kind of problem adds what it may change besides.

    Attributes:
        epochs: passes over as many images as there are to train on.
        rate: greatest learning rate.
        batch_size: images in one mini-batch, over all processes.
        loop: what this kind of problem fixes of the training loop, by name.
        least_area: least share of an image that a random crop holds.
        frozen: names of the modules whose weights are not trained.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    epochs: int
    rate: float
    batch_size: int = 128
    loop: ClassVar[Mapping[str, Any]] = {"channels_last": True}
    least_area = 1.0
    frozen: ClassVar[Any] = ()

    def __post_init__(self) -> None:
        self.training()
        checked = {"batch_size": self.batch_size, "least_area": self.least_area}
        require_ranges("training", checked, batch_size=">= 2", least_area="in (0, 1]")

    def training(self) -> Training:
        """Return the settings of the training loop."""
        names = (field.name for field in fields(self) if field.name in LOOP)
        own = {name: getattr(self, name) for name in names}
        return Training(learning_rate=self.rate, keep_best=False, **own, **self.loop)


@dataclass(frozen=True)
class PretrainedSettings:
    """Everything that decides a pipeline, except its replicate.

    Attributes:
        problem: the images.
        backbone: the network and its training.
        revision: raised when code changes numbers, so that no old record is reused.
        adapter: FiLM, its form and place.
        batch_size: images in one mini-batch of fine-tuning, at least 2.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    problem: Any
    backbone: Any
    revision: int
    adapter: FilmSettings
    batch_size: int = 128

    def __post_init__(self) -> None:
        require_ranges("fine-tuning", vars(self), batch_size=">= 2")

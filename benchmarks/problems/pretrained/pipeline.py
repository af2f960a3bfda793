"""The base class of pipelines whose one network was trained before any run."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from benchmarks.problems.adapted import AdaptedPipeline
from benchmarks.problems.contract import Prerequisite
from benchmarks.problems.device import device
from benchmarks.problems.pretrained.network import PretrainedNetwork
from benchmarks.problems.pretrained.theta import PretrainedSpec
from metricopt.process.seeding import Seeds


class PretrainedPipeline(AdaptedPipeline):
    """A pipeline on a network that its settings and replicate determine."""

    shares_columns = False

    def __init__(self, settings: Any, replicate: int) -> None:
        super().__init__(settings, replicate)
        self.device = device()

    @property
    @abstractmethod
    def theta_spec(self) -> PretrainedSpec:
        """Which network theta is."""

    @property
    @abstractmethod
    def theta_digest(self) -> str:
        """Digest of all its weights, see `weights.weights_digest`."""

    @property
    def seeds(self) -> Seeds:
        """Seeds of everything that is random here."""
        return Seeds(self.theta_spec.name, self.replicate)

    @property
    def recorded_seeds(self) -> dict[str, int]:
        """Seeds that records name, by purpose."""
        own = {"theta": self.theta_spec.seed, "adapter": self.seeds.seed("adapter")}
        return super().recorded_seeds | own

    @property
    def prerequisites(self) -> Sequence[Prerequisite]:
        """The pre-trained network."""
        return [PretrainedNetwork(self.theta_spec)]

    @property
    def key(self) -> dict[str, Any]:
        """Identity of what is made on this pipeline: of this very network."""
        return super().key | {"theta": self.theta_digest}

    @property
    def network_data(self) -> dict[str, str]:
        """What records say of the pre-trained network."""
        return {"theta": self.theta_digest}

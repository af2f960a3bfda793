"""The base class of pipelines whose one network was trained before any run."""

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from baselines.training.batches import Batches
from baselines.training.optimization import Training
from benchmarks.problems.choices import Adapted, Choice, NetworkCost
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.problems.prerequisite import (
    PASSES,
    Forecast,
    ImageCost,
    Prerequisite,
    cost_of_image,
)
from benchmarks.problems.pretrained.settings import (
    FilmSettings,
    ThetaTraining,
)
from benchmarks.problems.pretrained.theta import ThetaSpec
from benchmarks.problems.pretrained.weights import Theta, device
from benchmarks.problems.splits import Splits
from benchmarks.runs.artifacts import Artifact, get_or_make
from benchmarks.runs.codec import canonical, changed, encode
from benchmarks.runs.spec import RunSpec
from metricopt.adapters.base import Adapter, NetworkAdapter
from metricopt.adapters.film import FiLM
from metricopt.adapters.output_offsets import OutputOffsets
from metricopt.losses.contract import Loss
from metricopt.process.seeding import Seeds
from metricopt.tasks.encoding import Encoded, EncodedSplit, encoded
from metricopt.tasks.examples import Examples
from metricopt.tasks.sampling import NaturalSampler, Sampler

KIND = "features"
EXAMPLES = 8
"""Inputs that the adapter is made with."""


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


class PretrainedPipeline(NetworkPipeline):
    """A pipeline on theta with FiLM, which its settings and replicate determine.

    Fine-tuning sees training images without augmentation: what comes before the adapter
    is then computed once, and kept on disk for other runs.

    Attributes:
        spec_type: class of what determines theta.
    """

    shares_columns = False
    spec_type: ClassVar[type[ThetaSpec]]

    def __init__(self, settings: Any, replicate: int) -> None:
        super().__init__(settings, replicate)
        self.device = device()

    @property
    def examples_at_once(self) -> int:
        """Examples a trained network sees at a time."""
        return self.spec_type.at_once

    @property
    def theta_spec(self) -> Any:
        """What determines theta."""
        settings = self.settings
        return self.spec_type(settings.problem, settings.backbone, self.replicate)

    @cached_property
    def whole(self) -> Splits:
        """All images of the problem."""
        return self.theta_spec.splits()

    @property
    def used(self) -> Mapping[str, int | None]:
        """Images of a split that are used, the first ones; all where none is named."""
        return {}

    @cached_property
    def splits(self) -> Splits:
        """The three splits, cut to what is used of them."""
        return self.whole.on(self.device, **self.used)

    @property
    def seeds(self) -> Seeds:
        """Seeds of everything that is random here."""
        return Seeds(self.theta_spec.name, self.replicate)

    @property
    def adapter_seed(self) -> int:
        """Seed of the adapter; networks of a replicate share a shared generator."""
        shared = self.settings.adapter.form == "shared"
        own = Seeds("shared generator", self.replicate) if shared else self.seeds
        return own.seed("adapter")

    @property
    def recorded_seeds(self) -> dict[str, int]:
        """Seeds that records name, by purpose."""
        own = {"theta": self.theta_spec.seed, "adapter": self.adapter_seed}
        return super().recorded_seeds | own

    @property
    def prerequisites(self) -> Sequence[Prerequisite]:
        """The pre-trained network, after those that have to be trained before it."""
        return [*self.theta_spec.warm, self.theta_spec]

    @property
    @abstractmethod
    def counted(self) -> tuple[int, int]:
        """Images that training sees in an epoch, and those whose features are kept."""

    @property
    def image_cost(self) -> ImageCost:
        """What one image costs."""
        theta = replace(self.theta_spec.alone, replicate=0)
        return _image_cost(theta, self.settings.adapter)

    def forecast(self) -> Forecast:
        """Return what theta takes at most, without data."""
        spec, cost, (trained, kept) = self.theta_spec, self.image_cost, self.counted
        operations = PASSES * cost.operations * (spec.recipe.epochs * trained)
        return Forecast(spec.digest, operations, cost.feature_bytes * kept)

    @cached_property
    def pretrained(self) -> Theta:
        """The pre-trained network with its loss."""
        return self.theta_spec.find()

    @property
    def theta(self) -> Any:
        """The pre-trained network, in evaluation mode."""
        return self.pretrained.network

    @property
    def key(self) -> dict[str, Any]:
        """Identity of what is made on this pipeline: of this very network."""
        return super().key | {"theta": self.pretrained.digest}

    @property
    def network_data(self) -> dict[str, str]:
        """What records say of the pre-trained network."""
        return {"theta": self.pretrained.digest}

    @property
    def network_cost(self) -> NetworkCost:
        """What a method took to train the network."""
        return self.pretrained.cost

    @property
    def loss(self) -> Loss:
        """The loss theta was trained with, which fine-tuning uses as well."""
        return self.pretrained.loss

    @property
    def sampler(self) -> Sampler:
        """What draws the mini-batches of fine-tuning."""
        return NaturalSampler(len(self.splits.train), self.settings.batch_size)

    def recipe(self, changes: Mapping[str, Any]) -> ThetaTraining:
        """Return how theta was trained, with changes."""
        return changed(self.theta_spec.recipe, changes)

    def batches(self, changes: Mapping[str, Any]) -> Batches:
        """Return the augmented mini-batches a network is trained on."""
        return self.theta_spec.batches(self.whole, self.recipe(changes))

    def training(self, changes: Mapping[str, Any]) -> Training:
        """Return how a network is trained here, with changes."""
        return self.recipe(changes).training()

    def network_start(self, *, from_theta: bool) -> nn.Module:
        """Return the trained network, or one with the base weights or random ones."""
        return self.theta if from_theta else self.theta_spec.begun().to(self.device)

    @cached_property
    def film(self) -> FiLM:
        """FiLM at the sites the settings name, or at those of the network."""
        return self.film_of(self.theta)

    def film_of(self, network: Any) -> FiLM:
        """Return FiLM for a network like theta."""
        return self.settings.adapter.film(
            network,
            self._example,
            seed=self.adapter_seed,
            usual=self.theta_spec.sites(network),
        )

    @cached_property
    def adapter(self) -> NetworkAdapter:
        """FiLM, with output offsets beside it where the settings want them."""
        wanted = self.settings.adapter.offsets
        return OutputOffsets(self.film, self._example) if wanted else self.film

    @property
    def _example(self) -> Tensor:
        return self.splits.observe.batch(slice(EXAMPLES))

    @property
    def features_facts(self) -> Mapping[str, object]:
        """What else determines the features before the adapter, JSON-able."""
        return {}

    def encode(self, name: str, examples: Examples) -> Encoded:
        """Return a split as the adapter encodes it, kept on disk for other runs."""
        if not self.film.is_cut:
            return super().encode(name, examples)  # the images themselves
        key = {
            "theta": self.pretrained.digest,
            "network": self.settings.backbone.network,
            "sites": [site.name for site in self.film.sites],
            "problem": encode(self.settings.problem),
            "data": self.splits.digest,
            "replicate": self.replicate,
            "split": name,
            "examples": len(examples),
        }
        return kept_features(self.film, examples, key | dict(self.features_facts))

    def before_and_after(self, choice: Choice) -> Tensor:
        """Return the test outputs of theta, and with the first phi, [2, N, ...]."""
        assert isinstance(choice, Adapted)
        untouched = torch.zeros(1, self.adapter.size)
        judge = self.judged("test").judge
        outputs = judge.outputs(torch.cat([untouched, choice.phi[:1]]))
        assert isinstance(outputs, Tensor)
        return outputs


def network_of(spec: RunSpec) -> str:
    """Return a readable identity of the pre-trained network of a run."""
    theta = make_pipeline(spec.pipeline, spec.replicate).theta_spec
    key = canonical([encode(theta.problem), encode(theta.backbone), theta.replicate])
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    parts = (theta.problem.dataset, theta.backbone.network, theta.trained_with)
    return f"{', '.join(parts)}, replicate {theta.replicate} ({digest})"


@cache
def _image_cost(spec: ThetaSpec, adapter: FilmSettings) -> ImageCost:
    network = spec.fresh().eval()
    return cost_of_image(network, spec.image(), adapter, *spec.sites(network))

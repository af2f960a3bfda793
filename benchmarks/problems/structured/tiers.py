"""Structured problems at every tier: networks, how methods train them, and sizes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from benchmarks.problems.pretrained.base_weights import SQUEEZENET, BaseWeights
from benchmarks.problems.pretrained.method_training import TrainedByMethod
from benchmarks.problems.pretrained.settings import DIRECT
from benchmarks.problems.problem import PAPER, SMOKE, DataProblem, FinetuningSize
from benchmarks.problems.structured.contract import (
    MODALITIES,
    Modality,
    StructuredBackbone,
    StructuredProblem,
    StructuredSettings,
    StructuredTraining,
    modality_of,
)
from benchmarks.runs.codec import encode, merged
from benchmarks.runs.spec import Settings, Unit
from metricopt.errors import ConfigError

REVISION = 1
"""Raised when code changes numbers, so that no old record is taken for a new one."""
TRAINING_REVISION = 1
"""Raised when code changes networks, so that no old one is taken."""

VARIANTS: dict[str, Settings] = {
    "reloss": {},
    "reloss-anchored": {"anchored": True},
    "reloss-regression": {"objective": "regression"},
}
"""Changes to how a surrogate is fitted, by a name of ours."""


@dataclass(frozen=True)
class StructuredSize(FinetuningSize):
    """How large a tier is.

    Attributes:
        examples: training examples that fine-tuning sees.
        reloss: settings of ReLoss.
    """

    value_functions: int = 1
    seeds: int = 1
    search_tests: int = 1
    examples: int = 512
    reloss: Settings = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Network:
    """What is trained at a tier.

    Attributes:
        problem: the examples.
        network: name of a network of the modality.
        base: weights it starts from.
        training: how every method trains it.
        phi_size: number of parameters of FiLM.
    """

    problem: StructuredProblem
    network: str
    base: BaseWeights
    training: StructuredTraining
    phi_size: int


IMAGENET = BaseWeights("torchvision")
SHARED: Mapping[str, dict[str, Any]] = {
    "paper": {**PAPER, "replicates": 3, "meta_tests": 3, "examples": 4_096},
    "local": {
        **{"replicates": 3, "meta_tests": 3, "steps": 50, "observations": 3},
        **{"tasks": 60, "batch_size": 16},
    },
    "smoke": {**SMOKE, "tasks": 6, "batch_size": 8, "examples": 32},
}
"""How long networks are fine-tuned, at every tier."""


def _fitting(groups: int, group_size: int, epochs: int, held_out: int) -> Settings:
    """Return how a surrogate is fitted, scaled to a slope of 1 in the end."""
    return {
        **{"groups": groups, "group_size": group_size, "epochs": epochs},
        **{"held_out": held_out, "unit_slope": True},
    }


RELOSS: Mapping[str, Mapping[str, tuple[int, Settings]]] = {
    "poses": {
        "paper": (60_000, _fitting(64, 32, 10, 128)),
        "local": (6_000, _fitting(32, 16, 10, 128)),
        "smoke": (400, _fitting(8, 8, 2, 16)),
    },
    "spans": {
        # Two epochs record 18,000 outputs: fewer groups a step leave more steps.
        "paper": (100_000, _fitting(32, 32, 40, 256)),
        "local": (20_000, _fitting(32, 32, 10, 128)),
        "smoke": (800, _fitting(8, 8, 2, 16)),
    },
    "sentences": {
        "paper": (100_000, _fitting(64, 64, 10, 256)),
        # Attention learns slowly: more and smaller steps than for the others.
        "local": (10_000, _fitting(16, 16, 12, 128)),
        "smoke": (1_600, _fitting(8, 8, 4, 32)),
    },
}
"""Recorded outputs, and how a surrogate is fitted to them, by modality and tier."""
SIZES = {
    modality: {
        tier: StructuredSize(
            **SHARED[tier], reloss={"recorded": recorded, "fitting": fitting}
        )
        for tier, (recorded, fitting) in tiers.items()
    }
    for modality, tiers in RELOSS.items()
}
"""Sizes by modality and tier."""
NETWORKS: Mapping[str, Mapping[str, tuple[Network, ...]]] = {
    "poses": {
        # Xiao et al., ECCV 2018: 140 epochs of Adam, 256 x 192 pixels.
        "paper": (
            Network(
                StructuredProblem("poses", "coco-keypoints", (256, 192), observed=0.02),
                "resnet50",
                IMAGENET,
                StructuredTraining(140, batch_size=128, channels_last=True),
                512,
            ),
        ),
        "local": (
            Network(
                StructuredProblem("poses", "lspet-upright", (128, 96), observed=0.13),
                "squeezenet1_1",
                SQUEEZENET,
                StructuredTraining(60, rate=2e-3, channels_last=True),
                128,
            ),
        ),
        "smoke": (
            Network(
                StructuredProblem("poses", "drawn-people", (64, 48), observed=0.25),
                "tiny",
                BaseWeights(),
                StructuredTraining(4, batch_size=8, rate=1e-2),
                32,
            ),
        ),
    },
    "spans": {
        "paper": (
            Network(
                StructuredProblem(
                    "spans", "cmrc2018", (512, 21_128), 0.1, vocabulary="macbert"
                ),
                "macbert-base",
                BaseWeights("published"),
                # As the baseline of CMRC 2018, but for its decay, which Adam would turn
                # into steps of the size of all others.
                StructuredTraining(2, rate=3e-5),
                1_536,
            ),
        ),
        "local": (
            Network(
                StructuredProblem("spans", "cmrc2018-dev", (256, 3_000), observed=0.15),
                "small",
                BaseWeights(),
                StructuredTraining(16),
                192,
            ),
        ),
        "smoke": (
            Network(
                StructuredProblem("spans", "made-questions", (48, 60), observed=0.25),
                "tiny-convolutions",
                BaseWeights(),
                StructuredTraining(4, batch_size=8, rate=5e-3),
                64,
            ),
        ),
    },
    "sentences": {
        # Gu et al., ICLR 2018, and Ghazvininejad et al., EMNLP 2019: 300,000 steps of
        # some 2,000 pairs; theirs begins with the translations of another network.
        "paper": tuple(
            Network(
                StructuredProblem("sentences", dataset, (128, 32_000), observed=0.003),
                "nat-base",
                BaseWeights(),
                StructuredTraining(50, batch_size=256, rate=5e-4, weight_decay=0.01),
                1_024,
            )
            for dataset in ("wmt16-en-ro", "wmt16-ro-en")
        ),
        "local": tuple(
            Network(
                StructuredProblem("sentences", dataset, size, observed=observed),
                "small",
                BaseWeights(),
                StructuredTraining(epochs, batch_size=64, rate=2e-3),
                256,
            )
            for dataset, size, observed, epochs in (
                ("multi30k-en-de", (40, 2_000), 0.015, 15),
                ("ro-sts-en-ro", (48, 2_000), 0.035, 25),
                ("ro-sts-ro-en", (48, 2_000), 0.035, 25),
            )
        ),
        "smoke": (
            Network(
                StructuredProblem("sentences", "made-sentences", (16, 90), 0.25),
                "tiny",
                BaseWeights(),
                StructuredTraining(8, batch_size=8, rate=1e-2),
                64,
            ),
        ),
    },
}
"""Networks by modality and tier, one for every column of a table."""


@dataclass(frozen=True, kw_only=True)
class Structured(DataProblem):
    """Examples with the network that a method trains on them.

    Attributes:
        data: the examples.
        tier: the tier.
        method: what trains the network: the usual loss, or a form of ReLoss.
        size: how long the network is fine-tuned.
    """

    data: StructuredProblem
    tier: str
    method: str
    size: StructuredSize
    has_offsets = False
    is_pictured = True

    @classmethod
    def at(cls, modality: str, tier: str) -> Self:
        """Return the first problem of a modality at a tier, with the usual loss."""
        return cls.every(modality, tier)[0]

    @classmethod
    def every(cls, modality: str, tier: str) -> tuple[Self, ...]:
        """Return all problems of a modality at a tier, with the usual loss."""
        usual, size = MODALITIES.get(modality).usual, SIZES[modality][tier]
        return tuple(
            cls(
                name=network.problem.dataset,
                data=network.problem,
                tier=tier,
                method=usual,
                size=size,
            )
            for network in NETWORKS[modality][tier]
        )

    @property
    def modality(self) -> Modality:
        """What the answers are."""
        return modality_of(self.data)

    @property
    def phi_size(self) -> int:  # type: ignore[override]
        """Number of parameters d of the adapter."""
        return self._network.phi_size

    def by(self, method: str) -> Self:
        """Return the same examples with the network that a method trains.

        Raises:
            ConfigError: if there is no such method.
        """
        known = (self.modality.usual, *VARIANTS)
        if method not in known:
            raise ConfigError(f"expected one of {', '.join(known)}, got {method!r}")
        return replace(self, method=method)

    @property
    def trained_by(self) -> str:
        """The registered method that trains the network."""
        return self._taught.method.name

    @property
    def _network(self) -> Network:
        every = NETWORKS[self.data.modality][self.tier]
        return next(one for one in every if one.problem == self.data)

    @property
    def _taught(self) -> TrainedByMethod:
        kind, metric = {"kind": self.modality.kind}, self.modality.metrics[0]
        if self.method == self.modality.usual:
            return TrainedByMethod(self.method, Unit("usual-loss", kind), metric)
        changes = {"fitting": VARIANTS[self.method]}
        settings = merged(merged(self.size.reloss, changes), kind)
        label = f"{self.method}-{metric.name}"
        return TrainedByMethod(label, Unit("reloss", settings), metric)

    def pipeline(self, *, offsets: bool = False) -> Unit:
        """Return the pipeline that runs it; its answers know no offsets."""
        own = self._network
        network = StructuredBackbone(
            own.network, own.base, own.training, self._taught, TRAINING_REVISION
        )
        settings = StructuredSettings(
            self.data,
            network,
            REVISION,
            DIRECT,
            self.size.batch_size,
            self.size.examples,
        )
        return Unit("structured", encode(settings))

"""Embedding networks that ALA trains, or a loss alone, in as many steps; their sizes.

Those of one framework start from the same weights. Photographs and network of a tier
are those of Table 5, at the sizes here; faces are a second problem, from which and to
which a policy is transferred.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from baselines.training.optimization import Precision
from benchmarks.problems.pretrained.method_training import TrainedByMethod
from benchmarks.problems.retrieval import tiers
from benchmarks.problems.retrieval.settings import (
    EmbeddingBackbone,
    PolicySource,
    RetrievalProblem,
)
from benchmarks.problems.retrieval.theta import VERIFIED
from benchmarks.problems.retrieval.tiers import Retrieval, RetrievalSize
from benchmarks.runs.codec import merged
from benchmarks.runs.spec import Settings, Unit

Subject = Literal["photographs", "faces"]
OTHER: Mapping[Subject, Subject] = {"photographs": "faces", "faces": "photographs"}
FRAMEWORKS = ("triplet", "margin")
"""Losses of pytorch-metric-learning, which sample the pairs that are compared."""
MIXTURE: Settings = {"loss": "distance-mixture"}
TRANSFER = "mixture-transfer"
FORMS: Mapping[str, Settings] = {
    "mixture": MIXTURE,
    "mixture-powers": MIXTURE | {"functions": "powers"},
    "mixture-noise": MIXTURE | {"form": "noise"},
    "focal": {"loss": "focal-weighting"},
    TRANSFER: MIXTURE,
}
"""Settings of ALA by the second part of a method's name."""


@dataclass(frozen=True)
class Images:
    """What embeddings are trained on.

    Attributes:
        problem: the images.
        epochs: passes over them, for every method.
        metric: what ALA works towards.
    """

    problem: RetrievalProblem
    epochs: int
    metric: Unit = Unit("mean-recall")  # noqa: RUF009


@dataclass(frozen=True)
class MethodSize(RetrievalSize):
    """How large a tier is.

    Attributes:
        of: the images and their epochs.
        batch_size: images in a mini-batch.
        precision: arithmetic of training; None for the usual one of the tier.
        ala: settings of ALA.
    """

    of: Mapping[Subject, Images] = field(default_factory=dict, hash=False)
    batch_size: int = 128
    precision: Precision | None = None
    ala: Settings = field(default_factory=dict, hash=False)


SIZES = {
    "paper": MethodSize(
        replicates=10,
        of={
            "photographs": Images(tiers.PROBLEMS["paper"], epochs=30),
            "faces": Images(
                RetrievalProblem("lfw", side=224, observed=0.2), 30, VERIFIED
            ),
        },
    ),
    "local": MethodSize(
        ranks=tiers.SIZES["local"].ranks,
        of={
            "photographs": Images(
                replace(tiers.PROBLEMS["local"], side=128), epochs=50
            ),
            # More epochs make the margin loss worse on photographs, not on faces.
            "faces": Images(
                RetrievalProblem("lfwcrop", side=64, observed=0.2), 16, VERIFIED
            ),
        },
        batch_size=64,
        precision="fastest",
        # There are 600 steps on photographs, 1,168 on faces: 59 and 116 decisions. With
        # two updates for each, or ten, the first policy let the push of pairs vanish,
        # and then all embeddings are one.
        ala={"period": 10, "measured": 1, "updates": 1},
    ),
    "smoke": MethodSize(
        ranks=tiers.SIZES["smoke"].ranks,
        replicates=1,
        of={
            "photographs": Images(tiers.PROBLEMS["smoke"], epochs=4),
            "faces": Images(
                RetrievalProblem("drawn-shapes", side=32, observed=0.6),
                epochs=4,
                metric=Unit("verification"),
            ),
        },
        batch_size=16,
        ala={"period": 4, "measured": 1, "updates": 2},
    ),
}


def backbone(
    tier: str, method: str, subject: Subject = "photographs"
) -> EmbeddingBackbone:
    """Return the network that a method trains at a tier.

    Args:
        tier: decides network and sizes.
        method: one of `FRAMEWORKS`, for its loss alone; or "<framework>-<form>".
        subject: what it is trained on.
    """
    framework, _, form = method.partition("-")
    size, usual = SIZES[tier], tiers.backbone(tier, framework)
    images = size.of[subject]
    training = replace(
        usual.training,
        epochs=images.epochs,
        batch_size=size.batch_size,
        precision=size.precision or usual.training.precision,
    )
    plain = replace(usual, training=training)
    if not form:
        return plain
    settings = merged(size.ala, FORMS[form] | {"framework": framework})
    taught = TrainedByMethod(f"{method}-ala", Unit("ala", settings), images.metric)
    found = replace(plain, taught=taught)
    if form != TRANSFER:
        return found
    other = OTHER[subject]
    source = backbone(tier, f"{framework}-mixture", other)
    return replace(found, policy_of=PolicySource(size.of[other].problem, source))


@dataclass(frozen=True, kw_only=True)
class MethodRetrieval(Retrieval):
    """Images on which every method trains a network of its own.

    Attributes:
        tier: decides the sizes.
        subject: what the images show.
    """

    tier: str
    subject: Subject

    @classmethod
    def of(cls, tier: str, subject: Subject = "photographs") -> Self:
        """Return the images of a tier, with the network of the margin loss."""
        size = SIZES[tier]
        data = size.of[subject].problem
        return cls(
            name=subject if tier == "smoke" else data.dataset,
            data=data,
            network=backbone(tier, "margin", subject),
            size=size,
            tier=tier,
            subject=subject,
        )

    @property
    def metric(self) -> Unit:
        """What ALA works towards."""
        return SIZES[self.tier].of[self.subject].metric

    def by(self, method: str) -> Self:
        """Return the same images with the network that a method trains."""
        return replace(self, network=backbone(self.tier, method, self.subject))

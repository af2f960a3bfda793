"""Settings out of range are refused when they are made or decoded."""

import pytest

from baselines.training.optimization import Training
from benchmarks.problems.detection.pipeline import DetectionSettings, DetectorTraining
from benchmarks.problems.images.settings import ImageSettings, ImageTraining
from benchmarks.problems.photographs.pipeline import ClassifierTraining
from benchmarks.problems.pretrained.base_weights import BaseWeights
from benchmarks.problems.retrieval.settings import EmbeddingTraining
from benchmarks.runs.codec import decode, merged
from metricopt.errors import ConfigError
from tests.benchmarks.problems.pipeline_cases import smoke_spec

TRAININGS = (ImageTraining, ClassifierTraining, EmbeddingTraining, DetectorTraining)


@pytest.mark.parametrize("kind", TRAININGS)
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"epochs": 0}, "training needs epochs >= 1, got epochs=0"),
        ({"rate": 0.0}, "learning_rate=0.0"),
        ({"batch_size": 1}, "training needs batch_size >= 2, got batch_size=1"),
    ],
)
def test_impossible_trainings_are_refused(kind, changes, text):
    with pytest.raises(ConfigError, match=text):
        kind(**({"epochs": 1, "rate": 0.1} | changes))


@pytest.mark.parametrize("kind", [ClassifierTraining, EmbeddingTraining])
@pytest.mark.parametrize("area", [0.0, 1.5])
def test_a_share_of_the_area_that_cannot_be_is_named(kind, area):
    with pytest.raises(
        ConfigError, match=rf"least_area in \(0, 1\], got least_area={area}"
    ):
        kind(1, rate=0.1, least_area=area)


def test_a_training_hands_its_settings_to_the_loop():
    common = {"keep_best": False, "channels_last": True}
    assert ImageTraining(3, rate=0.05, schedule="steps").training() == Training(
        3,
        0.05,
        optimizer="sgd",
        weight_decay=5e-4,
        schedule="steps",
        warm_up=0.25,
        precision="fastest",
        **common,
    )
    found = EmbeddingTraining(3, head_factor=2.0).training()
    assert found == Training(3, 1e-5, head_factor=2.0, **common)
    assert DetectorTraining(2).training() == Training(2, 1e-3, keep_best=False)


def test_more_settings_of_detection_are_refused():
    with pytest.raises(ConfigError, match="cross_entropy >= 0, got cross_entropy=-1"):
        DetectorTraining(1, cross_entropy=-1)
    given = {"problem": None, "backbone": None, "revision": 1, "adapter": None}
    with pytest.raises(ConfigError, match="proposals >= 1, got proposals=0"):
        DetectionSettings(**given, proposals=0)
    with pytest.raises(ConfigError, match="batch_size >= 2, got batch_size=1"):
        DetectionSettings(**given, batch_size=1)


IMAGES, DETECTION = (
    (ImageSettings, ("table1", "cross-entropy")),
    (DetectionSettings, ("table6", "untouched")),
)


@pytest.mark.parametrize(
    ("of", "changes", "text"),
    [
        (IMAGES, {"backbone": {"pretraining": {"schedule": "cosine"}}}, "one-cycle"),
        (DETECTION, {"backbone": {"loss": "focal"}}, "cross-entropy"),
        (DETECTION, {"backbone": {"base": {"source": "timm"}}}, "torchvision"),
    ],
)
def test_settings_of_a_spec_are_checked_as_they_are_read(of, changes, text):
    kind, row = of
    settings = smoke_spec(*row).pipeline.settings
    assert decode(kind, settings)
    with pytest.raises(ConfigError, match=f"{kind.__name__}.*{text}"):
        decode(kind, merged(settings, changes))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"source": "random", "file": "a.pt"}, "belong to the source 'file', got the"),
        ({"source": "torchvision", "sha256": "0"}, "source 'torchvision'"),
        ({"source": "file"}, r"ending in .safetensors or .pth or .pt, got None"),
        ({"source": "file", "file": "a.bin"}, "got 'a.bin'"),
        ({"source": "file", "file": "a.pt"}, "needs its sha256, .* got None"),
        ({"source": "file", "file": "a.pt", "sha256": "1fe8"}, "64 .* got '1fe8'"),
    ],
)
def test_base_weights_are_named_with_their_checksum(settings, text):
    with pytest.raises(ConfigError, match=text):
        BaseWeights(**settings)
    with pytest.raises(ConfigError, match=f"settings for BaseWeights: .*{text}"):
        decode(BaseWeights, settings)

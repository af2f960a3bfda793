"""Episodes of sine waves: their formula, their ranges, and that they are made again."""

import math

import pytest
import torch

from benchmarks.data.few_shot.contract import PARTS
from benchmarks.problems.episodes.sines import SineEpisodes, SineSettings, Wave
from benchmarks.runs.codec import decode, encode
from metricopt.errors import ConfigError


def test_all_points_of_an_episode_are_on_its_wave():
    own = SineEpisodes(SineSettings(shots=5, queries=7), 0)
    made = own.batch("train", [2, 9])
    assert made.support_inputs.shape == made.support_targets.shape == (2, 5, 1)
    assert made.query_inputs.shape == made.query_targets.shape == (2, 7, 1)
    for place, number in enumerate((2, 9)):
        wave = own.wave("train", number)
        inputs = torch.cat([made.support_inputs[place], made.query_inputs[place]])
        targets = torch.cat([made.support_targets[place], made.query_targets[place]])
        expected = [
            wave.amplitude * math.sin(x - wave.phase) for x in inputs[:, 0].tolist()
        ]
        assert targets[:, 0].tolist() == pytest.approx(expected, abs=1e-5)
        assert len(set(inputs[:, 0].tolist())) == 12


def test_a_wave_is_its_formula():
    found = Wave(2.0, math.pi / 2)(torch.tensor([math.pi, math.pi / 2]))
    assert found.tolist() == pytest.approx([2.0, 0.0], abs=1e-6)


def test_waves_fill_the_published_ranges():
    own = SineEpisodes(SineSettings(), 0)
    waves = [own.wave("train", number) for number in range(1_000)]
    amplitudes = torch.tensor([wave.amplitude for wave in waves])
    phases = torch.tensor([wave.phase for wave in waves])
    inputs = own.batch("train", range(200)).support_inputs
    for values, low, high in (
        (amplitudes, 0.1, 5.0),
        (phases, 0.0, math.pi),
        (inputs, -5.0, 5.0),
    ):
        assert low <= values.min() < low + 0.02 * (high - low)
        assert high >= values.max() > high - 0.02 * (high - low)
        middle = (low + high) / 2
        assert abs(float(values.mean()) - middle) < 0.05 * (high - low)


def test_a_number_makes_the_same_episode_and_another_one_another():
    first = SineEpisodes(SineSettings(), 3).batch("test", [11])
    torch.manual_seed(5)
    again = SineEpisodes(SineSettings(), 3).batch("test", [4, 11])
    for name, own in vars(first).items():
        assert torch.equal(own[0], getattr(again, name)[1])
    own = SineEpisodes(SineSettings(), 3)
    waves = {own.wave(part, number) for part in PARTS for number in range(50)}
    waves |= {SineEpisodes(SineSettings(), 4).wave("test", k) for k in range(50)}
    assert len(waves) == 200


def test_another_process_made_the_same_wave():
    own = SineEpisodes(SineSettings(), 0)
    assert own.wave("test", 0) == Wave(1.233747959136963, 2.5843989849090576)
    first = own.batch("test", [0]).query_inputs[0, :2, 0].tolist()
    assert first == [-1.9267988204956055, 3.182126045227051]


def test_600_waves_are_tested():
    own = SineEpisodes(SineSettings(), 0)
    assert sum(len(each) for each in own.tests(256)) == 600
    assert own.data["variant"] == "sine"
    assert decode(SineSettings, encode(own.settings)) == own.settings


@pytest.mark.parametrize("name", ["shots", "queries", "test_episodes"])
def test_counts_that_are_not_positive_are_refused(name):
    with pytest.raises(ConfigError, match=f"needs {name} >= 1, got {name}=0"):
        SineSettings(**{name: 0})
    with pytest.raises(ConfigError, match="a batch needs at_once >= 1, got at_once=0"):
        next(SineEpisodes(SineSettings(), 0).tests(0))

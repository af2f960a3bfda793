"""Calls leave the random states of the process, and each other, alone."""

import random
import threading
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from metricopt import finetune
from metricopt.methods.evolution import evolution_strategies, evolution_strategy
from metricopt.on_outputs.handed_over import HandedOver
from metricopt.process.keeping import kept_process
from tests.metricopt.digits_network import pretrained, splits

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import cma


def generations(searches, count=4):
    """Return what searches ask for in lock-step, minimising a sum of squares."""
    found = []
    for _ in range(count):
        asked = [search.ask() for search in searches]
        for search, each in zip(searches, asked, strict=True):
            search.tell(each, [(one**2).sum() for one in each])
        found.append(asked)
    return np.array(found)


@pytest.mark.parametrize("seeds", [[7], [7, 11, 5]])
def test_cma_draws_what_it_draws_of_the_global_state(seeds):
    before = np.random.get_state()
    own = generations(evolution_strategies(6, 0.4, seeds))
    untouched = np.random.get_state()
    assert np.array_equal(before[1], untouched[1]) and before[2:] == untouched[2:]
    options = {"verbose": -9, "tolflatfitness": 10**9}
    with kept_process(nn.Identity()):
        plain = [
            cma.CMAEvolutionStrategy(np.zeros(6), 0.4, options | {"seed": seed})
            for seed in seeds
        ]
        assert np.array_equal(own, generations(plain))


def test_searches_that_are_not_in_lock_step_do_not_share_their_draws():
    one, two = (evolution_strategy(6, 0.4, seed) for seed in (3, 4))
    alone = generations([evolution_strategy(6, 0.4, 3)])
    mixed = []
    for _ in range(4):
        mixed.append(generations([one], 1))
        generations([two], 1)
    assert np.array_equal(np.concatenate(mixed), alone)


def test_a_hand_over_draws_from_the_stream_it_is_given():
    stream, root = np.random.RandomState(), torch.eye(4)
    before = np.random.get_state()[2]
    found = HandedOver(torch.empty(0, 4), root, 9, stream).ask(torch.zeros(4))
    assert np.random.get_state()[2] == before
    expected = evolution_strategy(4, 0.3, 9).ask()[0]
    assert found.tolist() == pytest.approx(expected.tolist())


def states():
    return torch.get_rng_state().tolist(), np.random.get_state(), random.getstate()


def test_states_are_those_from_before_the_first_of_overlapping_contexts():
    np.random.seed(1)
    expected = np.random.get_state()[1].tolist()
    first, second = (kept_process(nn.Identity()) for _ in range(2))
    np.random.seed(2)
    first.close()
    assert np.random.get_state()[1].tolist() != expected  # another one still works
    np.random.seed(3)
    second.close()
    assert np.random.get_state()[1].tolist() == expected
    with kept_process(nn.Identity()):
        np.random.seed(4)
    assert np.random.get_state()[1].tolist() == expected


def test_two_calls_at_once_find_what_each_finds_alone():
    train, observe, _ = splits()
    meeting = threading.Barrier(2, timeout=60)

    def called(seed, met):
        def metric(outputs, targets):
            met()
            return (outputs.argmax(1) == targets).double().mean().item()

        return finetune(
            pretrained(seed),
            train=train,
            observe=observe,
            loss=nn.CrossEntropyLoss(),
            metric=metric,
            higher_is_better=True,
            method="cma-es",
            no_harm=False,
            queries=20,
            progress=False,
        )

    alone = [called(seed, lambda: None) for seed in (1, 2)]
    before, together = states(), {}

    def run(seed):
        together[seed] = called(seed, meeting.wait)

    threads = [threading.Thread(target=run, args=[seed]) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, found in zip((1, 2), alone, strict=True):
        assert torch.equal(together[seed].values, found.values)
        assert torch.equal(together[seed].phi, found.phi)
    after = states()
    assert before[0] == after[0] and before[2] == after[2]
    assert np.array_equal(before[1][1], after[1][1])

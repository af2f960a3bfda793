"""The speed script of retrieval: contestants agree, a difference is found out."""

from dataclasses import replace

import pytest
import torch

from benchmarks.speed import retrieval
from benchmarks.speed.retrieval import Found, Problem
from metricopt.errors import MetricOptError
from tests.metricopt.metrics.test_neighbours import naive

TINY = Problem(120, 16)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def test_the_problem_is_neither_solved_nor_hopeless():
    embeddings, labels = TINY.draw()
    assert embeddings.shape == (120, 16)
    assert set(torch.bincount(labels).tolist()) == {retrieval.PER_CLASS}
    assert torch.equal(TINY.draw()[0], embeddings)
    assert TINY.cuts == [1, 10, 100]
    assert Problem(1002).cuts == [1, 10, 100, 1000]


@pytest.mark.parametrize("name", retrieval.CONTESTANTS)
def test_every_contestant_finds_what_a_naive_loop_does(name):
    if name != "ours":
        pytest.importorskip("faiss")
    embeddings, labels = TINY.draw()
    ranks, precision = naive(embeddings, labels)
    expected = {f"recall@{k}": float((ranks < k).double().mean()) for k in TINY.cuts}
    expected["map@r"] = float(precision.mean())
    assert 0.1 < expected["recall@1"] < 0.9
    found = retrieval.CONTESTANTS[name](TINY, embeddings, labels)
    assert "recall@1" in found
    assert found == pytest.approx({figure: expected[figure] for figure in found})


def test_each_is_taken_in_a_process_of_its_own():
    found = retrieval.in_turn(["ours"], TINY, 1)["ours"]
    assert found.seconds > 0 and found.cpu_seconds > 0 and found.megabytes > 10
    assert found.figures == retrieval.ours(TINY, *TINY.draw())


def test_a_difference_is_an_error():
    agreed = Found(1.0, 1.0, 100.0, {"recall@1": 0.5, "map@r": 0.25})
    near = replace(agreed, figures={"map@r": 0.25 + 0.5 * retrieval.EQUAL})
    retrieval.check_equal({"ours": agreed, "other": near})
    far = replace(agreed, figures={"map@r": 0.2502})
    message = "map@r is 0.250000 by 'ours', 0.250200 by 'other'"
    with pytest.raises(MetricOptError, match=message):
        retrieval.check_equal({"ours": agreed, "other": far})


def test_the_table(monkeypatch, capsys):
    asked = []

    def take(names, problem, repeats):
        asked.append((list(names), problem, repeats))
        seconds = 61.0 if problem.examples == retrieval.FULL else 2.0
        first = {"ours": Found(seconds, 1.5, 400.0, {"recall@1": 0.5})}
        return first | {name: Found(5.0, 4.5, 700.0, {}) for name in names[1:]}

    monkeypatch.setattr(retrieval, "in_turn", take)
    given = ["--examples", "300", "--size", "4", "--threads", "1", "--full"]
    assert retrieval.main(given) == 0
    everyone = list(retrieval.CONTESTANTS)
    assert asked == [
        (everyone, Problem(300, 4), 3),
        (["ours"], Problem(retrieval.FULL, 4), 1),
    ]
    printed = capsys.readouterr().out
    assert (
        "300 x 4: ours" in printed and "2.00 s (1.50 s of CPU), peak 400 MB" in printed
    )
    assert "5.00 s (4.50 s of CPU), peak 700 MB, 2.5 x ours" in printed
    assert "recall@1 0.5000" in printed
    (full,) = [line for line in printed.splitlines() if "60,502 x 4" in line]
    assert full.split()[-1] == "missed"

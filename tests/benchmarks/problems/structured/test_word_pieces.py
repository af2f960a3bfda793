"""Published vocabularies of BERT, and tier paper of reading that uses one."""

import hashlib
import json
from dataclasses import replace

import pytest
import torch

from benchmarks.data.reading.cmrc import CMRC
from benchmarks.data.reading.contract import Question
from benchmarks.data.reading.made_questions import MadeQuestions
from benchmarks.networks.reading.bert import MACBERT, BertSize, bert
from benchmarks.networks.reading.contract import READERS
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.structured import word_pieces
from benchmarks.problems.structured.texts import Texts
from benchmarks.problems.structured.tiers import Structured
from benchmarks.problems.structured.word_pieces import VocabularyFile, WordPieces
from metricopt.errors import ConfigError, DataError
from metricopt.structured.spans import text, unpacked

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def file_of(*pieces, end="\n"):
    return "".join(f"{piece}{end}" for piece in (*SPECIAL, *pieces)).encode()


def vocabulary(*pieces):
    return WordPieces.of_file(file_of(*pieces), "vocab.txt")


def test_every_character_has_a_number():
    known = vocabulary("甲", "n", "##y", "1", "##9", "。", "e")
    # Latin letters and digits go on a word; what is written in Chinese does not.
    assert known.encoded("甲NY") == [4, 5, 6]
    assert known.encoded("19甲19") == [7, 8, 4, 7, 8]
    assert known.encoded("甲甲。é乙 n") == [4, 4, 9, 10, 1, 1, 5]
    assert known.encoded("") == []
    # A symbol goes on a word, punctuation does not; an accent by itself is unknown.
    signs = vocabulary("2", "##2", "##℃", "-", "e", "##s")
    assert signs.encoded("2℃2-2") == [4, 6, 5, 7, 4]
    assert signs.encoded("e\u0301s") == [8, 1, 9]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_may_end_as_on_any_system(end):
    found = WordPieces.of_file(file_of("甲", end=end), "vocab.txt")
    assert found.numbers == {**{s: n for n, s in enumerate(SPECIAL)}, "甲": 4}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "vocab.txt must be text in UTF-8"),
        (b"", r"got 0 lines, 0 different ones, without \[UNK\], \[CLS\], \[SEP\]"),
        (file_of("a", "a"), "got 6 lines, 5 different ones, without none"),
        (b"a\n" + file_of("b"), r"\[PAD\] in the first"),
        (b"<html>", "got 1 lines"),
    ],
)
def test_what_is_no_vocabulary_is_refused(content, message):
    with pytest.raises(DataError, match=message):
        WordPieces.of_file(content, "vocab.txt")


def test_only_published_names_are_known():
    with pytest.raises(ConfigError, match="expected a vocabulary of macbert, got 'x'"):
        WordPieces.named("x")


def test_inputs_are_those_of_bert():
    known = vocabulary(*"甲是什么山。")
    question = Question("q", 0, "甲是山。", "甲是什么", ("山",))
    found = Texts([question], known, 16)
    ids, segments, matches = found.batch(slice(1))[0]
    assert ids.tolist() == [2, 4, 5, 6, 7, 3, 4, 5, 8, 9, 3, 0, 0, 0, 0, 0]
    assert segments.tolist() == [1] * 6 + [2] * 5 + [0] * 5
    assert matches.tolist() == [0] * 6 + [2, 2] + [0] * 8
    spans = unpacked(found.targets, 16)
    first, last = int(spans.first), int(spans.last)
    assert (first, text(spans.characters[0, first : last + 1])) == (8, "山")
    # The frame takes three places, so a long paragraph has that much less room.
    long = replace(question, context="甲是山。" * 9)
    ids = Texts([long], known, 16).batch(slice(1))[0, 0]
    assert ids[0] == 2 and ids[5] == 3 and ids[-1] == 3 and (ids > 0).all()


@pytest.fixture
def miniature(tmp_path, monkeypatch):
    """CMRC, MacBERT and its vocabulary, small, in files as the official ones are."""
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(CMRC, "expected", MadeQuestions.expected)
    folder = tmp_path / "data" / "cmrc2018"
    folder.mkdir(parents=True)
    reader, characters = MadeQuestions()._reader(folder), set()
    for part, name in CMRC.files.items():
        content = reader.read(f"{part}.json")
        (folder / name).write_bytes(content)
        characters |= set(json.dumps(json.loads(content), ensure_ascii=False))
    vocab = tmp_path / "vocab.txt"
    vocab.write_bytes(file_of(*sorted(characters)))
    count = len(SPECIAL) + len(characters)
    file = VocabularyFile("pieces.txt", digest_of(vocab), vocab.as_uri())
    monkeypatch.setattr(word_pieces, "PUBLISHED", {"macbert": file})

    weights = tmp_path / "pytorch_model.bin"
    size = BertSize(16, 1, 2)
    torch.save(as_transformers(bert(count, 64, size)), weights)
    own = replace(MACBERT, url=weights.as_uri(), sha256=digest_of(weights))

    def small(vocabulary, length):
        network = bert(vocabulary, 64, size)
        network.pretrained = own
        return network

    monkeypatch.setitem(READERS._units, "macbert-base", small)
    return count


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def as_transformers(network):
    """Return the state of a reader with the names that transformers would give it."""
    names = {
        "first": "embeddings.LayerNorm",
        "characters": "embeddings.word_embeddings",
        "places": "embeddings.position_embeddings",
        "segments": "embeddings.token_type_embeddings",
        "self_attn.out_proj": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "linear1": "intermediate.dense",
        "linear2": "output.dense",
        "norm2": "output.LayerNorm",
    }
    found = {}
    for name, tensor in network.body.state_dict().items():
        for own, theirs in names.items():
            name = name.replace(own, theirs)
        name = f"bert.{name.replace('layers.', 'encoder.layer.')}"
        if "in_proj_" in name:
            head, kind = name.split("self_attn.in_proj_")
            parts = zip(("query", "key", "value"), tensor.chunk(3), strict=True)
            for part, own in parts:
                found[f"{head}attention.self.{part}.{kind}"] = own.clone()
        else:
            found[name] = tensor
    return found


def test_tier_paper_trains_from_macbert(miniature):
    problem = Structured.at("spans", "paper").by("reloss")
    spec = make_pipeline(problem.pipeline(), 0).theta_spec
    assert spec.problem.vocabulary == "macbert" and spec.problem.size == (512, 21_128)
    assert spec.backbone.network == "macbert-base"
    small = replace(spec.problem, size=(48, miniature), observed=0.25)
    fitting = {"groups": 8, "group_size": 8, "epochs": 1, "held_out": 8}
    settings = spec.taught.method.settings
    settings = settings | {"recorded": 200, "fitting": settings["fitting"] | fitting}
    taught = replace(spec.taught, method=replace(spec.taught.method, settings=settings))
    spec = replace(spec, problem=small, backbone=replace(spec.backbone, taught=taught))
    with pytest.raises(DataError, match=r"pieces.txt is missing, and downloads"):
        spec.splits()
    spec.fetch_base()
    assert "[SEP]" in WordPieces.named("macbert").numbers
    begun, fresh = spec.begun().state_dict(), spec.fresh().state_dict()
    alike = [name for name in begun if torch.equal(begun[name], fresh[name])]
    # But for what is added, and what is all 0 or 1 in both.
    assert "ends.weight" in alike and "body.characters.weight" not in alike
    facts = spec.train().facts
    assert 0 <= facts["observe_rouge_l"] <= 1 and len(facts["weights"]) == 64

"""Every registered data set keeps the contract, on real data where it is at hand."""

import pytest
import torch

from benchmarks.data.contract import DATASETS
from benchmarks.data.files.variants import array_digest
from benchmarks.data.registry import find_source
from benchmarks.runs.paths import data_root
from metricopt.errors import ConfigError, DataError

ROOT = data_root()


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    """One new cache for all tests: parsing every data set once takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METRICOPT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(params=list(DATASETS))
def source(request):
    return find_source(request.param)


def present(source):
    return [each.variant for each in source.status(ROOT) if each.state != "missing"]


def test_names_and_official_variant(source):
    assert source.name in DATASETS
    assert source.variants[0] == "full"
    assert len(set(source.variants)) == len(source.variants)
    assert source.specs[0].downloadable
    assert source.specs[0].note == ""
    assert all(spec.note for spec in source.specs[1:])


def test_addresses_are_https(source):
    urls = [url for file in source.files for url in file.urls]
    assert all(url.startswith("https://") for url in urls)


def test_expectations_agree_with_each_other(source):
    for spec in source.specs:
        assert sum(spec.class_counts) == spec.shape[0]
        assert len(spec.class_counts) == len(source.classes)
        assert len(spec.digest) == (64 if spec.digest else 0)
        assert spec.train_rows is None or 0 < spec.train_rows < spec.shape[0]


def test_present_variants_load(source):
    variants = present(source)
    if not variants:
        pytest.skip(f"no copy of {source.name} at hand")
    for spec in variants:
        data = source.load(ROOT, variant=spec.name, offline=True)
        assert (data.name, data.variant) == (source.name, spec.name)
        assert data.inputs.dtype in (torch.float32, torch.uint8)
        assert data.targets.dtype == torch.int64
        assert tuple(data.inputs.shape) == spec.shape
        assert data.inputs.isfinite().all()
        counts = torch.bincount(data.targets, minlength=len(data.classes))
        assert tuple(counts.tolist()) == spec.class_counts
        assert data.digest == array_digest(data.inputs.numpy(), data.targets.numpy())


def test_second_load_equals_the_first_and_is_private(source):
    if not present(source):
        pytest.skip(f"no copy of {source.name} at hand")
    first = source.load(ROOT, offline=True)
    second = source.load(ROOT, offline=True)
    assert torch.equal(first.inputs, second.inputs)
    assert torch.equal(first.targets, second.targets)
    assert first.digest == second.digest
    second.inputs.zero_()
    assert torch.equal(source.load(ROOT, offline=True).inputs, first.inputs)


def test_unknown_variant(source):
    with pytest.raises(ConfigError, match=f"unknown variant 'huge' of {source.name}"):
        source.load(ROOT, variant="huge", offline=True)


def test_offline_without_files_names_the_command(source, tmp_path):
    if not source.files:
        assert source.load(tmp_path, offline=True).variant == "full"
        return
    with pytest.raises(DataError) as caught:
        source.load(tmp_path, offline=True)
    missing = " and ".join(file.stem for file in source.files)
    assert str(caught.value) == (
        f"{source.name} (full) needs {missing} in {tmp_path / source.name}; "
        f"run `./reproduce.sh data fetch {source.name}`"
    )


def test_unknown_data_set():
    with pytest.raises(ConfigError, match="unknown data set 'mnist'; known: a9a, "):
        find_source("mnist")

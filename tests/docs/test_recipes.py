"""The recipes for several machines: what they run, with a stand-in for the suite.

The stand-in notes its arguments, which the real command line then has to understand.
"""

import os
import shlex
import subprocess

import pytest
import yaml

from benchmarks.cli.parser import parse
from tests.source_tree import ROOT

RECIPES = ROOT / "docs" / "recipes"
NOTES = """#!/bin/bash
line=$(printf '%q ' "$@")
echo "$line" >>"$NOTES"  # at once: hosts note theirs at the same time
while (($#)); do
    if [[ $1 == --store ]]; then mkdir -p "$2" && touch "$2/record"; fi
    shift
done
"""
SSH = '#!/bin/bash\n[[ $1 == host* ]] && shift && exec bash -c "$*"\n'


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder with stand-ins, in which recipes are run."""
    for name, text in (("reproduce.sh", NOTES), ("ssh", SSH)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for name in ("EXPERIMENT", "TIER", "SHARDS", "SLURM_SUBMIT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def noted(checkout):
    """Return the commands that were run, as the real command line reads them."""
    lines = (checkout / "notes").read_text().splitlines()
    return [parse(shlex.split(line)) for line in lines]


def run(*command, **variables):
    subprocess.run(command, check=True, env=os.environ | variables)


def test_tasks_of_a_slurm_array_make_all_parts(checkout):
    recipe = RECIPES / "slurm.sbatch"
    for number in (1, 2, 3):
        run(
            *("bash", str(recipe)),
            SLURM_ARRAY_TASK_ID=str(number),
            SLURM_ARRAY_TASK_COUNT="3",
            SLURM_CPUS_PER_TASK="4",
            TIER="smoke",
        )
    found = noted(checkout)
    assert [each.shard for each in found] == [(1, 3), (2, 3), (3, 3)]
    assert {(e.verb, e.tier, e.workers) for e in found} == {("table3", "smoke", 4)}
    assert len({each.store for each in found}) == 3
    head = recipe.read_text().splitlines()[:6]
    assert head[0] == "#!/bin/bash" and head[1] == "#SBATCH --array=1-8"


def test_hosts_make_all_parts_and_their_records_come_back(checkout):
    run("bash", str(RECIPES / "ssh.sh"), "table3", "smoke", "host1", "host2")
    *parts, report = noted(checkout)
    assert sorted(each.shard for each in parts) == [(1, 2), (2, 2)]
    assert (report.verb, report.experiments) == ("report", ["table3"])
    gathered = [checkout / folder / "record" for folder in report.merge]
    assert len(gathered) == 2 and all(path.is_file() for path in gathered)


def test_a_host_that_fails_stops_before_the_report(checkout):
    (checkout / "ssh").write_text("#!/bin/bash\nexit 3\n")
    with pytest.raises(subprocess.CalledProcessError):
        run("bash", str(RECIPES / "ssh.sh"), "table3", "smoke", "host1")
    assert not (checkout / "notes").exists()


def test_machines_of_a_cloud_make_all_parts(checkout):
    recipe = yaml.safe_load((RECIPES / "skypilot.yaml").read_text())
    script = recipe["run"].replace("/shards/", "shards/")
    for rank in range(recipe["num_nodes"]):
        variables = {"SKYPILOT_NODE_RANK": str(rank), "SKYPILOT_NUM_NODES": "8"}
        run("bash", "-euc", script, **variables, **recipe["envs"])
    found = noted(checkout)
    assert [each.shard for each in found] == [(n, 8) for n in range(1, 9)]
    assert all((each.verb, each.tier) == ("table3", "paper") for each in found)
    assert list(recipe["file_mounts"]) == ["/shards"]

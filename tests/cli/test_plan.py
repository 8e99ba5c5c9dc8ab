"""``minga plan``: tables, JSON, files and curves for machines that exist and for some that do not."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command_line import SMALL, in_process, nothing_written
from minga.cli.case import find_source, read_case
from minga.errors import CaseError
from minga.models.waves.synthetic import Synthetic
from minga.plan.plan import Plan
from minga.plan.work.recorded import planned_work
from minga.space.box import Box
from mpi_launch import run_ranks
from thinned import thinned

MACHINES = Path(__file__).parents[2] / "src/minga/examples/machines"
CLUSTER = MACHINES / "cluster-4096x64.json"

UNEQUAL = {
    "format": "minga machine",
    "version": 1,
    "name": "three",
    "nodes": [
        {"name": "fast", "cores": 1, "speed": "20 Mcells/s", "memory": "1 GB"},
        {"name": "slow", "count": 2, "cores": 1, "speed": "5 Mcells/s", "memory": "1 GB"},
    ],
    "links": {"inter-node": {"latency": "10 us", "bandwidth": "1 Gb/s"}},
}


@pytest.fixture(autouse=True)
def machine(in_tmp_path: Path) -> Path:
    """A machine and a small case in the working directory."""
    (in_tmp_path / "small.toml").write_text(SMALL.replace("ranks = 1\n", ""))
    path = in_tmp_path / "three.json"
    path.write_text(json.dumps(UNEQUAL))
    return path


def planned(*words: object) -> dict[str, Any]:
    said = in_process("plan", *words, "--json")
    assert said.status == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


@pytest.mark.slow
def test_more_ranks_than_cores_are_told(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the machine in the file, or of this one: what its affinity and quotas leave."""
    words = ["laplace", "--set", "grid.shape=[60, 60]"]
    assert "preflight" not in planned(*words, "--machine", machine, "-n", 3)
    told = planned(*words, "--machine", machine, "-n", 4)["preflight"]["cores"]
    assert told == "4 workers (ranks x threads) share 3 physical cores; the run will be slower than with one each"
    assert told in in_process("plan", *words, "--machine", machine, "-n", 4).out
    monkeypatch.setattr("minga.cli.plan.available_cores", lambda: ((0,),))
    told = planned(*words, "-n", 2)["preflight"]["cores"]
    assert told == "2 workers (ranks x threads) share 1 physical core; the run will be slower than with one each"


def test_the_plan_of_a_machine_that_is_not_here(machine: Path) -> None:
    said = in_process("plan", "laplace", "--set", "grid.shape=[600, 600]", "--machine", machine)
    assert said.status == 0, said.err
    for text in ("laplace on three", "3 ranks", "equal parts", "fast", "slow-1", "66.7 %", "halo depth", "memory"):
        assert text in said.out, text
    data = planned("laplace", "--set", "grid.shape=[600, 600]", "--machine", machine, "-o", "plan.json")
    plan = Plan.from_dict(json.loads(Path("plan.json").read_text()))
    assert plan.prediction.seconds == data["seconds"] < 0.6 * data["naive"]
    cells = plan.layout.cells()
    assert cells[0] == pytest.approx(240_000, rel=0.01)
    assert data["files"] == ["plan.json"]
    assert not list(Path().glob("runs"))


@pytest.mark.slow
def test_this_machine_is_timed() -> None:
    data = planned("small.toml", "-n", "2")
    assert data["ranks"] == 2
    assert data["source"].startswith("this machine, timed")
    assert 0 < data["seconds"] < 1
    assert planned("small.toml")["ranks"] == 1  # so few cells are not worth more


@pytest.mark.slow  # tests/cli/test_ranks.py has a run whose ranks are timed
@pytest.mark.mpi
def test_the_ranks_of_a_job_are_timed() -> None:
    job = run_ranks(2, "minga.cli.main", "plan", "small.toml", "--json", env={"MPIR_CVAR_NUM_CLIQUES": "2"}).check()
    data = json.loads(job.out[0])
    assert data["source"] == "the 2 ranks of this job, timed"
    assert data["choices"][1]["naive"] == "2 of 2"  # nodes
    assert job.out[1] == ""


def test_what_a_case_says_is_kept(machine: Path) -> None:
    words = ["--set", 'run.layout="slabs:1"', "--set", "run.halo_depth=2", "--set", "run.overlap=false"]
    data = planned("laplace", "--machine", machine, *words)
    assert (data["word"], data["halo_depth"], data["overlap"]) == ("slabs:1", 2, False)


@pytest.mark.slow
@pytest.mark.parametrize("form", thinned(["png", "svg"], "svg"))
def test_scaling_is_drawn(machine: Path, form: str) -> None:
    said = in_process(
        "plan", "laplace", "--set", "grid.shape=[600, 600]", "--machine", machine, "--scaling", "--plot", f"s.{form}"
    )
    assert said.status == 0, said.err
    assert "Strong scaling" in said.out
    assert "Weak scaling" in said.out
    start = Path(f"s.{form}").read_bytes()[:8]
    assert start == b"\x89PNG\r\n\x1a\n" if form == "png" else start.startswith(b"<?xml")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--machine", "none.json"], ["none.json"]),
        (["--plot", "curve.pdf"], ["--plot", ".png or .svg"]),
        (["--machine", "three.json", "--set", 'run.layout="stripes"'], ["run.layout", "not a layout"]),
        (["--machine", "three.json", "-o", "nowhere/plan.json"], ["nowhere/plan.json"]),
        (
            ["--machine", "three.json", "--set", "grid.shape=[40000, 40000]"],
            ["need 23.8 GiB", "together may fill", "is too small", "at most about"],
        ),
    ],
)
def test_mistakes(words: list[str], expected: list[str]) -> None:
    with nothing_written(Path()):
        said = in_process("plan", "laplace", *words)
    assert said.status in (1, 2)
    assert "Traceback" not in said.err
    for text in expected:
        assert text in said.err, said.err


_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, resource.RLIM_INFINITY))
from minga.cli.main import main
sys.argv = ["minga", *sys.argv[1:]]
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        ["laplace", "--set", "grid.shape=[65536, 65536]"],
        ["life-3d", "--set", "grid.shape=[8192, 8192, 8192]"],
    ],
)
def test_a_quarter_of_a_million_cores(case: list[str]) -> None:
    """4096 nodes of 64 cores: within 30 s of one core and 2 GB."""
    words = [sys.executable, "-c", _LIMITED, "plan", *case, "--machine", str(CLUSTER), "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    data = json.loads(done.stdout)
    assert data["ranks"] == 262144
    assert data["prediction"]["compute"]["most"] < 1.01 * data["prediction"]["compute"]["mean"]
    assert int(done.stderr.split()[-1]) < 2e9
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 30


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["waves", "--set", "grid.shape=[2048, 2048, 2048]", "-n", "262144"], 0),
        (["fingers", "--set", "grid.shape=[2048, 2048, 2048]"], 0),
        (["zn-cell-cathode-above", "--set", "grid.shape=[65536, 65536]"], 0),  # with noise
        (["growth", "--set", "grid.shape=[1048576, 1048576]"], 2),
        (["ising", "--set", "grid.shape=[1048576, 1048576]"], 0),
        (["traffic", "--set", "grid.shape=[1000000000000]"], 2),
        (["brusselator", "--set", "grid.shape=[262144, 262144]"], 0),
        (["planar", "--set", 'photodiode.mesh.across={first="1e-3 nm", growth=1.1, cap="1e-3 nm"}'], 2),
        (["rtm", "--set", "grid.shape=[8192, 8192, 8192]"], 2),
    ],
)
def test_any_model_of_any_size_is_planned_or_refused_in_2_gb(words: list[str], status: int) -> None:
    code = [sys.executable, "-c", _LIMITED, "plan", *words, "--machine", str(CLUSTER), "--json"]
    done = subprocess.run([*code, *([] if "-n" in words else ["-n", "4096"])], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert (json.loads(done.stdout)["seconds"] > 0) if status == 0 else done.stderr.startswith("minga: ")


@pytest.mark.slow
def test_a_large_cell_is_planned_on_a_coarser_grid() -> None:
    case = read_case(find_source("pnp-1d"), ["grid.shape=[16777217]"], here=False, planning=True)
    assert case.model.grid.size <= 1 << 18
    assert case.model.stands_for == (16777217,)
    work = planned_work(case.model)
    assert work.domain.shape == (16777217,)
    assert dict(case.model.notes)["cells"].startswith("planned and described on 131073 cells")
    small = read_case(find_source("pnp-1d"), ["grid.shape=[4096]"], here=False, planning=True)
    assert small.model.stands_for is None
    assert work.kernel == planned_work(small.model).kernel


def test_a_case_that_does_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 7.28 TiB")

    monkeypatch.setattr("minga.case.load.load_model", full)
    with pytest.raises(CaseError, match="do not fit into memory: Unable to allocate"):
        read_case("life", here=False, planning=True)


def test_the_busiest_uplinks_are_told(machine: Path) -> None:
    said = in_process("plan", "laplace", "--set", "grid.shape=[600, 600]", "--machine", machine)
    data = planned("laplace", "--set", "grid.shape=[600, 600]", "--machine", machine)
    assert list(data["uplinks"]) == ["node"]
    assert "busiest uplinks, a step: node" in said.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-n", "5000000"], "at most 1048576"),
        (["-n", "100000"], "are too many for"),
        (["-n", "5000000", "--machine", "two-ages"], "at most 1048576"),
        (["-n", "353", "--machine", "two-ages"], "at most 352"),
        (["-n", "5000000", "--set", 'run.layout="slabs"'], "at most 1048576"),
        (["-n", "2", "--set", 'run.layout="blocks:100000000"'], "more than 2097152"),
        (["--machine", "cluster-4096x64", "-n", "4096", "--set", 'run.layout="blocks:1000"'], "more than 2097152"),
    ],
)
def test_what_would_take_too_long_to_plan_is_refused_with_the_limit(words: list[str], said: str) -> None:
    found = in_process("plan", "laplace", *words)
    assert found.status == 2
    assert said in found.err, found.err


def test_of_a_large_medium_only_a_part_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """What planning costs does not grow with the grid: here eight thousand million cells."""
    seen: list[int] = []
    values = Synthetic.values

    def counted(self: Synthetic, box: Box) -> dict[str, Any]:
        seen.append(box.size)
        return values(self, box)

    monkeypatch.setattr(Synthetic, "values", counted)
    monkeypatch.setattr("minga.models.waves.medium._BLOCKS", 3)
    case = read_case(find_source("waves"), ["grid.shape=[2048, 2048, 2048]"], here=False, planning=True)
    assert sum(seen) == 27 * 16**3
    assert "110,592 of 8,589,934,592 cells were inspected" in dict(case.model.notes)["medium"]
    seen.clear()
    whole = read_case(find_source("waves"), [])
    assert sum(seen) == 56 * 32 * 84
    assert "medium" not in dict(whole.model.notes)

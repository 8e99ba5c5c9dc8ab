"""Runs on real MPI ranks: launched by minga, or started by a person inside a job of theirs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import SMALL, as_person, in_process, nothing_written
from minga.engine.pin import available_cores, share
from mpi_launch import run_ranks
from thinned import thinned

pytestmark = pytest.mark.mpi


@pytest.fixture(autouse=True)
def case(in_tmp_path: Path) -> Path:
    """A correct small case, ``small.toml``, in the working directory."""
    path = in_tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def on_their_cores(run: str) -> bool:
    """Whether each of two ranks kept to a core of its own; there is nothing to keep to with fewer cores."""
    cores = available_cores()
    entries = json.loads(Path(run, "ledger.json").read_text())["ranks"]
    own = [[cpu for core in share(cores, rank, 2, 1) for cpu in core] for rank in range(2)]
    return len(cores) < 2 or [entry["processor"] for entry in entries] == own


@pytest.mark.parametrize("ranks", thinned([2, 3, 4, 5], 3))
def test_any_number_of_ranks_gives_the_same_bits(ranks: int) -> None:
    alone = json.loads(in_process("run", "small.toml", "--json").out)
    said = as_person("run", "small.toml", "-n", ranks, "--json")
    assert said.status == 0, said
    result = json.loads(said.out)
    assert (alone["ranks"], result["ranks"]) == (1, ranks)
    assert (result["digest"], result["observables"]) == (alone["digest"], alone["observables"])
    ledger = json.loads(Path(result["run"], "ledger.json").read_text())["ranks"]
    assert [entry["rank"] for entry in ledger] == list(range(ranks))


@pytest.mark.slow  # tests/engine and tests/models have all of this on ranks of one process
@pytest.mark.parametrize(
    "override",
    [
        "run = {steps = 10, layout = 'blocks:3', halo_depth = 3, overlap = false, balance = 3}",
        "run = {steps = 10, layout = 'slabs:1', threads = 2, poll = 'off'}",
    ],
)
def test_how_it_is_run_changes_nothing(override: str) -> None:
    alone = json.loads(in_process("run", "small.toml", "--json").out)
    key, _, value = override.partition(" = ")
    said = as_person("run", "small.toml", "-n", 2, "--set", f"{key}={value}", "--json")
    assert said.status == 0, said
    result = json.loads(said.out)
    assert result["digest"] == alone["digest"]
    assert "threads" in override or on_their_cores(result["run"])


@pytest.mark.slow
def test_a_run_that_takes_a_while_is_planned_and_the_plan_is_told() -> None:
    """The guess of how long it takes is by all steps; it ends early."""
    words = ["--set", "run.steps=100000000", "--set", "stop.when=step >= 20", "--set", "output.report=true"]
    alone = json.loads(in_process("run", "small.toml", "--json", *words).out)
    said = as_person("run", "small.toml", "-n", 2, "--json", *words)
    assert said.status == 0, said
    result = json.loads(said.out)
    assert (result["digest"], result["steps"]) == (alone["digest"], 20)
    assert "minga: plan: " in said.err
    assert "a step predicted" in said.err
    run = Path(result["run"])
    plan = json.loads((run / "plan.json").read_text())
    assert plan["source"] == "measured by the ranks"
    assert plan["plan"]["prediction"]["compute"][0] > 0
    assert [line["cells"] for line in plan["ranks"]] == [
        sum((b["hi"][0] - b["lo"][0]) * (b["hi"][1] - b["lo"][1]) for b in result["layout"] if b["rank"] == rank)
        for rank in range(2)
    ]
    account = json.loads((run / "ledger.json").read_text())["account"]
    assert account["predicted"]["error"] == pytest.approx(
        account["predicted"]["seconds"] / account["seconds"] - 1, abs=1e-9
    )
    page = (run / "report.html").read_text()
    assert "What imbalance and network cost" in page
    assert "A step was predicted to take" in page


@pytest.mark.slow  # tests/output has the comparison of versions
def test_inside_a_job_a_host_with_another_version_ends_it(in_tmp_path: Path) -> None:
    Path("odd.py").write_text("""\
import importlib.metadata, os, sys
if os.environ["PMI_RANK"] == "1":
    true = importlib.metadata.version
    importlib.metadata.version = lambda name: "0.0.1" if name == "minga" else true(name)
from minga.cli.main import main
sys.argv = ["minga", "run", "small.toml"]
main()
""")
    with nothing_written(in_tmp_path):
        job = run_ranks(2, Path("odd.py"), cwd=in_tmp_path)
    assert job.status == 1, job.report()
    assert "all ranks must have the same minga: found" in job.err[0], job.report()
    assert "0.0.1 on " in job.err[0]
    assert "Traceback" not in job.report()


@pytest.mark.slow
def test_inside_a_job_it_runs_in_place(in_tmp_path: Path) -> None:
    alone = json.loads(in_process("run", "small.toml", "--json").out)
    job = run_ranks(2, "minga.cli.main", "run", "small.toml", "--json", cwd=in_tmp_path).check()
    result = json.loads(job.out[0])
    assert job.out[1] == ""
    assert result["ranks"] == 2
    assert result["digest"] == alone["digest"]
    assert Path(result["run"], "result.json").exists()
    assert on_their_cores(result["run"])
    assert len(list(Path("runs").iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-n", "3"), "started 2 ranks, but -n asks for 3"),
        pytest.param(("--set", "run.stepz=1"), "unknown key 'run.stepz'", marks=pytest.mark.slow),
    ],
)
def test_inside_a_job_mistakes_are_told_once(in_tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    with nothing_written(in_tmp_path):
        job = run_ranks(2, "minga.cli.main", "run", "small.toml", *words, cwd=in_tmp_path)
    assert job.status == 2, job.report()
    assert text in job.err[0], job.report()
    assert job.err[1] == "", job.report()
    assert "Traceback" not in job.report()


@pytest.mark.slow
def test_inside_a_job_a_directory_that_is_taken_ends_it(in_tmp_path: Path) -> None:
    with nothing_written(in_tmp_path):
        job = run_ranks(2, "minga.cli.main", "run", "small.toml", "--out", "small.toml", cwd=in_tmp_path)
    assert job.status == 2, job.report()
    assert "cannot write" in job.err[0], job.report()
    assert "Traceback" not in job.report()


@pytest.mark.slow
@pytest.mark.parametrize("rank", thinned(["0", "1"], "0"))
def test_a_launcher_that_does_not_match_is_named_once(in_tmp_path: Path, rank: str) -> None:
    """Copies that Open MPI started while mpi4py uses MPICH: each is alone."""
    with nothing_written(in_tmp_path):
        said = as_person("run", "small.toml", OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE="2")
    assert said.status == 1
    assert said.out == ""
    lines = said.err.splitlines()
    if rank == "1":
        assert lines == []
    else:
        assert len(lines) == 2
        assert "Open MPI's mpirun started 2 processes, but the MPI library of mpi4py uses MPICH" in lines[0]


@pytest.mark.slow
def test_a_launcher_that_does_not_match_is_named_when_minga_launches(in_tmp_path: Path) -> None:
    """A launcher that starts two copies which do not know of each other."""
    fake = in_tmp_path / "mpiexec"
    fake.write_text("#!/bin/sh\nshift 2\n\"$@\" & \"$@\"; s=$?; wait; exit $s\n")  # fmt: skip
    fake.chmod(0o755)
    said = as_person("run", "small.toml", "-n", 2, MINGA_MPIEXEC=str(fake), PATH=f"{in_tmp_path}:/usr/bin:/bin")
    assert said.status == 1
    assert "started 2 processes, but the MPI library of mpi4py sees 1 rank" in said.err
    assert "Traceback" not in said.err
    assert not Path("runs").exists()


def test_a_failing_rank_ends_all_with_its_traceback() -> None:
    Path("broken.py").write_text("""\
import time
from pathlib import Path
import minga as mg
run = {"steps": 1000000}
output = {"every": 2, "pictures": 0}

def work(engine):
    work.calls += 1
    if engine.comm.rank == 1 and work.calls == 9:
        while not Path("runs/broken/fields.zarr/u/c.1.0.0").exists():  # the frame before is complete
            time.sleep(0.05)
        raise ValueError("rank one is unhappy")
    engine.comm.barrier()

work.calls = 0

def model():
    grid = mg.Grid((8, 8))
    u = mg.Field("u", grid)
    step = mg.Program("step")
    step.call(work, reads=[u], writes=[u])
    return mg.Model(name="broken", grid=grid, fields=(u,), step=step, initial={"u": 1.0})
""")
    said = as_person("run", "broken.py", "-n", 2, "--json")
    assert said.status == 1
    assert said.out == ""
    assert "rank 1 of 2 failed" in said.err
    assert "ValueError: rank one is unhappy" in said.err
    assert "broken.py" in said.err
    assert said.err.count("Traceback") == 1
    assert "results up to then are in runs/broken" in said.err
    assert Path("runs/broken/fields.zarr/u/c.0.0.0").exists()


@pytest.mark.slow
def test_what_ranks_print_does_not_meet_the_result() -> None:
    Path("talk.py").write_text("""\
import os
import minga as mg
run = {"steps": 2}

def model():
    grid = mg.Grid((8, 8))
    u = mg.Field("u", grid)
    step = mg.Program("step")
    step.call(lambda engine: (print("hello"), os.write(1, b"raw\\n")), reads=[u], writes=[u])
    return mg.Model(name="talk", grid=grid, fields=(u,), step=step, initial={"u": 1.0})
""")
    said = as_person("run", "talk.py", "-n", 2, "--json")
    assert said.status == 0, said
    assert json.loads(said.out)["ranks"] == 2
    assert said.err.count("hello") == 4
    assert said.err.count("raw") == 4


@pytest.mark.slow  # tests/case/test_examples.py has all of them on three ranks of one process
@pytest.mark.parametrize("name", ["laplace", "life"])
def test_the_examples_run_on_ranks(name: str) -> None:
    """An example with a rule and one of Python, shortened."""
    said = as_person("run", name, "--set", "run.steps=20", "--set", "output.every=10", "-n", 2)
    assert said.status == 0, said
    assert "2 ranks" in said.out
    assert len(list(Path("runs", name, "pictures").iterdir())) == 3

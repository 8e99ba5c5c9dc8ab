"""Runs in jobs of a real Slurm: all nodes of an allocation, time limits, requeues, cancellations, chains of jobs."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import as_person, command
from minga.lab.processes import inside
from slurm_nodes import Slurm, slurm_nodes

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(900)]

SLOW = """\
import os
import time

import numpy as np

import minga as mg

run = {"steps": 1200}
output = {"every": 400, "pictures": 0, "report": False}


@mg.kernel
def relax(u, new):
    new[0, 0] = 0.24 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]) + 0.01 * u[0, 0] * u[0, 0]


def model(shape=(40, 64)):
    grid = mg.Grid(shape)
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.5))
    step = mg.Program("step")
    step.apply(relax, u, u.next)
    step.call(lambda engine: time.sleep(float(os.environ.get("PACE", "0"))), reads=[u])
    step.rotate(u)
    y, x = np.indices(shape)
    return mg.Model("slow", grid, (u,), step, initial={"u": np.sin(0.1 * x) + y % 7}, output=("u",))
"""
"""A case whose steps take as long as the environment says, so that it computes little and takes long."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, which sockets need, and the case."""
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:
        (Path(name) / "slow.py").write_text(SLOW)
        yield Path(name)


@pytest.fixture
def slurm(folder: Path, rights: dict[str, Any]) -> Iterator[Slurm]:
    """A Slurm on the nodes ant and bee, with two processors each; nothing of it is left afterwards."""
    with slurm_nodes(("ant", "bee"), folder, rights, cpus=2) as slurm:
        yield slurm
        state = slurm.cluster.state
    assert not any(inside(state).values())
    assert not [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]


@pytest.fixture
def whole(folder: Path) -> dict[str, Any]:
    """The result of the case without interruption."""
    return result_of(as_person("run", folder / "slow.py", "-n", 1, "--out", folder / "whole", "--json").out)


def result_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def read(run: Path, name: str = "result.json") -> dict[str, Any]:
    return result_of((run / name).read_text())


def minga(*words: object) -> str:
    """The line of a script that becomes a command of minga."""
    return shlex.join(["exec", *command(*words)]) + "\n"


def wait_for_step(slurm: Slurm, run: Path, least: int = 1) -> None:
    """Wait until a run has done some steps."""

    def done() -> bool:
        try:
            return bool(read(run, "progress.json")["step"] >= least)
        except (OSError, ValueError):
            return False

    slurm.until(done, 60, f"{run} has not reached step {least}")


@pytest.mark.parametrize(
    ("options", "hosts"),
    [(["--ntasks-per-node=1"], ["ant", "bee"]), (["--exclusive"], ["ant", "ant", "bee", "bee"])],
    ids=["tasks", "processors"],
)
def test_a_plain_run_uses_all_nodes_of_a_job(
    slurm: Slurm, folder: Path, whole: dict[str, Any], options: list[str], hosts: list[str]
) -> None:
    run, log = folder / "run", folder / "log"
    words = ["run", folder / "slow.py", "--out", run, "--set", "grid.shape=[160, 128]"]
    job = slurm.batch(minga(*words), "-N2", *options, f"--output={log}")
    assert slurm.wait(job) == "COMPLETED", log.read_text()
    assert [rank["host"] for rank in read(run, "ledger.json")["ranks"]] == hosts
    alone = as_person(*words[:2], "-n", 1, "--out", folder / "alone", *words[4:], "--json")
    assert read(run)["digest"] == result_of(alone.out)["digest"]


def test_processes_of_srun_that_do_not_find_each_other(slurm: Slurm, folder: Path) -> None:
    run, log = folder / "run", folder / "log"
    line = minga("run", folder / "slow.py", "--out", run).removeprefix("exec ")
    job = slurm.batch(f"srun --mpi=none {line}", "-N2", "--ntasks-per-node=1", f"--output={log}")
    assert slurm.wait(job) == "FAILED"
    lines = [line for line in log.read_text().splitlines() if not line.startswith(("srun:", "slurmstepd"))]
    fault = "srun started 2 processes, but the MPI library of mpi4py sees 1 rank: the processes do not find each other"
    remedy = "write `srun --mpi=pmi2 minga run ...`, or mpiexec in place of srun"
    assert [line.strip() for line in lines] == [f"minga: {fault}", f"fix: {remedy}"]
    assert not run.exists()


def test_a_chain_of_jobs_computes_the_same(
    slurm: Slurm, folder: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each job has a minute, and the case takes longer."""
    monkeypatch.setenv("PACE", "0.06")
    run = folder / "run of many"
    said = slurm.minga("submit", folder / "slow.py", "--nodes", 2, "--time", "1 min", "--out", run, "--json")
    assert said.returncode == 0, said.stderr
    job = result_of(said.stdout)["job"]
    slurm.until(lambda: (run / "result.json").is_file() and read(run)["steps"] == 1200, 500, "the run is not complete")
    assert slurm.wait(job) == "COMPLETED", slurm.logs()
    result, jobs = read(run), read(run, "jobs.json")["jobs"]
    assert result["digest"] == whole["digest"]
    assert result["ranks"] == 2
    assert [entry["job"] for entry in jobs] == [job] * len(jobs)
    assert [entry["then"] for entry in jobs] == ["next"] * (len(jobs) - 1) + ["complete"]
    assert len(jobs) > 1
    assert [entry["first"] for entry in jobs[1:]] == [entry["last"] for entry in jobs[:-1]]
    assert read(run, "progress.json")["state"] == "finished"


def test_another_job_follows_where_requeuing_is_forbidden(
    slurm: Slurm, folder: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run itself knows when its time is up."""
    monkeypatch.setenv("PACE", "0.02")
    run = folder / "run"
    words = ["-N", 2, "--time", "1h", "--out", run, "--json", "--set", 'run.wall_time="20 s"']
    job = result_of(slurm.minga("submit", folder / "slow.py", *words).stdout)["job"]
    slurm.told("scontrol", "update", f"JobId={job}", "Requeue=0")
    assert slurm.wait(job) == "COMPLETED", (run / "job.log").read_text()
    slurm.until(lambda: read(run, "progress.json")["state"] == "finished", 200, "the run is not complete")
    jobs = read(run, "jobs.json")["jobs"]
    assert (jobs[0]["job"], jobs[0]["status"], jobs[0]["then"]) == (job, 75, "next")
    assert jobs[1]["job"] != job
    assert (run / "job.id").read_text().strip() == jobs[-1]["job"]
    assert read(run)["digest"] == whole["digest"]


def test_a_requeued_job_continues_its_run(
    slurm: Slurm, folder: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACE", "0.01")
    run = folder / "run"
    said = slurm.minga("submit", folder / "slow.py", "-N", 2, "--time", "1h", "--out", run, "--json")
    job = result_of(said.stdout)["job"]
    wait_for_step(slurm, run)
    slurm.told("scontrol", "requeue", job)
    slurm.wait(job, "PENDING")
    assert read(run, "progress.json")["state"] == "stopped"
    assert slurm.wait(job) == "COMPLETED", (run / "job.log").read_text()
    first, second = read(run, "jobs.json")["jobs"]
    assert (first["then"], second["then"]) == ("ended", "complete")
    assert second["first"] == first["last"] > 0
    assert read(run)["digest"] == whole["digest"]


def test_a_job_goes_on_after_a_node_has_failed(
    slurm: Slurm, folder: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm kills the job at once, and starts it again without being asked once the node is back."""
    monkeypatch.setenv("PACE", "0.01")
    run = folder / "run"
    words = ["-N", 2, "--time", "1h", "--out", run, "--json", "--set", "checkpoint.every=50"]
    job = result_of(slurm.minga("submit", folder / "slow.py", *words).stdout)["job"]
    wait_for_step(slurm, run, 100)
    slurm.told("scontrol", "update", "NodeName=bee", "State=DOWN", "Reason=test")
    slurm.wait(job, "PENDING")
    assert slurm.wait(job) == "COMPLETED", (run / "job.log").read_text()
    first, second = read(run, "jobs.json")["jobs"]
    assert first["then"] in ("", "ended")  # it may have had the time to write a last checkpoint
    assert (second["then"], second["last"]) == ("complete", 1200)
    assert second["first"] >= 50
    assert read(run)["digest"] == whole["digest"]


def test_a_cancelled_job_ends_with_a_checkpoint(
    slurm: Slurm, folder: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACE", "0.05")
    run = folder / "run"
    said = slurm.minga("submit", folder / "slow.py", "-N", 2, "--time", "1h", "--out", run, "--json")
    job = result_of(said.stdout)["job"]
    wait_for_step(slurm, run)
    again = slurm.minga("submit", run, "--resume", "--time", "1h")
    assert again.returncode == 2
    assert f"job {job} of the run in {run} is running; nothing is submitted" in again.stderr
    slurm.told("scancel", job)
    assert slurm.wait(job) == "CANCELLED"
    slurm.until(lambda: read(run, "progress.json")["state"] == "stopped", 30, "the run has not stopped")
    assert (run / "checkpoints" / "a" / "checkpoint.json").is_file()
    assert "watchdog" not in (run / "job.log").read_text()  # it gets the signal, too, and goes on to watch
    monkeypatch.delenv("PACE")
    said = slurm.minga("submit", run, "--resume", "-N", 1, "--time", "1h", "--json")
    assert slurm.wait(result_of(said.stdout)["job"]) == "COMPLETED", (run / "job.log").read_text()
    assert read(run)["digest"] == whole["digest"]


def test_a_step_has_time_to_end_in_a_cancelled_job(slurm: Slurm, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the limit of the watchdog, which gets Slurm's signal as well, and must not take the run for lost."""
    monkeypatch.setenv("PACE", "6")
    run, log = folder / "run", folder / "log"
    words = ["run", folder / "slow.py", "--out", run, "--set", "run.watch=3 s"]
    job = slurm.batch(minga(*words), "-N2", f"--output={log}")
    wait_for_step(slurm, run)
    slurm.told("scancel", job)
    assert slurm.wait(job) == "CANCELLED"
    slurm.until(lambda: read(run, "progress.json")["state"] in ("stopped", "lost"), 40, "the run has not ended")
    assert read(run, "progress.json")["state"] == "stopped", log.read_text()
    assert list((run / "checkpoints").glob("*/checkpoint.json")), log.read_text()


def test_a_time_limit_ends_a_plain_run_with_a_checkpoint(
    slurm: Slurm, folder: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACE", "0.5")
    run = folder / "run"
    job = slurm.batch(minga("run", folder / "slow.py", "--out", run), "-N2", "--time=1", f"--output={folder / 'log'}")
    assert slurm.wait(job, limit=200) == "TIMEOUT"
    slurm.until(lambda: read(run, "progress.json")["state"] == "stopped", 30, "the run has not stopped")
    monkeypatch.delenv("PACE")
    assert result_of(as_person("run", "--resume", run, "--json").out)["digest"] == whole["digest"]


def test_a_chain_without_progress_is_given_up(slurm: Slurm, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step takes longer than a job."""
    monkeypatch.setenv("PACE", "500")
    run = folder / "run"
    words = ["--time", "2 min", "--margin", "100 s", "--out", run, "--json"]
    said = slurm.minga("submit", folder / "slow.py", "-N", 2, *words)
    assert slurm.wait(result_of(said.stdout)["job"], limit=200) == "FAILED"
    assert "no checkpoint was written within this job, so another one would be in vain" in (run / "job.log").read_text()
    assert read(run, "jobs.json")["jobs"][0]["then"] == "stuck"
    assert read(run, "progress.json")["state"] == "failed"

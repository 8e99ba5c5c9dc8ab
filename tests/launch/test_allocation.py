"""What batch systems give to a job, and how a run uses all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import SMALL, in_process
from minga.cli.case import read_case
from minga.cli.start import ranks_here
from minga.errors import LaunchError
from minga.launch.allocation import Allocation, allocation, start_on
from minga.launch.launcher import check_world, surrounding_job
from minga.output.directory import RunDirectory

SBATCH = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_PROCID": "0",
          "SLURM_TASKS_PER_NODE": "1(x2)"}  # fmt: skip
STEP = SBATCH | {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0"}


def test_a_batch_script_of_slurm_is_no_rank() -> None:
    assert surrounding_job(SBATCH) is None
    job = surrounding_job(STEP)
    assert job is not None
    assert (job.rank, job.size, job.launcher) == (0, 2, "srun")


def test_nodes_and_ranks_of_batch_systems(tmp_path: Path) -> None:
    slots = tmp_path / "nodes"
    slots.write_text("node1\nnode1\nnode2\nnode3\n")
    for system, environment in (
        ("Slurm", {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[1-3]", "SLURM_TASKS_PER_NODE": "2,1(x2)"}),
        ("PBS", {"PBS_NODEFILE": str(slots)}),
        ("OAR", {"OAR_NODEFILE": str(slots)}),
        ("LSF", {"LSB_MCPU_HOSTS": "node1 2 node2 1 node3 1"}),
    ):
        given = allocation(environment)
        assert given is not None, system
        assert (given.system, given.slots, given.ranks, given.first) == (
            system,
            {"node1": 2, "node2": 1, "node3": 1},
            4,
            2,
        )
    bare = allocation({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a,b"})
    assert bare is not None
    assert bare.slots == {"a": 1, "b": 1}
    assert allocation({"PBS_NODEFILE": str(tmp_path / "missing")}) is None
    assert allocation({}) is None


def test_a_job_of_slurm_that_asks_for_nodes_only_gets_ranks_for_their_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minga.launch.allocation.available_cores", lambda: ((0, 2), (1, 3)))  # two processors a core
    nodes = SBATCH | {"SLURM_JOB_CPUS_PER_NODE": "8,4"}
    given = allocation(nodes)
    assert given is not None
    assert (given.slots, given.assumed) == ({"node1": 4, "node2": 2}, True)
    assert start_on(given, Path("mpiexec"), "MPICH", 6) == ["env", "SLURM_TASKS_PER_NODE=4,2", "mpiexec", "-n", "6"]
    assert given.limited(3).slots == {"node1": 2, "node2": 1}
    assert given.limited(1).slots == {"node1": 1, "node2": 1}
    threads = allocation(nodes, threads=2)
    assert threads is not None
    assert threads.slots == {"node1": 2, "node2": 1}
    for asked in ({"SLURM_NTASKS": "2"}, {"SLURM_CPUS_PER_TASK": "4"}, {"SLURM_JOB_CPUS_PER_NODE": "8"}):
        tasks = allocation(nodes | asked)
        assert tasks is not None
        assert (tasks.slots, tasks.assumed) == ({"node1": 1, "node2": 1}, False)
        assert tasks.limited(1) == tasks


@pytest.mark.parametrize(
    ("system", "vendor", "words"),
    [
        ("Slurm", "MPICH", ["-n", "4"]),
        ("PBS", "Open MPI", ["-n", "4", "--bind-to", "none"]),
        ("LSF", "MPICH", ["-hosts", "h1:3,h2:1", "-n", "4"]),
        ("LSF", "Open MPI", ["--host", "h1:3,h2:1", "-n", "4", "--bind-to", "none"]),
        ("OAR", "MPICH", ["-f", "nodes", "-n", "4"]),
        ("OAR", "Intel MPI", ["-machinefile", "nodes", "-n", "4"]),
    ],
)
def test_launchers_are_told_what_they_do_not_find(
    system: str, vendor: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above all not how to start processes, which would keep MPICH's on this machine."""
    given = Allocation(system, {"h1": 3, "h2": 1}, "nodes" if system == "OAR" else None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert start_on(given, Path("mpiexec"), vendor, 4) == ["mpiexec", *words]
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert ("/usr/bin/oarsh" in start_on(given, Path("mpiexec"), vendor, 4)) == (system == "OAR")


def test_a_run_in_a_job_uses_all_nodes_unless_few_ranks_are_asked_for(
    in_tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("small.toml").write_text(SMALL)
    for name, value in SBATCH.items():
        monkeypatch.setenv(name, value)
    said = in_process("run", "small.toml")
    assert said.status == 0
    assert "Slurm has given this job 2 nodes (node1, node2), and this run uses one of them" in said.err
    with ranks_here(read_case("small.toml", options={"run.ranks": 3}), inside=False) as start:
        assert start.ranks == 3
        assert "3 ranks on nodes of the 2 that Slurm has given" in start.notes[0]
        assert start.prepare is not None
        assert "-launcher" not in start.prepare(RunDirectory(in_tmp_path), print).start


def test_a_run_in_a_job_has_few_ranks_for_few_cells_and_one_for_each_gpu(
    in_tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("small.toml").write_text(SMALL.replace("ranks = 1\n", ""))
    for name, value in {**SBATCH, "SLURM_JOB_CPUS_PER_NODE": "64(x2)"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("minga.launch.allocation.available_cores", lambda: ((0,),))
    monkeypatch.setattr("minga.cli.devices._devices", lambda: 3)
    for overrides, ranks in (
        ([], 2),
        (["grid.shape=[256, 160]"], 10),
        (["grid.shape=[2048, 1024]"], 128),
        (["run.device=gpu"], 6),
    ):
        with ranks_here(read_case("small.toml", overrides), inside=False) as start:
            assert start.ranks == ranks


def test_processes_of_srun_that_do_not_find_each_other() -> None:
    with pytest.raises(LaunchError) as caught:
        check_world(1, 2, "srun")
    assert "srun started 2 processes" in str(caught.value)
    assert "srun --mpi=pmi2 minga run" in str(caught.value)
    assert "minga run -n" not in str(caught.value)

"""What batch systems give to a job: said where a run uses but a part of it, and how it gets all."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import SMALL, in_process
from minga.errors import LaunchError
from minga.launch.allocation import allocation, unused
from minga.launch.launcher import check_world, surrounding_job

SBATCH = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_PROCID": "0"}
STEP = SBATCH | {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0"}


def test_a_batch_script_of_slurm_is_no_rank() -> None:
    assert surrounding_job(SBATCH) is None
    job = surrounding_job(STEP)
    assert job is not None
    assert (job.rank, job.size, job.launcher) == (0, 2, "srun")


@pytest.mark.parametrize(("vendor", "word"), [("MPICH", "pmi2"), ("Intel MPI", "pmi2"), ("Open MPI", "pmix")])
def test_slurm_is_told_how_ranks_find_each_other(vendor: str, word: str) -> None:
    said = unused(vendor, SBATCH)
    assert said is not None
    assert "Slurm has given this job 2 nodes (node[1-2]), and this run uses one of them" in said
    assert f"`srun --mpi={word} minga run ...`" in said
    assert unused(vendor, SBATCH | {"SLURM_JOB_NUM_NODES": "1"}) is None


def test_other_batch_systems(tmp_path: Path) -> None:
    slots = tmp_path / "nodes"
    slots.write_text("node1\nnode1\nnode2\nnode3\n")
    pbs = allocation("MPICH", {"PBS_NODEFILE": str(slots)})
    assert pbs is not None
    assert (pbs.system, pbs.nodes, pbs.start) == ("PBS", 3, "mpiexec")
    assert "mpiexec -f $OAR_NODEFILE minga run" in str(unused("MPICH", {"OAR_NODEFILE": str(slots)}))
    assert "mpiexec -hosts h1:4,h2:2 minga run" in str(unused("MPICH", {"LSB_MCPU_HOSTS": "h1 4 h2 2"}))
    assert unused("MPICH", {"LSB_MCPU_HOSTS": "h1 4"}) is None
    assert allocation("MPICH", {"PBS_NODEFILE": str(tmp_path / "missing")}) is None
    assert allocation("MPICH", {}) is None


def test_a_run_in_a_job_of_two_nodes_says_what_it_leaves(in_tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("small.toml").write_text(SMALL)
    for name, value in SBATCH.items():
        monkeypatch.setenv(name, value)
    said = in_process("run", "small.toml")
    assert said.status == 0
    assert "this run uses one of them" in said.err
    assert "srun --mpi=pmi2 minga run" in said.err


def test_processes_of_srun_that_do_not_find_each_other() -> None:
    with pytest.raises(LaunchError) as caught:
        check_world(1, 2, "srun")
    assert "srun started 2 processes" in str(caught.value)
    assert "srun --mpi=pmi2 minga run" in str(caught.value)
    assert "minga run -n" not in str(caught.value)

"""Start real MPI ranks from a test.

from mpi_launch import run_ranks

@pytest.mark.mpi
def test_sum(tmp_path):
    job = run_ranks(3, tmp_path / "script.py", "argument")
    job.check()                      # status 0 and as many ranks as asked for, or show all output
    assert job.out[0] == "3\n"       # standard output, one entry a rank
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Settings of a surrounding MPI job or launcher would make the new ranks believe that they belong to it.
_FOREIGN = re.compile(r"^(PMI|PMIX|PMI2|HYDRA|MPIR?|MPICH|OMPI|PRTE|SLURM)_")

# Runs in each rank before the script: leaves the rank and the size that MPI itself reports, not what was asked.
_PREAMBLE = """\
import pathlib, runpy, sys
from mpi4py import MPI
folder, module, target, *arguments = sys.argv[1:]
world = MPI.COMM_WORLD
pathlib.Path(folder, f"started.{world.rank}.{world.size}").touch()
sys.argv = [target, *arguments]
if module == "module":
    sys.path.insert(0, "")
    runpy.run_module(target, run_name="__main__", alter_sys=True)
else:
    sys.path.insert(0, str(pathlib.Path(target).resolve().parent))
    runpy.run_path(target, run_name="__main__")
"""


@dataclass(frozen=True, slots=True)
class Job:
    """What a finished MPI job left."""

    asked: int
    """Ranks that were asked for."""
    started: list[tuple[int, int]]
    """(rank, size) as each started rank read them from MPI, in ascending order."""
    status: int | None
    """Exit status of the launcher; None when the time ran out and the job was killed."""
    out: list[str]
    """Standard output of each rank."""
    err: list[str]
    """Standard error of each rank."""
    launcher: str
    """What the launcher itself printed."""

    def check(self) -> Job:
        """Fail, showing all that was printed, unless all ranks started in one world and the job ended with status 0."""
        assert self.started == [(rank, self.asked) for rank in range(self.asked)], self.report()
        assert self.status == 0, self.report()
        return self

    def report(self) -> str:
        lines = [f"asked for {self.asked} ranks, started (rank, size): {self.started}, status {self.status}"]
        streams = [("launcher", self.launcher)]
        streams += [(f"rank {rank} stdout", text) for rank, text in enumerate(self.out)]
        streams += [(f"rank {rank} stderr", text) for rank, text in enumerate(self.err)]
        return "\n".join(lines + [f"--- {name}\n{text.rstrip()}" for name, text in streams if text.strip()])


def mpiexec() -> Path:
    """The launcher that the mpich wheel puts beside this environment's Python."""
    path = Path(sys.prefix) / "bin" / "mpiexec"
    assert path.exists(), f"{path} is missing: install the package mpich into this environment"
    return path


def run_ranks(
    ranks: int,
    target: str | Path,
    *arguments: object,
    timeout: float = 120.0,
    cwd: str | Path | None = None,
    env: dict[str, str] | None = None,
) -> Job:
    """Run a script (a ``Path``, or a string that ends in ``.py``) or a module (any other string) on MPI ranks.

    ``env`` adds to this process's environment. When ``timeout`` seconds have passed the whole job is killed.
    """
    module = "script" if isinstance(target, Path) or target.endswith(".py") else "module"
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        command = [mpiexec(), "-launcher", "fork", "-n", ranks]
        command += ["-outfile-pattern", f"{folder}/out.%r", "-errfile-pattern", f"{folder}/err.%r"]
        command += [sys.executable, "-c", _PREAMBLE, folder, module, target, *arguments]
        with open(f"{folder}/launcher", "wb") as launcher:
            process = subprocess.Popen(
                [str(word) for word in command],
                cwd=cwd,
                env=_environment() | (env or {}),
                stdin=subprocess.DEVNULL,
                stdout=launcher,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # one process group, so that nothing outlives the test
            )
            try:
                status = process.wait(timeout)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end(process)
        return _collect(Path(folder), ranks, status)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}
    return kept | {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1", "OMP_NUM_THREADS": "1"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the job: the launcher, which takes its ranks along, and its process group."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)  # the launcher then ends its ranks
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _collect(folder: Path, ranks: int, status: int | None) -> Job:
    def text(name: str) -> str:
        path = folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    pairs = [path.name.split(".")[1:] for path in folder.glob("started.*")]
    return Job(
        asked=ranks,
        started=sorted((int(rank), int(size)) for rank, size in pairs),
        status=status,
        out=[text(f"out.{rank}") for rank in range(ranks)],
        err=[text(f"err.{rank}") for rank in range(ranks)],
        launcher=text("launcher"),
    )

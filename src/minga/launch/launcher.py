"""The MPI library that mpi4py uses, the launcher that belongs to it, and the job that this process may be a rank of."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minga.engine.comm import started_mpi
from minga.errors import LaunchError
from minga.launch.allocation import srun
from minga.launch.implementations import launcher_vendor, outside_jobs, vendor_in

__all__ = ["Job", "Launcher", "check_world", "find_launcher", "launcher_vendor", "library", "surrounding_job", "world"]

_JOB_VARIABLES = (
    ("PMI_RANK", "PMI_SIZE", "MPICH's mpiexec"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"),
    ("PALS_RANKID", "PALS_SIZE", "PALS"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun"),  # the second is set inside a job step only
)

_INSTALL = "pip install mpich, or name a launcher with MINGA_MPIEXEC; `minga doctor` shows what was found"


@dataclass(frozen=True, slots=True)
class Job:
    """A job of ranks that something else has started, and this process's place in it according to the launcher."""

    rank: int
    size: int
    launcher: str
    vendor: str | None = None
    """Vendor of the MPI library that the launcher belongs to, if that is certain."""


@dataclass(frozen=True, slots=True)
class Library:
    """The MPI library that mpi4py has loaded."""

    vendor: str
    version: str
    path: Path | None


@dataclass(frozen=True, slots=True)
class Launcher:
    """A program that starts ranks."""

    path: Path
    vendor: str

    def command(self, ranks: int) -> list[str]:
        """Return the beginning of a command line that starts ranks on this machine; ranks pin themselves to cores."""
        if self.vendor == "Open MPI":
            return [str(self.path), "-n", str(ranks), "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        if self.vendor == "MPICH":
            return [str(self.path), "-launcher", "fork", "-n", str(ranks)]
        return [str(self.path), "-n", str(ranks)]

    def environment(self) -> dict[str, str]:
        """Return the environment for the launcher, without the variables of a surrounding job of one rank.

        Containers often run as root, which Open MPI requires to be confirmed.
        """
        environment = outside_jobs(os.environ)
        if self.vendor == "Open MPI" and os.geteuid() == 0:
            environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return environment


def world(job: Job | None, expected: int) -> Any:
    """Start MPI and return the communicator of all ranks. Raise LaunchError unless as many joined as were started."""
    found = library()
    launcher = job.launcher if job else "the launcher"
    if job is not None and job.vendor not in (None, found.vendor):
        raise _mismatch(launcher, expected, f"uses {found.vendor}")  # MPI would not even start
    MPI = started_mpi()
    check_world(int(MPI.COMM_WORLD.size), expected, launcher)
    return MPI.COMM_WORLD


def surrounding_job(environment: Mapping[str, str] = os.environ) -> Job | None:
    """Return the job in which this process was started as a rank, or None."""
    for rank, size, launcher in _JOB_VARIABLES:
        if environment.get(rank, "").isdigit() and environment.get(size, "").isdigit():
            vendor = "Open MPI" if rank.startswith("OMPI") else "MPICH" if "HYDI_CONTROL_FD" in environment else None
            return Job(int(environment[rank]), int(environment[size]), launcher, vendor)
    return None


def check_world(started: int, expected: int, launcher: str) -> None:
    """Raise LaunchError unless MPI joined as many ranks as were started.

    A launcher of another MPI library starts the processes, but each of them is then a world of its own.
    """
    if started == expected:
        return
    raise _mismatch(launcher, expected, f"sees {started} rank{'s' if started != 1 else ''}")


def _mismatch(launcher: str, started: int, found: str) -> LaunchError:
    said = f"{launcher} started {started} processes, but the MPI library of mpi4py {found}"
    if launcher == "srun":
        return LaunchError(
            f"{said}: the processes do not find each other",
            remedy=f"write `{srun(library().vendor)} minga run ...`, or mpiexec in place of srun",
        )
    return LaunchError(
        f"{said}: launcher and library do not belong together",
        remedy="start with `minga run -n RANKS`, which finds the right launcher; `minga doctor` shows both",
    )


def library() -> Library:
    """Return the MPI library of mpi4py, without starting MPI. Raise LaunchError if there is none."""
    try:
        import mpi4py

        mpi4py.rc.initialize = False  # this only looks; see world()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="suspicious MPI execution environment")
            from mpi4py import MPI
    except (ImportError, RuntimeError, OSError) as error:
        raise LaunchError(f"no MPI library was found: {error}", remedy=_INSTALL) from error
    text = MPI.Get_library_version()
    vendor = vendor_in(text)
    number = re.search(r"(\d+\.\d+(?:\.\d+)?)", text)
    return Library(vendor, number.group(1) if number else text.splitlines()[0].strip(), _loaded_library())


def find_launcher(found: Library | None = None) -> Launcher:
    """Find the launcher that belongs to mpi4py's library: ``MINGA_MPIEXEC``, beside the library, or on the PATH.

    Raises LaunchError if there is none, or only launchers of other MPI libraries.
    """
    mpi = found or library()
    if chosen := os.environ.get("MINGA_MPIEXEC"):
        program = shutil.which(chosen)
        if program is None:
            raise LaunchError(f"MINGA_MPIEXEC names {chosen!r}, which is not a program", remedy="name an existing one")
        return Launcher(Path(program), launcher_vendor(Path(program)) or mpi.vendor)
    others = []
    for path in _candidates(mpi):
        vendor = launcher_vendor(path)
        if vendor == mpi.vendor:
            return Launcher(path, vendor)
        others.append(f"{path} ({vendor or 'unknown'})")
    said = f"; found only {', '.join(others)}" if others else ""
    raise LaunchError(f"no launcher of {mpi.vendor} was found, the MPI library of mpi4py{said}", remedy=_INSTALL)


def _candidates(mpi: Library) -> list[Path]:
    suffix = {"MPICH": "mpich", "Open MPI": "openmpi"}.get(mpi.vendor)
    names = ["mpiexec.hydra", "mpiexec", "mpirun"] if mpi.vendor == "MPICH" else ["mpiexec", "mpirun"]
    names = [*([f"mpiexec.{suffix}"] if suffix else []), *names]
    folders = []
    if mpi.path is not None:
        folders = [parent / "bin" for parent in list(mpi.path.parents)[1:5]]
    found = [folder / name for folder in folders for name in names if (folder / name).exists()]
    found += [Path(path) for name in names if (path := shutil.which(name))]
    return list(dict.fromkeys(found))


def _loaded_library() -> Path | None:
    """Return the file of the MPI library that this process has loaded, if the system reports it."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return None
    paths: list[Any] = [line.split(maxsplit=5)[-1] for line in lines if "/libmpi" in line]
    return Path(paths[0]) if paths else None

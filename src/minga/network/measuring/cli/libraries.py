"""Measuring messages of each installed MPI library, between two ranks that are started for it, to compare libraries.

The ranks run on this machine, or on the first two of a list of hosts on which the same libraries are installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from minga.errors import LaunchError, MingaError
from minga.launch.implementations import Implementation, installed, outside_jobs
from minga.launch.jobs import finished_job
from minga.launch.launcher import Launcher, surrounding_job, world
from minga.launch.on_hosts import Part, command_on_hosts

if TYPE_CHECKING:
    from minga.launch.hosts import Host

__all__ = ["add_libraries", "host_command", "measured_libraries"]

_PATIENCE = 60.0
"""Seconds that starting and ending ranks may take."""
_FOUND: Final = "minga-measured "
"""Prefix of the output of rank 0, which launchers forward from any machine."""

Progress = Callable[[float, str], None]


def add_libraries(
    section: dict[str, Any], seconds: float, progress: Progress, hosts: Sequence[Host] = (), shell: str = "ssh"
) -> None:
    """Add the installed libraries, or the reasons why they could not be measured, to a ``network`` section.

    A single library on this machine is already in the section.
    """
    found = installed()
    if len(found) < 2 and not hosts:
        return
    progress(1.0, "MPI of each library that is installed")
    entries, missing = measured_libraries(found, seconds, hosts, shell)
    section["libraries"] = entries
    section["unavailable"] |= missing
    for entry in entries:
        crossed = entry["crossed"]
        if crossed is not None and not crossed["enough"]:
            section["advice"].append(
                f"messages of {entry['library']} did not cross the interface {crossed['interface']}: "
                f"{crossed['sent']} bytes left it, {crossed['payload']} were sent"
            )


def measured_libraries(
    libraries: Sequence[Implementation], seconds: float, hosts: Sequence[Host] = (), shell: str = "ssh"
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Measure libraries; return an entry of ``links`` for each that works, and the reasons why the others do not.

    The entries have an additional key ``library``.
    """
    found, missing = [], {}
    far = (hosts[1].address or hosts[1].name) if hosts else None
    for library in libraries:
        with tempfile.TemporaryDirectory(prefix="minga-mpi-") as name:
            folder = Path(name)
            program = [sys.executable, "-m", "minga.network.measuring.cli.libraries"]
            share = max(0.5, seconds / len(libraries))
            order = {"seconds": share, "seed": 0,
                     "between": f"{hosts[0].name} and {hosts[1].name}" if hosts else "one node",
                     "level": 0 if hosts else 1, "address": far}  # fmt: skip
            program.append(json.dumps(order))
            if hosts:
                command = host_command(library, shell, hosts, program, folder)
            else:
                command = [*Launcher(library.launcher, library.vendor).command(2), *program]
            outcome = _run(command, library, share)
            if isinstance(outcome, str):
                missing[library.vendor] = outcome
            else:
                found.append(outcome)
    return found, missing


def host_command(
    library: Implementation, shell: str, hosts: Sequence[Host], program: Sequence[str], folder: Path
) -> list[str]:
    """Return the command line that starts a rank on each of the first two hosts."""
    parts = [Part(replace(host, slots=1), program) for host in hosts[:2]]
    environment = os.environ | library.environment
    return command_on_hosts(Launcher(library.launcher, library.vendor), parts, shell, folder, environment)


def _run(command: Sequence[str], library: Implementation, seconds: float) -> dict[str, Any] | str:
    """Run a command until it ends, and return the result of rank 0, or the reason why there is none.

    No process is left running.
    """
    environment = outside_jobs(os.environ) | library.environment
    if library.name == "openmpi" and os.geteuid() == 0:
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    try:
        done = finished_job(command, environment, 3 * seconds + _PATIENCE)
    except LaunchError as error:
        return error.message
    except subprocess.TimeoutExpired:
        return "ranks that were started for it did not end"
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        return f"status {done.returncode}" + (f": {lines[-1][:200]}" if lines else "")
    for line in done.stdout.splitlines():
        if line.startswith(_FOUND):
            found: dict[str, Any] = json.loads(line.removeprefix(_FOUND))
            return found
    return "it left no result"


def rank_main(arguments: Sequence[str]) -> int:
    """Run as one of the two ranks: ``python -m minga.network.measuring.cli.libraries ORDER``."""
    from minga.launch.events import silence_stdout
    from minga.launch.rank_end import end_in_error

    order = json.loads(arguments[0])
    answers = os.fdopen(os.dup(1), "w")
    silence_stdout()  # output of libraries must not mix with the result
    job = surrounding_job()
    everyone = world(job, job.size if job else 1)
    try:
        entry = _measured(everyone, order)
        if entry is not None:
            print(_FOUND + json.dumps(entry), file=answers, flush=True)
    except BaseException as error:
        end_in_error(error, everyone)
    return 0


def _measured(everyone: Any, order: dict[str, Any]) -> dict[str, Any] | None:
    """Measure messages between the two ranks, and return the entry on rank 0, None on the other rank."""
    from minga.network.measuring.environment import counters, environment, mpi_library
    from minga.network.measuring.exchanges import Ends, payload, sample_message_sizes
    from minga.network.measuring.sampling import message_sizes
    from minga.network.measuring.section import break_names, fits_of, measured_link
    from minga.network.measuring.team import one_job

    if everyone.size < 2:
        raise MingaError(f"{everyone.size} rank was started instead of 2")
    with one_job(everyone) as team:
        if team is None:
            return None
        around = environment(order["address"])
        interface = (around.get("interface") or {}).get("name") if order["level"] == 0 else None
        before = counters(interface) if interface else None
        samples = sample_message_sizes(team, Ends(0, 1), "mpi", message_sizes(), order["seconds"], order["seed"])
        after = counters(interface) if interface else None
        crossed = None
        if before is not None and after is not None:
            sent, least = after["sent_bytes"] - before["sent_bytes"], payload(samples)
            crossed = {"interface": interface, "sent": sent, "payload": least, "enough": sent >= 0.95 * least}
        library = str(mpi_library())
        names = break_names("mpi", around, library) if order["level"] == 0 else {}
        fits = fits_of(samples, names, order["seed"])
        entry = measured_link(order["level"], order["between"], "mpi", (0, 1), samples, fits)
        return entry | {"library": library, "crossed": crossed}


if __name__ == "__main__":
    sys.exit(rank_main(sys.argv[1:]))

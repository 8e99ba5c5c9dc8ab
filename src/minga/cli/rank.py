"""One rank of a run that ``minga run`` has launched: ``python -m minga.cli.rank ORDER``, under a launcher.

ORDER is JSON: ``target``, ``overrides`` and ``options`` specify the case as on the command line; ``run`` is the
directory of the run, ``ranks`` and ``launcher`` say what was started, ``resume`` whether the run is resumed, ``past``
what the command has done before (`minga.running.past`), ``drops`` whether slow hosts may be dropped, and ``watch`` is
what the watchdog tells ranks, if there is one. With ``probe`` the ranks are only timed, and the result goes to the file
of that name.
"""

from __future__ import annotations

import json
import pickle
import platform
import signal
import sys
from pathlib import Path

from minga.cli.case import Case, find_source, read_case
from minga.engine.comm import Comm
from minga.errors import LaunchError, RunError
from minga.launch.events import EventWriter, silence_stdout
from minga.launch.exit_codes import FAILED, OK
from minga.launch.launcher import surrounding_job, world
from minga.launch.rank_end import end_in_error, end_late
from minga.launch.signals import STOP_SIGNAL, StopRequest
from minga.launch.watchdog.heart import Heart
from minga.launch.watchdog.member import heart_of, with_agent
from minga.output.directory import RunDirectory, noticing_removal
from minga.running.past import Past
from minga.view.progress import Listener, LogLines

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Carry out an order as one rank of several, and return the exit status."""
    order = json.loads(arguments[0])
    stop = StopRequest(late=end_late)
    with stop.listening():
        job = surrounding_job()
        heart = None if job is None else heart_of(order.get("watch"), job.rank)
        try:
            everyone = world(job, order["ranks"])
        except LaunchError as error:
            if job is None or job.rank == 0:
                sys.stderr.write(f"minga: {error}\n")
            return FAILED
        try:
            _run(order, stop, heart)
        except BaseException as error:
            if heart is not None:
                heart.leave()
            end_in_error(error, everyone)
    signal.signal(STOP_SIGNAL, signal.SIG_IGN)  # nothing is left to be stopped
    return OK


def _run(order: dict[str, object], stop: StopRequest, heart: Heart | None) -> None:
    from minga.cli.perform import perform
    from minga.engine.comm import MPIComm

    comm = MPIComm()
    listener: Listener
    if comm.rank == 0:
        writer = EventWriter()
        listener = writer
    else:
        silence_stdout()
        writer, listener = None, LogLines("", sys.stderr)

    def answer() -> None:
        stop.answer()
        if writer is not None:
            writer.answer()

    directory = RunDirectory(Path(str(order["run"])))
    if not directory.path.is_dir():
        raise RunError(
            f"{directory.path} was removed while the run went on, or {platform.node()} does not see it",
            remedy="name a directory that all machines share with --out; the hosts of --hosts need not share any",
        )
    with noticing_removal(directory.path):
        case = read_case(find_source(str(order["target"])), list(order["overrides"]), dict(order["options"]))  # type: ignore[call-overload]
    if "probe" in order:
        _time(case, comm, Path(str(order["probe"])))
        return
    with with_agent(order.get("watch"), comm, heart):  # type: ignore[arg-type]
        perform(
            case,
            comm,
            directory,
            listener,
            lambda: stop.asked or (writer is not None and writer.broken),
            bool(order.get("resume")),
            answer,
            [] if heart is None else [heart],
            writer.drop if writer is not None and order.get("drops") else None,
            Past(**order.get("past", {})),  # type: ignore[arg-type]
        )


def _time(case: Case, comm: Comm, found: Path) -> None:
    """Time the ranks for a plan, and write what was found on rank 0."""
    from minga.engine.pin import local_place, pin
    from minga.plan.probe.probe import probe_ranks

    pinning = pin(*local_place(comm.rank, comm.size), case.run.threads)
    group = probe_ranks(case.model, comm, threads=case.run.threads, cpus=pinning.workers)
    if comm.rank == 0:
        found.write_bytes(pickle.dumps(group))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

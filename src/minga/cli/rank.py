"""One rank of a run that ``minga run`` has launched: ``python -m minga.cli.rank ORDER``, under a launcher.

ORDER is JSON: ``target``, ``overrides`` and ``options`` say which case, as the command line did; ``run`` is the run's
directory; ``ranks`` and ``launcher`` say what was started.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

from minga.cli.case import find_source, read_case
from minga.cli.events import EventWriter, silence_stdout
from minga.cli.launcher import surrounding_job, world
from minga.cli.stopping import StopRequest
from minga.errors import LaunchError, MingaError
from minga.record.directory import RunDirectory
from minga.view.progress import Listener, LogLines

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Carry out an order as one rank of several; the exit status."""
    order = json.loads(arguments[0])
    stop = StopRequest()
    with stop.listening():
        job = surrounding_job()
        try:
            everyone = world(job, order["ranks"])
        except LaunchError as error:
            if job is None or job.rank == 0:
                sys.stderr.write(f"minga: {error}\n")
            return 1
        try:
            _run(order, stop)
        except BaseException as error:
            report(error, everyone.rank, everyone.size)
            everyone.Abort(error.exit_status if isinstance(error, MingaError) else 1)
    return 0


def report(error: BaseException, rank: int, size: int) -> None:
    """Say what ended this rank: in words where a person can act on it, with a traceback where it is a bug."""
    if isinstance(error, MingaError):
        text = f"minga: {error}\n  on rank {rank} of {size}\n"
    else:
        text = f"rank {rank} of {size} failed; the job ends.\n" + "".join(traceback.format_exception(error))
    sys.stderr.write(text)
    sys.stderr.flush()


def _run(order: dict[str, object], stop: StopRequest) -> None:
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
    case = read_case(find_source(str(order["target"])), list(order["overrides"]), dict(order["options"]))  # type: ignore[call-overload]
    directory = RunDirectory(Path(str(order["run"])))
    perform(case, comm, directory, listener, lambda: stop.asked or (writer is not None and writer.broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

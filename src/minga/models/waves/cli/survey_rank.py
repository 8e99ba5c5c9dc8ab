"""One rank of a survey that ``minga survey -n`` has launched: ``python -m minga.models.waves.cli.survey_rank ORDER``.

ORDER is JSON: the fields of a `SurveyRequest`, and ``ranks``, the number of ranks that were started.
"""

from __future__ import annotations

import json
import sys

from minga.errors import LaunchError
from minga.launch.events import EventWriter, silence_stdout
from minga.launch.exit_codes import FAILED, INTERRUPTED, OK
from minga.launch.launcher import surrounding_job, world
from minga.launch.rank_end import end_in_error, end_late
from minga.launch.signals import StopRequest
from minga.models.waves.cli.survey import SurveyRequest, perform
from minga.models.waves.cli.survey_reading import read_survey
from minga.view.progress import Listener, LogLines

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Carry out an order as one rank of several, and return the exit status."""
    order = json.loads(arguments[0])
    request = SurveyRequest.of(order)
    stop = StopRequest(late=end_late)
    with stop.listening():
        job = surrounding_job()
        try:
            everyone = world(job, order["ranks"])
        except LaunchError as error:
            if job is None or job.rank == 0:
                sys.stderr.write(f"minga: {error}\n")
            return FAILED
        try:
            from minga.engine.comm import MPIComm

            comm = MPIComm()
            listener: Listener
            if comm.rank == 0:
                listener = EventWriter()
            else:
                silence_stdout()
                listener = LogLines("", sys.stderr)
            source, found = read_survey(request.target, request.overrides)
            done = perform(request, comm, listener, stop, request.file(source), found)
        except BaseException as error:
            end_in_error(error, everyone)
    return OK if done else INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

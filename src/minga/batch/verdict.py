"""The decision after a job: whether another one follows, by how the run in it has ended."""

from __future__ import annotations

from dataclasses import dataclass

from minga.launch.exit_codes import FAILED, INTERRUPTED, OK, REPORTED, TO_BE_CONTINUED
from minga.output.directory import RunDirectory
from minga.running.run_output import finished_result

__all__ = ["Told", "Verdict", "verdict_of"]


@dataclass(slots=True)
class Told:
    """News from Slurm to a job: its time limit is near, or it is ended (by a person, or to be requeued)."""

    limit: bool = False
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision after a job.

    Attributes
    ----------
    then
        ``"next"``: another job; ``"complete"``, ``"ended"`` from outside, ``"failed"``, ``"stuck"``: none.
    status
        Exit status of the job.
    text
        The reason, for people.
    """

    then: str
    status: int
    text: str


def verdict_of(directory: RunDirectory, status: int, told: Told, first: int | None, last: int | None) -> Verdict:
    """Return what follows after a job.

    Parameters
    ----------
    directory
        Directory of the run.
    status
        Exit status of ``minga run``.
    told
        What Slurm has told the job.
    first, last
        Steps of the newest checkpoint before and after it, None if there was none.
    """
    if status == OK and finished_result(directory) is not None:
        return Verdict("complete", OK, "the run is complete")
    if told.ended:
        return Verdict("ended", INTERRUPTED, "the job was ended from outside")
    if status in REPORTED or not (told.limit or status == TO_BE_CONTINUED):
        return Verdict("failed", status if status > 0 else FAILED, f"the run ended with status {status}")
    if last is None or (first is not None and last <= first):
        gained = "no checkpoint was written" if last is None else f"no step was gained after step {last}"
        text = f"{gained} within this job, so another one would be in vain: choose a longer --time, or more nodes"
        return Verdict("stuck", FAILED, text)
    return Verdict("next", OK, f"the run is kept up to step {last}, and continues in the next job")

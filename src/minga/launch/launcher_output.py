"""Output of launchers: passing it on without their messages about ended ranks, and finding in it what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import IO, Final

from minga.launch.hosts import Host

__all__ = ["INNER", "KEPT", "lost_at", "pass_on"]

INNER: Final = ("[mpiexec@", "[proxy:")
"""Beginnings of lines of MPICH's launcher about itself, which are shown only if nothing else helps."""
KEPT: Final = 60
"""Number of last lines that are kept."""
_ENDINGS: Final = ("=====", "-----", "YOUR APPLICATION TERMINATED", "mpiexec noticed", "mpirun noticed")
_ABORTED: Final = re.compile(r"Abort\(-?\d+\) on node \d+ .*application called MPI_Abort")
"""Line of MPICH about a rank that ended all others, which had said why; errors within MPI begin in the same way."""
_LOST_AT: Final = (re.compile(r"RUNNING AT (\S+)"), re.compile(r"on node (\S+)"))
"""Patterns of the host on which a rank ended, in the output of MPICH's and Open MPI's launchers."""


def pass_on(lines: Iterable[str], target: IO[str], said: list[str], shown: list[str] | None = None) -> None:
    """Forward the output of ranks and launcher, except for the launcher's messages about ranks that were ended.

    The last lines of all are kept in ``said``, the last ones that were forwarded in ``shown``.
    """
    dying = False
    for line in lines:
        said.append(line)
        del said[:-KEPT]
        dying = dying or line.startswith(_ENDINGS)
        if line.strip() and not dying and not line.startswith(INNER) and not _ABORTED.match(line):
            if shown is not None:
                shown.append(line)
                del shown[:-KEPT]
            target.write(line)
            target.flush()


def lost_at(said: Sequence[str], hosts: Sequence[Host]) -> str | None:
    """Return the name of the host on which a rank was lost first, according to a launcher; None if it does not say."""
    found = next((match[1] for line in said for pattern in _LOST_AT if (match := pattern.search(line))), None)
    return next((host.name for host in hosts if found is not None and found in (host.name, host.address)), None)

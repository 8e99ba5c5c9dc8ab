"""Description of a run for its watch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minga.engine.stop import duration
from minga.errors import CaseError
from minga.launch.hosts import Host
from minga.launch.ranks import Ranks

__all__ = ["Watched", "watch_limit"]

_LEAST: Final = 3.0
"""Least limit in seconds: agents report once a second."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Description of what is to be watched.

    Attributes
    ----------
    directory
        Directory of the run.
    limit
        Seconds of silence after which a host or rank counts as lost.
    hosts
        Hosts that are reached by `shell`, besides this machine.
    shell
        Command line of ssh, or of another program that is called in the same way.
    inside
        True on rank 0 of a job: its ranks start the agents of all hosts.
    beyond
        True if ranks are also on hosts that nothing but MPI reaches: there they start the agents.
    """

    directory: Path
    limit: float
    hosts: Sequence[Host] = ()
    shell: str = "ssh"
    inside: bool = False
    beyond: bool = False

    @classmethod
    def of(cls, directory: Path, limit: float, ranks: Ranks) -> Watched:
        """Return the description of ranks that are about to be started."""
        others = tuple(place.host for place in ranks.places if place.host.name != "localhost")
        return cls(directory, limit, others, ranks.shell, beyond=bool(ranks.start))


def watch_limit(setting: float | str) -> float | None:
    """Return the setting ``run.watch`` in seconds, None for "off"; raise CaseError if it is invalid."""
    if setting == "off":
        return None
    seconds = duration(setting, "run.watch")
    if seconds < _LEAST:
        raise CaseError(
            f"found {setting!r}, and hosts report once a second",
            key="run.watch",
            remedy=f'write at least {_LEAST:g} seconds, or "off"',
        )
    return seconds

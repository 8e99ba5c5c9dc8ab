"""Hosts that take part in a run: those that were lost or dropped may do so again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from minga.cli.start import Start
from minga.launch.hosts import Host
from minga.launch.watchdog.comeback import Comeback
from minga.launch.watchdog.dropped import Dropping, SlowHost
from minga.launch.watchdog.loss import HostsChangedError
from minga.output.directory import RunDirectory

__all__ = ["TakingPart"]

_TRIALS: Final = 2
"""Number of times that a run is stopped for a host that answers again but cannot take part."""


@dataclass(eq=False)
class TakingPart:
    """The hosts of a run over all its starts.

    Attributes
    ----------
    shell
        Command line of ssh, or of another program that is called in the same way.
    directory
        Directory of the run.
    may_change
        Whether the run may be stopped to continue with other hosts.
    slow
        Hosts that were dropped because they are slow, by name.
    """

    shell: str
    directory: RunDirectory
    may_change: bool
    slow: dict[str, SlowHost] = field(default_factory=dict)
    _tried: Counter[str] = field(default_factory=Counter)
    _ranks: dict[str, int] = field(default_factory=dict)
    """Number of ranks of each host that was dropped."""

    def started(self, start: Start) -> None:
        """Take note of hosts that take part again: all that are not absent."""
        absent = {host.name for host in start.absent}
        for known in (self._tried, self.slow):
            for name in known.keys() - absent:
                del known[name]

    def comeback(self, start: Start, barred: Mapping[str, float]) -> Comeback | None:
        """Return the watch for hosts that are absent; None if there are none, or the run keeps no checkpoints.

        Hosts for which the run was stopped in vain are not asked any more, and those that are `barred` not yet.
        """
        absent = {
            replace(host, slots=self._ranks.get(host.name, host.slots)): share
            for host, share in start.absent.items()
            if self._tried[host.name] < _TRIALS
        }
        if not absent or not self.may_change:
            return None
        return Comeback(absent, self.shell, self.directory, barred, self.slow)

    def dropping(self, hosts: Sequence[Host]) -> Dropping | None:
        """Return what takes the wish of ranks to drop hosts, given in the order of the ranks; None for one host."""
        if not self.may_change or len(hosts) < 2:
            return None
        return Dropping([host for host in hosts for _ in range(host.ranks)])

    def check_changed(self, comeback: Comeback | None, dropping: Dropping | None) -> None:
        """Raise HostsChangedError if the ranks have stopped because other hosts are to take part from now on."""
        if not self._was_asked():
            return
        if comeback is not None and comeback.back:
            for name in comeback.back:
                self._tried[name] += 1
                self.slow.pop(name, None)
            raise HostsChangedError("with " + _named(comeback.back))
        if dropping is not None and dropping.drop is not None:
            drop, names = dropping.drop, [host.name for host in dropping.dropped]
            for host in dropping.dropped:
                self.slow[host.name] = SlowHost(host.name, drop.recovered)
                self._ranks[host.name] = host.ranks
            raise HostsChangedError(f"without {_named(names)}, which {drop.reason}")

    def _was_asked(self) -> bool:
        """Return whether the run has a result up to where it was asked to stop."""
        result = self.directory.result
        return result.exists() and json.loads(result.read_text())["ended"]["reason"] == "asked"


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"host {name}" for name in names)

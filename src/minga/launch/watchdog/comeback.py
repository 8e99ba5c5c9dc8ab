"""Hosts that were lost, or dropped, and can take part again: the run is stopped to continue with them.

A host that was lost has to answer, and one that was dropped because it was slow has to be fast again. The run writes a
checkpoint, ends its ranks, and is started again with a plan for all hosts. This takes some seconds, so it is done only
where the rest of the run becomes shorter by more than that.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from minga.launch.hosts import Host, login_options, shell_command
from minga.launch.watchdog.dropped import SlowHost
from minga.output.directory import RunDirectory
from minga.output.progress import read_progress
from minga.plan.drop import RESTART_SECONDS

__all__ = ["PAUSE", "Comeback", "Question", "ask"]

PAUSE: Final = 30.0
"""Seconds between two questions to the hosts that are missing."""
_PATIENCE: Final = 10.0
"""Seconds in which a host has to answer."""
_TIMED_PATIENCE: Final = 60.0
"""The same for a slow host that is timed."""
_TEMPO: Final = "minga.launch.watchdog.tempo"
"""Module that times a piece of work."""

Question = Callable[[Host, str, bool], float | None]
"""Asks a host by a shell: the seconds of a piece of work if they are wanted, else 0; None if it cannot take part."""


@dataclass(eq=False)
class Comeback:
    """Watch for the return of hosts.

    Attributes
    ----------
    hosts
        Hosts that are missing, and the part of all ranks that each would have.
    shell
        Command line of ssh, or of another program that is called in the same way.
    directory
        Directory of the run, whose progress tells how long the rest of it takes.
    barred
        Hosts that must stay out for some seconds.
    slow
        Those that were dropped because they were slow, by name.
    ask
        Asks a host.
    now
        The clock.
    back
        Names of hosts for which the run was asked to stop; empty if it was not.
    """

    hosts: Mapping[Host, float]
    shell: str
    directory: RunDirectory
    barred: Mapping[str, float] = field(default_factory=dict)
    slow: Mapping[str, SlowHost] = field(default_factory=dict)
    ask: Question = field(default_factory=lambda: ask)
    now: Callable[[], float] = time.monotonic
    back: tuple[str, ...] = ()
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._began = self.now()

    @contextlib.contextmanager
    def watching(self, stop: Callable[[], object]) -> Iterator[None]:
        """Call `stop`, which asks the ranks to stop, once hosts are back and that pays; inside the ``with`` block."""
        thread = threading.Thread(target=self._watch, args=(stop,), name="comeback", daemon=True)
        if self.hosts:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            if self.hosts:
                thread.join(_PATIENCE)

    def _watch(self, stop: Callable[[], object]) -> None:
        self.begin()
        while not self._over.wait(PAUSE):
            back = self.returned()
            if back and not self._over.is_set():
                self.back = back
                stop()
                return

    def begin(self) -> None:
        """Time the slow hosts, which later times are compared with."""
        for host in self.hosts:
            if host.name in self.slow:
                self._can_return(host)

    def returned(self) -> tuple[str, ...]:
        """Ask the hosts, and return the names of those that can take part again; none if that would not pay."""
        passed = self.now() - self._began
        free = [host for host in self.hosts if self.barred.get(host.name, 0.0) <= passed]
        back = [host for host in free if self._can_return(host)] if self._pays(free) else []
        return tuple(host.name for host in back) if self._pays(back) else ()

    def _can_return(self, host: Host) -> bool:
        slow = self.slow.get(host.name)
        seconds = self.ask(host, self.shell, slow is not None)
        return seconds is not None if slow is None else slow.recovered(seconds)

    def _pays(self, hosts: Sequence[Host]) -> bool:
        """Return whether the rest of the run would become shorter by more than a restart takes, with some hosts."""
        progress = read_progress(self.directory)
        if not hosts or progress is None or progress["state"] != "running" or progress["step"] <= 0:
            return False
        rest = progress["seconds"] * (progress["steps"] - progress["step"]) / progress["step"]
        return bool(rest * sum(self.hosts[host] for host in hosts) > RESTART_SECONDS)


def ask(host: Host, shell: str, timed: bool) -> float | None:
    """Ask a host whether minga can be run there, and for the seconds of a piece of work if it is to be timed."""
    command = shell_command(shell)
    python = shlex.quote(host.python or sys.executable)
    program = f"{python} -m {_TEMPO} {host.ranks}" if timed else f"{python} -c 'import minga; print(0)'"
    words = [*command, *login_options(host, command), host.name, program]
    patience = _TIMED_PATIENCE if timed else _PATIENCE
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience, check=True
        )
        return float(done.stdout.split()[-1])
    except subprocess.TimeoutExpired:
        return patience if timed else None  # it is slow at least
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None

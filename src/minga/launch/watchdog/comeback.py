"""Hosts that were lost and answer again while the run continues without them: it is stopped to continue with them.

The run writes a checkpoint, ends its ranks, and is started again with a plan for all hosts. This takes some seconds, so
it is done only where the rest of the run becomes shorter by more than that.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from minga.launch.hosts import Host, login_options, shell_command
from minga.output.directory import RunDirectory
from minga.output.progress import read_progress

__all__ = ["Comeback", "HostsBackError"]

_PAUSE: Final = 30.0
"""Seconds between two questions to the hosts that are missing."""
_PATIENCE: Final = 10.0
"""Seconds in which a host has to answer."""
_COST: Final = 20.0
"""Seconds of a restart that the rest of the run has to gain."""


class HostsBackError(Exception):
    """Raised where a run was stopped because hosts answer again; the message names them."""


@dataclass(eq=False)
class Comeback:
    """Watch for the return of hosts.

    Attributes
    ----------
    hosts
        Hosts that are missing.
    shell
        Command line of ssh, or of another program that is called in the same way.
    directory
        Directory of the run, whose progress tells how long the rest of it takes.
    share
        Part of all speed that the missing hosts would have.
    back
        Names of hosts for which the run was asked to stop; empty if it was not.
    """

    hosts: Sequence[Host]
    shell: str
    directory: RunDirectory
    share: float
    back: tuple[str, ...] = ()
    _over: threading.Event = field(default_factory=threading.Event)

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
        while not self._over.wait(_PAUSE):
            back = tuple(host.name for host in self.hosts if _answers(host, self.shell)) if self._pays() else ()
            if back and not self._over.is_set():
                self.back = back
                stop()
                return

    def _pays(self) -> bool:
        """Return whether the rest of the run would become shorter by more than a restart takes."""
        progress = read_progress(self.directory)
        if progress is None or progress["state"] != "running" or progress["step"] <= 0:
            return False
        rest = progress["seconds"] * (progress["steps"] - progress["step"]) / progress["step"]
        return bool(rest * self.share > _COST)


def _answers(host: Host, shell: str) -> bool:
    """Return whether minga can be run on a host."""
    command = shell_command(shell)
    python = shlex.quote(host.python or sys.executable)
    words = [*command, *login_options(host, command), host.name, f"{python} -c 'import minga'"]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0

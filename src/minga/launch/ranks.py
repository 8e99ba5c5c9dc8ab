"""The ranks of a run: how many there are, where they are, and the command line that starts them."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from minga.launch.hosts import Host
from minga.launch.launcher import Launcher
from minga.launch.on_hosts import Part, command_on_hosts

__all__ = ["MARK", "Place", "Ranks"]

MARK: Final = "MINGA_RUN_MARK"
"""The environment variable that marks the ranks of a run on hosts, so that their agents find them."""


@dataclass(frozen=True, slots=True)
class Place:
    """A host of a run, with the entries of the ranks' order that differ there, and their working directory."""

    host: Host
    entries: Mapping[str, object] = field(default_factory=dict)
    directory: str = "/"


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of a run.

    Parameters
    ----------
    launcher
        The launcher that starts them.
    count
        Number of ranks.
    places
        Hosts with their numbers of ranks, in the order of the ranks; by default all ranks are on this machine.
    shell
        Command line of ssh, or of another program that is called in the same way.
    mark
        Text that marks the ranks in their environment.
    start
        Beginning of the command line, in a job of a batch system; by default ranks are started on this machine.
    program
        The module that each rank runs, with its order as the argument.
    """

    launcher: Launcher
    count: int
    places: tuple[Place, ...] = ()
    shell: str = "ssh"
    mark: str = ""
    start: tuple[str, ...] = ()
    program: str = "minga.cli.rank"

    @property
    def hosts(self) -> list[Host]:
        """The hosts, none for ranks on this machine."""
        return [place.host for place in self.places]

    def environment(self) -> dict[str, str]:
        """Return the environment for the launcher."""
        environment = self.launcher.environment()
        return environment | {MARK: self.mark} if self.mark else environment

    @contextlib.contextmanager
    def command(self, order: Mapping[str, object], environment: Mapping[str, str]) -> Iterator[list[str]]:
        """Yield the command line that starts the ranks, which holds inside the block.

        Parameters
        ----------
        order
            Order that each rank carries out, see :mod:`minga.cli.rank`.
        environment
            Environment of the launcher.
        """
        order = {**order, "ranks": self.count, "launcher": str(self.launcher.path)}
        if not self.places:
            yield [*(self.start or self.launcher.command(self.count)), sys.executable, *self._words(order)]
            return
        with tempfile.TemporaryDirectory(prefix="minga-launch-") as folder:
            parts = [
                Part(
                    place.host,
                    [place.host.python or sys.executable, *self._words({**order, **place.entries})],
                    place.directory,
                )
                for place in self.places
            ]
            yield command_on_hosts(self.launcher, parts, self.shell, Path(folder), environment)

    def _words(self, order: Mapping[str, object]) -> list[str]:
        return ["-m", self.program, json.dumps(order)]

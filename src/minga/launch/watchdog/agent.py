"""The agent of the watchdog on a host, ``python -m minga.launch.watchdog.agent``, which reads what to watch.

The first line of its input is an order (:mod:`minga.launch.watchdog.order`); every other one is a sign of life of the
process that started the run, or tells that the run is over. The agent writes a report
(:class:`minga.launch.watchdog.lookout.HostReport`) once a second, and at once when a rank ends. When its input ends, or
when it hears nothing for the limit, it ends the ranks of this host, so that they cannot go on unwatched while the run
continues elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from minga.launch.processes import end, processes_marked
from minga.launch.watchdog.beacon import LONGEST, Sign, Signs
from minga.launch.watchdog.lookout import Lookout
from minga.launch.watchdog.order import END, MARK, OVER, Order
from minga.launch.watchdog.pulse import pulse_folder
from minga.output.directory import RunDirectory
from minga.output.epoch import epoch_number
from minga.output.progress import OVER as STATES
from minga.output.progress import note_state, read_progress

__all__ = ["main"]

_PERIOD: Final = 1.0
"""Seconds between two reports."""
_MOMENT: Final = 0.3
"""Seconds to wait for an answer to the last report."""
_FAREWELLS: Final = 5
"""Most number of last reports."""
_GRACE: Final = 10.0
"""Seconds that ranks get to end their step, and to write a checkpoint, once the process that started them is gone."""
_JOB_GRACE: Final = 1.0
"""Seconds that ranks of a job get to end once the first one of their host is gone, which ends all."""


class _Input:
    """Lines of standard input, read without waiting."""

    def __init__(self) -> None:
        self._rest = b""
        self.ended = False

    def read(self) -> list[dict[str, Any]]:
        """Return the messages that are there, which may be none; wait only if nothing has arrived."""
        content = os.read(0, 1 << 16)
        self.ended = not content
        *lines, self._rest = (self._rest + content).split(b"\n")
        return [json.loads(line) for line in lines if line.strip()]


class _Agent:
    def __init__(self, order: Order) -> None:
        self._order = order
        self._folder = pulse_folder(order.token)
        self._run = RunDirectory(Path(order.directory))
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._lookout = Lookout(self._folder, Path(order.directory))
        self._epoch = epoch_number(self._run.epoch)
        self._input = _Input()
        self._signs = Signs(order.key)
        self._beacons = order.beacons
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._poll = select.poll()
        self._poll.register(0, select.POLLIN | select.POLLHUP)
        self._poll.register(self._socket, select.POLLIN)
        self._awaited: dict[int, int] = {}
        """Descriptors of processes, by their numbers."""
        self._over = False
        self._due = 0.0
        """Time of the next report."""
        self._heard: float | None = None
        """Time of the last sign of life; None before the first, which may never come, as firewalls hold back some."""

    def serve(self) -> None:
        """Report until the run is over, or its ranks are to be ended."""
        looked = time.monotonic()
        while not self._over:
            for descriptor, _ in self._poll.poll(1000 * max(0.0, self._due - time.monotonic())):
                self._turn_to(descriptor)
            now = time.monotonic()
            if self._heard is not None:  # while this process itself did not run, it could hear nothing
                self._heard += max(0.0, now - looked - 2 * _PERIOD)
                if self._order.limit is not None and now - self._heard > self._order.limit:
                    self._leave(0.0, "the host of rank 0 was silent" if self._order.calls else None)
            looked = now
            if now >= self._due and not self._over:
                self._report()
                self._due = now + _PERIOD

    def close(self) -> None:
        """Remove the pulses."""
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _turn_to(self, descriptor: int) -> None:
        """Read what has arrived."""
        if descriptor == self._socket.fileno():
            self._obey(self._answers())
        elif descriptor != 0:
            self._poll.unregister(descriptor)
            os.close(descriptor)
            self._due = 0.0  # a process has ended
        else:
            self._obey(self._input.read())
            if self._input.ended and not self._over:
                if self._order.calls:
                    self._leave(_JOB_GRACE, f"the first rank on {self._order.name} was ended")
                else:
                    self._leave(_GRACE, "the process that started the run was killed")

    def _obey(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Carry out what the process that started the run has said."""
        if messages:
            self._heard = time.monotonic()
        if OVER in messages:
            self._over = True
            self._say_farewell()
        elif END in messages:
            self._end(0.0)

    def _say_farewell(self) -> None:
        """Repeat the last report until it is answered, so that the watch does not miss this host."""
        self._socket.settimeout(_MOMENT)
        for _ in range(_FAREWELLS if self._order.calls else 0):
            self._report()
            if self._answers():
                return

    def _answers(self) -> list[dict[str, Any]]:
        """Return the answer in the datagram that has arrived, if it is one."""
        try:
            datagram, sender = self._socket.recvfrom(LONGEST)
        except OSError:  # such as that no one listens there
            return []
        sign = self._signs.read(datagram)
        if sign is None:
            return []
        self._beacons = (sender,)
        return [dict(json.loads(sign.content or b"{}"))]

    def _report(self) -> None:
        report = json.dumps(self._lookout.look().as_dict())
        self._await()
        sign = Sign(self._order.name, report.encode() if self._order.calls else b"")
        for beacon in self._beacons:
            with contextlib.suppress(OSError):
                self._socket.sendto(self._signs.make(sign), beacon)
        if not self._order.calls:
            with contextlib.suppress(OSError):
                sys.stdout.write(report + "\n")
                sys.stdout.flush()

    def _await(self) -> None:
        """Have the end of each process noticed at once, where the system can do that."""
        for process in self._lookout.processes():
            if process.pid not in self._awaited and hasattr(os, "pidfd_open"):
                with contextlib.suppress(OSError):
                    self._awaited[process.pid] = os.pidfd_open(process.pid)
                    self._poll.register(self._awaited[process.pid], select.POLLIN)

    def _leave(self, patience: float, reason: str | None) -> None:
        """End the ranks of this host and this agent, and note a given reason in the directory of the run."""
        self._over = True
        self._end(patience)
        if reason is not None:
            self._note(reason)

    def _end(self, patience: float) -> None:
        """End the ranks of this host, and what has started them."""
        mark = f"{MARK}={self._order.token}"
        end(
            lambda: [*processes_marked(mark, here=True), *(process.pid for process in self._lookout.processes())],
            patience,
        )

    def _note(self, reason: str) -> None:
        """Note that the run was lost, unless it is over, or others have resumed it since this agent was started."""
        progress = read_progress(self._run)
        resumed = epoch_number(self._run.epoch) > self._epoch + 1
        if progress is not None and progress["state"] not in STATES and not resumed:
            note_state(self._run, "lost", reason)


def main() -> int:
    """Watch the ranks of this host, and return the exit status."""
    line = _first_line()
    if not line:
        return 0
    agent = _Agent(Order.from_dict(json.loads(line)))
    try:
        agent.serve()
    finally:
        agent.close()
    return 0


def _first_line() -> bytes:
    """Return the first line of standard input, and nothing that follows; empty if there is none."""
    line = b""
    while not line.endswith(b"\n"):
        found = os.read(0, 1)
        if not found:
            return b""
        line += found
    return line


if __name__ == "__main__":
    sys.exit(main())

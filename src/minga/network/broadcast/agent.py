"""One member of the broadcast of a file: a program that another process starts with ``python -m`` and controls.

The two exchange lines of JSON over standard input and output. The first line of input contains the key, so that it
appears in no argument and no environment variable. The agent ends when its standard input is closed, and never leaves
a partial file.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from minga.errors import CaseError, MingaError, RunError
from minga.network.broadcast.files import Announced, Arriving, Source, destination
from minga.network.broadcast.group import Group
from minga.network.broadcast.joining import GroupOptions

__all__ = ["GREETING", "main"]

GREETING = "minga-broadcast"
_PIECE = 1 << 25
"""Bytes of the messages into which a file is divided; members hold that much in memory besides the file."""
_GLANCE = 0.25
"""Seconds between reports of progress."""


class Agent:
    """Executor of one order. Lines of output go to ``answers``."""

    def __init__(self, answers: TextIO) -> None:
        self._answers = answers
        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.arriving: Arriving | None = None

    def say(self, **message: Any) -> None:
        """Send a message as one line of JSON."""
        self._answers.write(json.dumps(message) + "\n")

    def ask(self, value: Any) -> list[Any]:
        """Contribute a value and return the values of all members, in order."""
        self.say(ask=value)
        answer: list[Any] = self.lines.get()["all"]
        return answer

    def run(self) -> None:
        """Send or receive the file, and report the outcome."""
        order = self.lines.get()
        try:
            self.say(done=self._do(order))
        except MingaError as error:
            self.say(failed=error.message, remedy=error.remedy, lost=list(getattr(error, "members", ())))
        except OSError as error:
            self.say(failed=str(error), remedy=None, lost=[])
        finally:
            if self.arriving is not None:
                self.arriving.drop()

    def _do(self, order: Mapping[str, Any]) -> dict[str, Any]:
        rank, size = int(order["rank"]), int(order["size"])
        source = self._prepare(order, rank)
        wishes = GroupOptions(**order["wishes"])
        with Group.by_lines(rank, size, bytes.fromhex(order["key"]), self.ask, wishes) as group:
            self.say(route=group.route, passed_over=group.rejected_routes)
            self.ask(None)  # all members are ready: the measured time starts here
            begin = time.perf_counter()
            if source is not None:
                digest = self._send(group, source)
            else:
                assert self.arriving is not None
                digest = self._receive(group, self.arriving)
            seconds = time.perf_counter() - begin
            if digest != group.bcast(digest if rank == 0 else None):
                raise RunError(
                    "the received data differ from the data that were sent",
                    remedy="send the file again, and check this machine's memory",
                )
            if wishes.on_loss == "raise":
                self.ask(None)  # no member keeps the file unless all have received it
            if self.arriving is not None:
                with self._telling(lambda: {"keeping": True}):  # a slow disk may take long
                    self.arriving.keep()
            return {
                "seconds": seconds,
                "sha256": digest.hex(),
                "statistics": asdict(group.statistics),
                "lost": list(group.lost),
                "passed_over": group.rejected_routes,
            }

    def _prepare(self, order: Mapping[str, Any], rank: int) -> Source | None:
        """Open the file to send or to write. An error of any member is raised by all.

        The sender announces the size and the permissions of its file; name and destination are in the order, which
        comes from the process that started this member.
        """
        source, trouble, announced = None, None, {}
        try:
            if rank == 0:
                source = Source.open(Path(order["file"]))
                announced = {"size": source.size, "mode": source.mode}
        except MingaError as error:
            trouble = [error.message, error.remedy]
        said = self.ask([announced, trouble])
        _raise_trouble([entry[1] for entry in said], order["names"])
        try:
            if rank:
                file = Announced.read(said[0][0])
                path = destination(order["to"], order["name"], order["names"][rank], replace=order["force"])
                self.arriving = Arriving(path, file.size, file.mode, replace=order["force"])
        except MingaError as error:
            trouble = [error.message, error.remedy]
        _raise_trouble(self.ask(trouble), order["names"])
        return source

    def _send(self, group: Group, source: Source) -> bytes:
        digest = hashlib.sha256()
        for start in range(0, source.size, _PIECE):
            piece = source.data[start : start + _PIECE]
            hashing = threading.Thread(target=digest.update, args=(piece,))
            hashing.start()
            with self._telling(partial(_how_far, group, start, source.size)):
                group.bcast(piece)
            hashing.join()
        source.check()
        return digest.digest()

    @contextmanager
    def _telling(self, message: Callable[[], dict[str, Any]]) -> Iterator[None]:
        """Report regularly during the block, so that this member is not considered lost."""
        over = threading.Event()

        def tell() -> None:
            while not over.wait(_GLANCE):
                self.say(**message())

        watcher = threading.Thread(target=tell, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _receive(self, group: Group, arriving: Arriving) -> bytes:
        digest = hashlib.sha256()
        hashing: threading.Thread | None = None
        for start in range(0, len(arriving.data), _PIECE):
            piece = arriving.data[start : start + _PIECE]
            group.bcast(piece)
            if hashing is not None:
                hashing.join()
            hashing = threading.Thread(target=digest.update, args=(piece,))
            hashing.start()
        if hashing is not None:
            hashing.join()
        return digest.digest()


def _how_far(group: Group, start: int, size: int) -> dict[str, Any]:
    return {"sent": start + group.under_way(), "of": size}


def _raise_trouble(troubles: list[Any], names: list[str]) -> None:
    found = [(name, *trouble) for name, trouble in zip(names, troubles, strict=True) if trouble]
    if found:
        raise CaseError("; ".join(f"{name}: {message}" for name, message, _ in found), remedy=found[0][2])


def main() -> int:
    """Carry out one order, and return the exit status."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not mix with the answers
    agent = Agent(answers)
    threading.Thread(target=_listen, args=(sys.stdin, agent), daemon=True).start()
    from importlib.metadata import version

    agent.say(greeting=GREETING, minga=version("minga"), pid=os.getpid())
    agent.run()
    agent.lines.get()  # others may need this member until the parent process has heard from all of them
    return 0


def _listen(lines: TextIO, agent: Agent) -> None:
    try:
        for line in lines:
            agent.lines.put(json.loads(line))
    finally:
        if agent.arriving is not None:
            agent.arriving.drop()
        os._exit(0)  # also leaves a broadcast that would never end


if __name__ == "__main__":
    sys.exit(main())

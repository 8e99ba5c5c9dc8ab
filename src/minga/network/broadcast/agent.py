"""One member of a file's broadcast, started and told what to do by someone else, with ``python -m``.

Lines of JSON come on standard input and go out on standard output. The first line that comes holds the key, so that it
is in no argument and no environment. The agent ends with its standard input, and leaves no half of a file.
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
from minga.network.broadcast.joining import Wishes

__all__ = ["GREETING", "main"]

GREETING = "minga-broadcast"
_PIECE = 1 << 25
"""Bytes of the messages in which a file goes: what members keep in memory beside the file."""
_GLANCE = 0.25
"""Seconds between words about how far it is."""


class Agent:
    """Carries out one order. ``answers`` is where lines go."""

    def __init__(self, answers: TextIO) -> None:
        self._answers = answers
        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.arriving: Arriving | None = None

    def say(self, **message: Any) -> None:
        """Send a line."""
        self._answers.write(json.dumps(message) + "\n")

    def ask(self, value: Any) -> list[Any]:
        """What all members said."""
        self.say(ask=value)
        answer: list[Any] = self.lines.get()["all"]
        return answer

    def run(self) -> None:
        """Send or receive the file, and tell how that went."""
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
        wishes = Wishes(**order["wishes"])
        with Group.by_lines(rank, size, bytes.fromhex(order["key"]), self.ask, wishes) as group:
            self.say(route=group.route, passed_over=group.passed_over)
            self.ask(None)  # all are there: from here on it counts
            begin = time.perf_counter()
            if source is not None:
                digest = self._send(group, source)
            else:
                assert self.arriving is not None
                digest = self._receive(group, self.arriving)
            seconds = time.perf_counter() - begin
            if digest != group.bcast(digest if rank == 0 else None):
                raise RunError(
                    "what arrived is not what was sent", remedy="send it again, and look at this machine's memory"
                )
            if wishes.on_loss == "raise":
                self.ask(None)  # nobody keeps what others may not get
            if self.arriving is not None:
                with self._telling(lambda: {"keeping": True}):  # a slow disk may take long
                    self.arriving.keep()
            return {
                "seconds": seconds,
                "sha256": digest.hex(),
                "statistics": asdict(group.statistics),
                "lost": list(group.lost),
                "passed_over": group.passed_over,
            }

    def _prepare(self, order: Mapping[str, Any], rank: int) -> Source | None:
        """Open both ends of the way. All members learn of the trouble of any.

        The sender says how long its file is and what its permissions are; its name and place are in the order, which is
        from whoever started this member.
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
    def _telling(self, words: Callable[[], dict[str, Any]]) -> Iterator[None]:
        """Say something now and then, so that nobody takes this member for gone."""
        over = threading.Event()

        def tell() -> None:
            while not over.wait(_GLANCE):
                self.say(**words())

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
    """Serve one order."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not come between the answers
    agent = Agent(answers)
    threading.Thread(target=_listen, args=(sys.stdin, agent), daemon=True).start()
    from importlib.metadata import version

    agent.say(greeting=GREETING, minga=version("minga"), pid=os.getpid())
    agent.run()
    agent.lines.get()  # until whoever started it has heard everything, others may need this member
    return 0


def _listen(lines: TextIO, agent: Agent) -> None:
    try:
        for line in lines:
            agent.lines.put(json.loads(line))
    finally:
        if agent.arriving is not None:
            agent.arriving.drop()
        os._exit(0)  # also out of a broadcast that will never end


if __name__ == "__main__":
    sys.exit(main())

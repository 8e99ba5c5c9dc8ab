"""Member of the broadcast of a file, a directory or a pipe: a program that another process starts and controls.

The two exchange lines of JSON over standard input and output. The first line of input contains the key, so that it
appears in no argument and no environment variable. The agent ends when its standard input is closed. What it leaves of
a broken transfer is hidden beside the destination, for the next one to continue.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from minga.errors import CaseError, MingaError
from minga.network.broadcast.compression import Compressor
from minga.network.broadcast.content import plan, receive, send
from minga.network.broadcast.files import Arriving, destination
from minga.network.broadcast.group import Group
from minga.network.broadcast.joining import GroupOptions
from minga.network.broadcast.lost import MembersLost
from minga.network.broadcast.manifest import Kind, Manifest
from minga.network.broadcast.source import Source

__all__ = ["GREETING", "main"]

GREETING = "minga-broadcast"


class Agent:
    """Executor of one order. Lines of output go to ``answers``."""

    def __init__(self, answers: TextIO) -> None:
        self._answers = answers
        self._speaking = threading.Lock()
        self.progress: Callable[[], dict[str, Any]] = dict
        """Function that returns the progress to report."""
        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.arriving: Arriving | None = None

    def say(self, **message: Any) -> None:
        """Send a message as one line of JSON."""
        with self._speaking:
            self._answers.write(json.dumps(message) + "\n")

    def ask(self, value: Any) -> list[Any]:
        """Contribute a value and return the values of all members, in order."""
        self.say(ask=value)
        answer: list[Any] = self.lines.get()["all"]
        return answer

    def run(self) -> None:
        """Send or receive, and report the outcome."""
        order = self.lines.get()
        threading.Thread(target=self._beat, args=(order["beat"],), daemon=True).start()
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
        source, path = self._prepare(order, rank)
        wishes = GroupOptions(**order["wishes"])
        with Group.by_lines(rank, size, bytes.fromhex(order["key"]), self.ask, wishes) as group:
            self.say(route=group.route, passed_over=group.rejected_routes)
            if source is not None:
                report = self._send(group, source, order)
            else:
                assert path is not None
                report = self._receive(group, path, order, rank)
            if wishes.on_loss == "raise":
                self.ask(None)  # no member keeps anything unless all have received it
            if self.arriving is not None:
                self.arriving.keep()
            return {
                **report,
                "statistics": asdict(group.statistics),
                "lost": list(group.lost),
                "passed_over": group.rejected_routes,
            }

    def _prepare(self, order: Mapping[str, Any], rank: int) -> tuple[Source | None, Path | None]:
        """Open the source, or check the destination. An error of any member is raised by all.

        The sender announces only the kind; name and destination are in the order, which comes from the process that
        started this member.
        """
        source, path, trouble = None, None, None
        try:
            if rank == 0:
                source = Source.open(Path(order["file"]))
        except MingaError as error:
            trouble = [error.message, error.remedy]
        said = self.ask([source.manifest.kind if source is not None else None, trouble])
        _raise_trouble([entry[1] for entry in said], order["names"])
        try:
            if rank:
                kind: Kind = "tree" if said[0][0] == "tree" else "pipe" if said[0][0] == "pipe" else "file"
                here = order["names"][rank]
                path = destination(order["to"], order["name"], here, kind=kind, replace=order["force"])
        except MingaError as error:
            trouble = [error.message, error.remedy]
        _raise_trouble(self.ask(trouble), order["names"])
        return source, path

    def _send(self, group: Group, source: Source, order: Mapping[str, Any]) -> dict[str, Any]:
        group.bcast(source.manifest.pack())
        said = self.ask([None, []])
        _raise_trouble([entry[0] for entry in said], order["names"])
        intended, valid = plan(source, [entry[1] for entry in said[1:]])
        group.bcast(json.dumps(valid).encode())
        self.ask(None)  # all members are ready: the measured time starts here
        begin = time.perf_counter()
        state: list[int | None] = [0, None]

        def told(sent: int, of: int | None) -> None:
            state[:] = sent, of

        rate = order["wishes"]["rate"] and order["wishes"]["rate"] / 8
        self.progress = lambda: {"sent": (state[0] or 0) + group.under_way(), "of": state[1]}
        sent = send(group, source, intended.ranges, Compressor(order["compress"]), told, rate)
        return {
            "seconds": time.perf_counter() - begin,
            "sha256": sent.digest.hex(),
            "kind": source.manifest.kind,
            "files": len(source.manifest.files),
            "bytes": sent.size,
            "sent_bytes": sent.raw,
            "packed_bytes": sent.packed,
            "changed_bytes": intended.refuted,
        }

    def _receive(self, group: Group, path: Path, order: Mapping[str, Any], rank: int) -> dict[str, Any]:
        trouble, claims = None, []
        try:
            manifest = Manifest.read(bytes(group.bcast()))
            self.arriving = Arriving(path, manifest, replace=order["force"], resume=order["resume"])
            claims = [one.as_list() for one in self.arriving.claims()]
        except MembersLost:
            raise
        except MingaError as error:
            trouble = [error.message, error.remedy]
        _raise_trouble([entry[0] for entry in self.ask([trouble, claims])], order["names"])
        assert self.arriving is not None
        mine = json.loads(bytes(group.bcast()))[rank - 1]
        self.arriving.accept([(int(begin), int(end)) for begin, end in mine])
        self.ask(None)
        begin = time.perf_counter()
        size, digest = receive(group, self.arriving)
        seconds = time.perf_counter() - begin
        self.arriving.complete(size)
        return {"seconds": seconds, "sha256": digest.hex(), "changed": self.arriving.changed}

    def _beat(self, pause: float) -> None:
        """Report regularly, so that this member is not considered lost while it reads or writes its disk."""
        while True:
            self.say(**{"alive": True, **self.progress()})
            time.sleep(pause)


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

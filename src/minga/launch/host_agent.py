"""Agent on a host that takes part in a run (``python -m minga.launch.host_agent``), controlled by lines of JSON.

It reports what the host has, and receives copies of files. At the end of its standard input it waits until the ranks of
the run on this host are gone, ends those that are left, and removes the copies: so nothing stays, whatever happens to
the process that started it, but the checkpoints of a run that is not complete.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import platform
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from minga.engine.pin import available_cores
from minga.errors import LaunchError
from minga.launch.launcher import library
from minga.launch.machine_id import machine_id
from minga.launch.processes import end, processes_marked
from minga.launch.ranks import MARK
from minga.launch.stand_in import StandIn
from minga.output.versions import versions_here
from minga.plan.machine.resources import processor_name

__all__ = ["GREETING", "digest_of", "main"]

GREETING: Final = "minga-host"
_REACHING: Final = 3.0
"""Seconds in which the machine that starts the run must be reached."""
_PATIENCE: Final = 30.0
"""Seconds that ranks get to end by themselves if the process that started the run is gone."""
_PAUSE: Final = 0.1
_BLOCK: Final = 1 << 20


def main() -> int:
    """Carry out orders until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not mix with the answers
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit())
    agent = _Agent()
    try:
        _say(answers, {"greeting": GREETING, **_identity()})
        for line in sys.stdin:
            order = json.loads(line)
            answer = agent.carry_out(order)
            if answer is not None:
                _say(answers, {"answer": answer})
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        agent.leave()
    return 0


def digest_of(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


class _Agent:
    """Orders that the agent has carried out, and the copies that it has to remove."""

    def __init__(self) -> None:
        self.mark = ""
        self.copy: StandIn | None = None
        self.patience = _PATIENCE
        self.orders: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "check": self.check,
            "compare": _compare,
            "begin": self.begin,
            "file": self.file,
            "bytes": self.add,
            "staged": self.staged,
            "end": self.end,
        }

    def carry_out(self, order: Mapping[str, Any]) -> Any:
        """Carry out an order and return the answer, None for orders without one."""
        return self.orders[order["do"]](order)

    def check(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Return which programs are missing, and why this machine cannot be used, each None if nothing is wrong."""
        self.mark = order["mark"]
        return {
            "missing": [path for path in order["needs"] if not Path(path).exists()],
            "back": None if order["back"] is None else _way_back(order["back"], order["token"]),
            "directory": _fault_of(order["directory"]),
        }

    def begin(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Make the folder for copies; return it, or why that is not possible."""
        try:
            self.copy = StandIn.made(order["directory"], order["name"])
            self.copy.room(order.get("rooms", ()))
        except OSError as error:
            return {"fault": f"{error.filename}: {error.strerror}"}
        return {"folder": str(self.copy.folder)}

    def file(self, order: Mapping[str, Any]) -> None:
        """Begin a file; its content follows in the orders "bytes"."""
        assert self.copy is not None
        self.copy.begin(order["name"])

    def add(self, order: Mapping[str, Any]) -> None:
        """Append bytes to the present file."""
        assert self.copy is not None
        self.copy.append(base64.b64decode(order["data"]))

    def staged(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Return which files did not arrive as they were sent, by their digests, and why."""
        assert self.copy is not None
        return {"fault": self.copy.settle(order["digests"], digest_of)}

    def end(self, order: Mapping[str, Any]) -> None:
        """Note that the run is over, so that nothing is waited for."""
        self.patience = 0.0

    def leave(self) -> None:
        """End the ranks that are left on this host, and remove all copies."""
        deadline = time.monotonic() + self.patience
        mark = f"{MARK}={self.mark}"
        if self.mark:
            while processes_marked(mark, here=True) and time.monotonic() < deadline:
                time.sleep(_PAUSE)
            end(lambda: processes_marked(mark, here=True))
        if self.copy is not None:
            self.copy.leave()


def _identity() -> dict[str, Any]:
    found: dict[str, Any] = {"mpi_fault": None}
    try:
        library()  # so that its version is among the versions
    except LaunchError as error:
        found["mpi_fault"] = error.message
    return found | {
        "host": platform.node(),
        "machine": machine_id(),
        "cores": len(available_cores()),
        "processor": processor_name(),
        "architecture": platform.machine(),
        "versions": versions_here(),
        "clock": time.time(),
    }


def _compare(order: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether this host sees a folder with a token in it, and which files it has with the same content.

    A file counts as the same if its size and its digest agree; on a host that sees the folder, the time of change may
    take the place of the digest, which is not given then.
    """
    shares = False
    with contextlib.suppress(OSError):
        shares = Path(order["token"]).read_text() == order["text"]
    alike = []
    for path, size, changed, digest in order["files"]:
        try:
            there = Path(path).stat()
            same = shares and there.st_mtime_ns == changed
            same = same or (digest is not None and digest_of(Path(path)) == digest)
            alike.append(there.st_size == size and same)
        except OSError:
            alike.append(False)
    return {"shares": shares, "alike": alike, "directory": Path(order["directory"]).is_dir()}


def _way_back(address: Sequence[Any], token: str) -> str | None:
    """Return why this host does not reach the machine that starts the run, None if it does."""
    try:
        with socket.create_connection((address[0], address[1]), timeout=_REACHING) as link:
            link.settimeout(_REACHING)
            said = link.makefile("rb").read(len(token)).decode(errors="replace")
    except OSError as error:
        return error.strerror or str(error)
    return None if said == token else "another machine answered"


def _fault_of(directory: str | None) -> str | None:
    """Return why copies cannot be stored in a directory."""
    if directory is None or (Path(directory).is_dir() and os.access(directory, os.W_OK)):
        return None
    return "cannot be written" if Path(directory).is_dir() else "is no directory"


def _say(answers: Any, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        answers.write(json.dumps(message) + "\n")


if __name__ == "__main__":
    sys.exit(main())

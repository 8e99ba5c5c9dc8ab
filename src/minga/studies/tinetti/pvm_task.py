"""A PVM task, by ctypes with Debian's libpvm3; requires only the standard library, as it is started by its path.

    python -P pvm_task.py parent ORDER     spawns children, has them answer, prints a line of JSON
    python -P pvm_task.py child ROUTE ENCODING
    python -P pvm_task.py halt             ends all daemons

ORDER is JSON: ``task`` ("pingpong" or "broadcast"), ``hosts`` (names of PVM's hosts, on which the children run),
``route`` and ``encoding`` (of :data:`ROUTES` and :data:`ENCODINGS`), ``sizes`` in bytes, ``rounds`` by size,
``program`` (the program that PVM starts as a child), ``warm`` (number of initial empty messages) and ``patience``
(seconds to wait for all hosts). As in Tinetti's programs, a message is a count followed by that many doubles, packed
and unpacked on both sides.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

__all__ = ["ENCODINGS", "LIBRARY", "ROUTES", "main"]

LIBRARY: Final = "libpvm3.so.3"
ROUTES: Final = {"daemon": 1, "direct": 3}
"""PvmDontRoute: through the daemons, over UDP. PvmRouteDirect: from task to task, over TCP."""
ENCODINGS: Final = {"xdr": 0, "raw": 1, "inplace": 2}
"""PvmDataDefault, PvmDataRaw, PvmDataInPlace: encoded and copied, copied, neither."""

_ROUTE_OPTION: Final = 1
_ON_HOST: Final = 1
_MESSAGE, _ANSWER, _END = 1, 2, 3
_DOUBLE: Final = 8


class Pvm:
    """Required calls of libpvm; RuntimeError with the name of a call that fails."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        self.tid = self("mytid")

    def __call__(self, name: str, *arguments: Any) -> int:
        """Call ``pvm_NAME``."""
        found = int(getattr(self._library, f"pvm_{name}")(*arguments))
        if found < 0:
            raise RuntimeError(f"pvm_{name} returned {found}")
        return found

    def hosts(self) -> int:
        """Return the number of hosts."""
        count, architectures, table = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
        self("config", ctypes.byref(count), ctypes.byref(architectures), ctypes.byref(table))
        return count.value

    def spawn(self, program: str, arguments: Sequence[str], host: str) -> int:
        """Start a child on a host and return its task."""
        argv = (ctypes.c_char_p * (len(arguments) + 1))(*(word.encode() for word in arguments), None)
        task = ctypes.c_int()
        if self("spawn", program.encode(), argv, _ON_HOST, host.encode(), 1, ctypes.byref(task)) != 1:
            raise RuntimeError(f"no child was started on {host}: PVM says {task.value}")
        return task.value


class Message:
    """A count and doubles, in memory of its own."""

    def __init__(self, pvm: Pvm, encoding: int) -> None:
        self.pvm, self.encoding = pvm, encoding
        self.count = ctypes.c_int()
        self.values = (ctypes.c_double * 1)()

    def hold(self, count: int) -> None:
        """Ensure room for ``count`` doubles."""
        if len(self.values) < count:
            self.values = (ctypes.c_double * count)(*(0.5 * k for k in range(count)))

    def pack(self, count: int) -> None:
        """Pack the first ``count`` doubles."""
        self.count.value = count
        self.pvm("initsend", self.encoding)
        self.pvm("pkint", ctypes.byref(self.count), 1, 1)
        if count:
            self.pvm("pkdouble", self.values, count, 1)

    def unpack(self) -> int:
        """Unpack a message and return its count."""
        self.pvm("upkint", ctypes.byref(self.count), 1, 1)
        count = self.count.value
        self.hold(count)
        if count:
            self.pvm("upkdouble", self.values, count, 1)
        return count


def child(route: str, encoding: str) -> None:
    """Send every message back unchanged, and answer every broadcast with a count, until told to end."""
    pvm = Pvm()
    pvm("setopt", _ROUTE_OPTION, ROUTES[route])
    parent = pvm("parent")
    message = Message(pvm, ENCODINGS[encoding])
    tag, size, sender = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    while True:
        buffer = pvm("recv", parent, -1)
        pvm("bufinfo", buffer, ctypes.byref(size), ctypes.byref(tag), ctypes.byref(sender))
        if tag.value == _END:
            break
        count = message.unpack()
        message.pack(count if tag.value == _MESSAGE else 0)
        pvm("send", parent, _MESSAGE)
    pvm("exit")


def parent(order: Mapping[str, Any]) -> dict[str, Any]:
    """Measure; return seconds by bytes, for a broadcast by number of children and bytes."""
    pvm = Pvm()
    hosts: list[str] = order["hosts"]
    until = time.monotonic() + order["patience"]
    while pvm.hosts() < len(hosts) + 1:
        if time.monotonic() > until:
            raise RuntimeError(f"PVM has {pvm.hosts()} of {len(hosts) + 1} hosts after {order['patience']:g} s")
        time.sleep(0.05)
    pvm("setopt", _ROUTE_OPTION, ROUTES[order["route"]])
    tasks = [pvm.spawn(order["program"], ["child", order["route"], order["encoding"]], host) for host in hosts]
    message = Message(pvm, ENCODINGS[order["encoding"]])
    message.hold(max(order["sizes"]) // _DOUBLE)
    for task in tasks:  # the first message opens a direct connection
        _pingpong(pvm, message, task, 1, order["warm"])
    found: dict[str, Any]
    if order["task"] == "pingpong":
        found = {
            str(n): _pingpong(pvm, message, tasks[0], n // _DOUBLE, order["rounds"][str(n)]) for n in order["sizes"]
        }
    else:
        found = {
            str(members): {
                str(n): _broadcast(pvm, message, tasks[:members], n // _DOUBLE, order["rounds"][str(n)])
                for n in order["sizes"]
            }
            for members in order["receivers"]
        }
    message.pack(0)
    for task in tasks:
        pvm("send", task, _END)
    pvm("exit")
    return found


def _pingpong(pvm: Pvm, message: Message, task: int, count: int, rounds: int) -> list[float]:
    """Return one-way times in s: half of the round-trip times."""
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        message.pack(count)
        pvm("send", task, _MESSAGE)
        pvm("recv", task, _MESSAGE)
        message.unpack()
        seconds.append((time.perf_counter() - began) / 2)
    return seconds


def _broadcast(pvm: Pvm, message: Message, tasks: Iterable[int], count: int, rounds: int) -> list[float]:
    """Return the times in s until the last child has answered."""
    all_tasks = list(tasks)
    tids = (ctypes.c_int * len(all_tasks))(*all_tasks)
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        message.pack(count)
        pvm("mcast", tids, len(all_tasks), _ANSWER)
        for _ in all_tasks:
            pvm("recv", -1, _MESSAGE)
        seconds.append(time.perf_counter() - began)
    return seconds


def main(arguments: Sequence[str]) -> int:
    """Run the task given by the arguments; return 1, with a line on standard error, if PVM fails."""
    try:
        if arguments[0] == "child":
            child(*arguments[1:3])
        elif arguments[0] == "halt":
            Pvm()("halt")
        else:
            print(json.dumps(parent(json.loads(arguments[1]))), flush=True)
    except (RuntimeError, OSError) as error:
        sys.stderr.write(f"pvm: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

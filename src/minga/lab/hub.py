"""A hub or switch in user space, which does on the ports of a lab what the kernel's bridge cannot.

    python -m minga.lab.hub --ports p0,p1,p2 [--rate BITS_A_SECOND[,...]] [--latency SECONDS] [--loss P]
                            [--duplicate P] [--reorder P] [--seed N] [--switch] [--switches N,N,N]
                            [--uplink SECONDS] [--status FILE] [--process PID]

The program runs in the network namespace that contains the ports, which must be up and belong to no bridge; no other
traffic shaping is needed. The nodes' interfaces must not offload checksums or segmentation (``tx-checksum``, ``tso``,
``gso`` and ``gro`` off). A hub is one shared medium: a frame keeps it busy for all nodes, as on 10BASE-T with a
repeater. With ``--switch`` each port has one line in each direction, with its own rate if as many rates as ports are
given, and frames are stored before they are forwarded. ``--switches`` numbers the switch of each port: between two of
them frames take ``--uplink`` seconds longer. Python forwards some tens of thousands of frames per second,
enough for 100 Mb/s.

FILE is JSON. It is replaced atomically when the hub is ready, on SIGUSR1, at least every second while frames pass, and
at the end: ``{"pid": ..., "ended": null | reason, "ports": [...], "frames": ..., "bytes": ..., "lost": ..., ...}``.
The hub ends on SIGTERM or SIGINT, when a port disappears, and together with process PID. Only the standard library is
needed, so the file can also be run by its path.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import json
import os
import random
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

__all__ = ["Counts", "Hub", "main"]

_HEADER, _SHORTEST, _BETWEEN = 14, 60, 24
"""Bytes of the Ethernet header; of the shortest frame without checksum; of preamble, checksum and gap (802.3)."""
_SECOND_COPY = 0.5e-3
"""Seconds by which a duplicate follows its frame."""
_QUEUE = 8 << 20
"""Capacity of the queue in bytes; a frame that does not fit is dropped, since every real queue is finite."""
_AT_ONCE = 32
"""Largest number of frames taken from one port before the next port is served."""

_ALL_PROTOCOLS = 3  # ETH_P_ALL
_SOL_PACKET, _IGNORE_OUTGOING, _RECEIVE_BUFFER_FORCE = 263, 23, 33


@dataclass(slots=True)
class Counts:
    """Counters of frames.

    ``frames`` and ``bytes`` count what came in; a broadcast or multicast frame comes in once and is sent many times.
    """

    frames: int = 0
    bytes: int = 0
    sent: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    overflowed: int = 0
    """Frames dropped because the queue was full."""
    refused: int = 0
    """Frames that the kernel refused, usually because the sender offloads segmentation and they exceed the MTU."""


@dataclass(slots=True)
class Hub:
    """Model of a hub or switch that decides where and when frames leave; it does no I/O and reads no clock.

    ``rates`` are in bit/s, one for a hub, or one for all or for each of the ports of a switch; 0 means no limit.
    ``latency`` is in seconds, and so is ``uplink``, which comes in addition between ports of different ``switches`` (a
    number for each port; none: all are at the same one). ``loss``, ``duplicate`` and ``reorder`` are probabilities,
    drawn independently for each outgoing port. The same frames with the same ``seed`` are treated in the same way.
    """

    ports: int
    rates: Sequence[float] = (0.0,)
    shared: bool = True
    """True for one medium for all ports (a hub), False for a line for each port and direction (a switch)."""
    latency: float = 0.0
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    seed: int = 0
    switches: Sequence[int] = ()
    uplink: float = 0.0
    counts: Counts = field(default_factory=Counts)
    _random: random.Random = field(init=False)
    _known: dict[bytes, int] = field(default_factory=dict, init=False)
    _busy: list[float] = field(init=False)
    _waiting: list[tuple[float, int, int, bytes]] = field(default_factory=list, init=False)
    _queued: int = field(default=0, init=False)
    _pushed: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._busy = [0.0] * (1 if self.shared else 2 * self.ports)

    def serialisation(self, line: int, frame: bytes) -> float:
        """Return the seconds for which a frame occupies a line.

        Line 0 is the medium of a hub; a switch numbers first its incoming lines by port, then its outgoing ones.
        """
        rate = self.rates[line % self.ports % len(self.rates)]
        return (max(_SHORTEST, len(frame)) + _BETWEEN) * 8 / rate if rate else 0.0

    def receive(self, now: float, port: int, frame: bytes) -> None:
        """Take a frame that a node sent into ``port`` at time ``now``."""
        if len(frame) < _HEADER:
            return
        self.counts.frames += 1
        self.counts.bytes += len(frame)
        self._known[frame[6:12]] = port
        arrived = self._occupy(0 if self.shared else port, now, frame)
        for output in self._outputs(port, frame):
            line = 0 if self.shared else self.ports + output
            left = arrived if self.shared else self._occupy(line, arrived, frame)
            self._send(left + self._between(port, output), line, output, frame)

    def due(self, now: float) -> list[tuple[int, bytes]]:
        """Remove and return the frames that leave until time ``now``, in order, each with its port."""
        leaving = []
        while self._waiting and self._waiting[0][0] <= now:
            _, _, port, frame = heapq.heappop(self._waiting)
            self._queued -= len(frame)
            leaving.append((port, frame))
        self.counts.sent += len(leaving)
        return leaving

    def next_departure(self) -> float | None:
        """Return the time at which the next frame leaves; None if none is waiting."""
        return self._waiting[0][0] if self._waiting else None

    def _outputs(self, port: int, frame: bytes) -> list[int]:
        """Return the port of a frame's destination, or all others for group and not yet learnt addresses."""
        known = None if frame[0] & 1 else self._known.get(frame[:6])
        if known is None:
            return [output for output in range(self.ports) if output != port]
        return [known] if known != port else []

    def _between(self, port: int, output: int) -> float:
        """Return the seconds that frames take from the switch of a port to that of another one."""
        return self.uplink if self.switches and self.switches[port] != self.switches[output] else 0.0

    def _occupy(self, line: int, now: float, frame: bytes) -> float:
        """Occupy a line with a frame that arrives ``now``, after earlier frames; return the time when it has passed."""
        self._busy[line] = max(self._busy[line], now) + self.serialisation(line, frame)
        return self._busy[line]

    def _send(self, left: float, line: int, port: int, frame: bytes) -> None:
        # All three numbers are drawn for every frame, so that changing one probability does not affect the others.
        lost, late, twice = (self._random.random() for _ in range(3))
        if lost < self.loss:
            self.counts.lost += 1
            return
        departure = left + self.latency
        if late < self.reorder:
            self.counts.reordered += 1
            departure += 3 * self.serialisation(line, frame) + 1e-3
        self._push(departure, port, frame)
        if twice < self.duplicate:
            self.counts.duplicated += 1
            self._push(departure + _SECOND_COPY, port, frame)

    def _push(self, departure: float, port: int, frame: bytes) -> None:
        if self._queued + len(frame) > _QUEUE:
            self.counts.overflowed += 1
            return
        self._queued += len(frame)
        self._pushed += 1
        heapq.heappush(self._waiting, (departure, self._pushed, port, frame))


@dataclass(slots=True)
class _Status:
    """Status file through which other processes can read the counters of the hub."""

    path: Path | None
    ports: Sequence[str]
    counts: Counts
    wanted: bool = True
    written: float = 0.0
    frames: int = -1

    def refresh(self, now: float) -> None:
        if self.wanted or (now - self.written > 1.0 and self.frames != self.counts.frames):
            self.write(now, None)

    def write(self, now: float, ended: str | None) -> None:
        self.wanted, self.written, self.frames = False, now, self.counts.frames
        if self.path is None:
            return
        state = {"pid": os.getpid(), "ended": ended, "ports": list(self.ports)} | asdict(self.counts)
        part = self.path.with_name(self.path.name + ".part")
        part.write_text(json.dumps(state) + "\n")
        part.replace(self.path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Forward frames until a signal arrives, a port disappears or the watched process ends; return the exit status."""
    options = _parser().parse_args(arguments)
    names = [name for name in options.ports.split(",") if name]
    hub = Hub(
        len(names),
        [float(rate) for rate in options.rate.split(",")],
        not options.switch,
        options.latency,
        options.loss,
        options.duplicate,
        options.reorder,
        options.seed,
        [int(number) for number in options.switches.split(",") if number],
        options.uplink,
    )
    status = _Status(options.status, names, hub.counts)
    asked: list[str] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.append("asked to end"))
    signal.signal(signal.SIGUSR1, lambda *_: setattr(status, "wanted", True))
    try:
        sockets = [_open(name) for name in names]
        watched = None if options.process is None else os.pidfd_open(options.process)
    except OSError as error:
        sys.stderr.write(f"minga lab hub: {error}\n")
        status.write(time.monotonic(), str(error))
        return 1
    try:
        ended = _forward(hub, sockets, names, watched, status, asked)
    finally:
        for port in sockets:
            port.close()
    status.write(time.monotonic(), ended)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m minga.lab.hub", description="A hub or switch in user space.")
    parser.add_argument("--ports", required=True, help="interfaces, separated by commas")
    parser.add_argument(
        "--rate", default="0", help="bit/s; for a switch one rate for all ports or one for each; 0: no limit"
    )
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    for name in ("loss", "duplicate", "reorder"):
        parser.add_argument(f"--{name}", type=float, default=0.0, help="its probability for each frame")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--switch", action="store_true", help="one line for each port instead of one medium for all")
    parser.add_argument("--switches", default="", help="the number of the switch of each port")
    parser.add_argument("--uplink", type=float, default=0.0, help="seconds that frames between switches take longer")
    parser.add_argument("--status", type=Path, help="file for the counters")
    parser.add_argument("--process", type=int, help="end together with this process")
    return parser


def _open(name: str) -> socket.socket:
    """Open a raw socket that receives what arrives at an interface, but not what this program sends there."""
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    try:
        port.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
        with contextlib.suppress(OSError):  # without the privilege, keep the default size
            port.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCE, 8 << 20)
        port.setblocking(False)
        port.bind((name, _ALL_PROTOCOLS))
    except OSError as error:
        port.close()
        raise OSError(error.errno, f"port {name}: {error.strerror}") from error
    return port


def _forward(
    hub: Hub,
    sockets: Sequence[socket.socket],
    names: Sequence[str],
    watched: int | None,
    status: _Status,
    asked: Sequence[str],
) -> str:
    """Forward frames until the end and return its reason.

    `select` waits with microsecond resolution, `epoll` only with millisecond resolution.
    """
    number = {port: index for index, port in enumerate(sockets)}
    inputs: list[socket.socket | int] = [*sockets] + ([] if watched is None else [watched])
    while not asked:
        now = time.monotonic()
        for output, frame in hub.due(now):
            _transmit(sockets[output], frame, hub.counts)
        status.refresh(now)
        departure = hub.next_departure()
        pause = 0.2 if departure is None else min(0.2, max(0.0, departure - time.monotonic()))
        readable, _, _ = select.select(inputs, (), (), pause)
        for port in readable:
            if not isinstance(port, socket.socket):
                return "the process that the hub belonged to has ended"
            if not _take(hub, port, number[port]) and not _is_there(names[number[port]]):
                return f"port {names[number[port]]} has disappeared"
    return asked[0]


def _take(hub: Hub, port: socket.socket, number: int) -> bool:
    """Pass the frames that have arrived at a port to the hub; return False if the port reports that it is down."""
    for _ in range(_AT_ONCE):
        try:
            frame = port.recv(65536)
        except BlockingIOError:
            return True
        except OSError:
            return False
        hub.receive(time.monotonic(), number, frame)
    return True


def _is_there(name: str) -> bool:
    try:
        socket.if_nametoindex(name)
    except OSError:
        return False
    return True


def _transmit(port: socket.socket, frame: bytes, counts: Counts) -> None:
    try:
        port.send(frame)
    except OSError:  # longer than the port allows, or the port is down
        counts.refused += 1


if __name__ == "__main__":
    sys.exit(main())

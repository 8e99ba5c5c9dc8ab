"""Worker that carries out the orders given to one member of a team: listen, echo, ping, or describe itself.

Orders and replies are JSON. The same worker is used by an agent on a host, which gets orders through a pipe, and by a
rank of an MPI job.
"""

from __future__ import annotations

import socket
import time
from dataclasses import asdict
from typing import Any

from minga.errors import RunError
from minga.network.measuring import sampling
from minga.network.measuring.caches import arena_bytes, last_cache
from minga.network.measuring.encodings import encoding_costs, foreign, own_order
from minga.network.measuring.environment import counters, environment, identity, interfaces
from minga.network.measuring.one_way import measure_one_way
from minga.network.measuring.overhead import measure_overhead
from minga.network.measuring.overlap import measure_overlap
from minga.network.measuring.trains import measure_trains
from minga.network.measuring.transports import Mode, Pinger, Unavailable, icmp, tcp, udp
from minga.network.measuring.transports.encoded import EncodedPinger, echo_encoded
from minga.network.measuring.transports.mpi import MpiWire
from minga.network.measuring.transports.stream import StreamPinger, Wire, echo
from minga.network.measuring.transports.udpbcast import BroadcastPinger, echo_broadcast

__all__ = ["Order", "Reply", "Worker"]

Order = dict[str, Any]
Reply = dict[str, Any]

_PATIENCE, _FIRST = 30.0, 8.0
"""Seconds of silence on a connection, and seconds to wait for the connection, after which an end gives up."""


class Worker:
    """Executor of orders. MPI needs a ``communicator`` of mpi4py that is used for nothing else."""

    def __init__(self, communicator: Any = None) -> None:
        self.communicator = communicator
        self._open: dict[str, socket.socket] = {}

    def do(self, order: Order) -> Reply:
        """Carry out one order and return the reply; ``failed`` in the reply describes an error."""
        try:
            return self._do(order)
        except Unavailable as error:
            return {"failed": error.message, "remedy": error.remedy, "unavailable": True}
        except (OSError, EOFError) as error:
            return {"failed": str(error) or type(error).__name__, "remedy": None, "unavailable": False}

    def close(self) -> None:
        """Close all open sockets."""
        for waiting in self._open.values():
            waiting.close()
        self._open.clear()

    def _do(self, order: Order) -> Reply:
        match order["do"]:
            case "identity":
                return identity()
            case "environment":
                return environment(order.get("address"))
            case "counters":
                return {"counters": counters(order["interface"])}
            case "encodings":
                return _encodings(order)
            case "open":
                return self._listen(order)
            case "echo":
                return {"served": self._echo(order)}
            case "ping":
                return self._ping(order)
            case "overhead" | "trains" | "one_way":
                return {"points": self._both(order)}
            case "overlap":
                points = measure_overlap(self.communicator, order["peer"], order["sizes"], order["budget"])
                return {"points": [point.as_dict() for point in points]}
        raise RunError(f"an agent received the order {order['do']!r}, which it does not know")

    def _listen(self, order: Order) -> Reply:
        # If the address is not one of this machine's (because of address translation), any address will do.
        own = {one["address"] for one in interfaces()}
        address = order["address"] if order["address"] in own else "0.0.0.0"
        bound = udp.bind(address) if order["transport"] == "udp" else tcp.listen(address, _options(order))
        self._open[order["token"]] = bound
        return {"port": bound.getsockname()[1]}

    def _echo(self, order: Order) -> int:
        token = bytes.fromhex(order["token"])
        if order["transport"] == "mpi":
            return _answer(MpiWire(self.communicator, order["peer"]), order)
        waiting = self._open.pop(order["token"])
        if order["transport"] == "udp":
            return udp.echo(waiting, token, _PATIENCE)
        wire = tcp.accept(waiting, token, _options(order), _FIRST)
        try:
            if order["transport"] == "udpbcast":
                return echo_broadcast(wire, token)
            return _answer(wire, order)
        except EOFError:
            return 0
        finally:
            wire.close()

    def _ping(self, order: Order) -> Reply:
        pinger = self._pinger(order)
        try:
            if order["task"] == "ladder":
                return {"samples": [one.as_dict() for one in _ladder(pinger, order)]}
            return {"seconds": [_repeated(pinger, *part) for part in order["parts"]]}
        finally:
            pinger.close()

    def _pinger(self, order: Order) -> Pinger:
        if order["transport"] == "icmp":
            return icmp.IcmpPinger(order["address"])
        if order["transport"] == "udp":
            return udp.UdpPinger(order["address"], order["port"], bytes.fromhex(order["token"]))
        if order["transport"] == "udpbcast":
            return BroadcastPinger(self._tcp(order), bytes.fromhex(order["token"]))
        wire = self._wire(order)
        if _encoded(order):
            return EncodedPinger(wire, order["encoding"], foreign(own_order()))
        return StreamPinger(wire, _arena(order))

    def _wire(self, order: Order) -> Wire:
        if order["transport"] == "mpi":
            return MpiWire(self.communicator, order["peer"])
        return self._tcp(order)

    def _tcp(self, order: Order) -> tcp.TcpWire:
        token = bytes.fromhex(order["token"])
        return tcp.connect(order["address"], order["port"], token, _options(order), _PATIENCE)

    def _both(self, order: Order) -> list[dict[str, Any]]:
        """Run a measurement that both ends do together, over a separate connection."""
        first = bool(order["first"])
        wire: Wire
        if order["transport"] == "mpi" or first:
            wire = self._wire(order)
        else:
            waiting = self._open.pop(order["token"])
            wire = tcp.accept(waiting, bytes.fromhex(order["token"]), _options(order), _FIRST)
        try:
            match order["do"]:
                case "trains":
                    return measure_trains(wire, first, order["sizes"], order["budget"])
                case "one_way":
                    return measure_one_way(wire, first, order["sizes"], order["budget"])
            return measure_overhead(wire, first, order["sizes"])
        finally:
            wire.close()


def _answer(wire: Wire, order: Order) -> int:
    return echo_encoded(wire) if _encoded(order) else echo(wire, _arena(order))


def _encoded(order: Order) -> bool:
    return bool(order.get("encoding", "none") != "none")


def _arena(order: Order) -> int:
    return arena_bytes() if order.get("cold") else 0


def _encodings(order: Order) -> Reply:
    arena = arena_bytes()
    costs = encoding_costs(order["sizes"], arena, order["budget"])
    return {"last_cache": last_cache(), "arena": arena, "costs": [asdict(cost) for cost in costs]}


def _ladder(pinger: Pinger, order: Order) -> list[sampling.Sample]:
    return sampling.sample(
        pinger, order["sizes"], budget=order["budget"], seed=order["seed"], least=order.get("least", 10)
    )


def _repeated(pinger: Pinger, size: int, mode: Mode, seconds: float, least: int) -> list[float]:
    """Return the times of exchanges that last at least ``seconds`` and are at least ``least`` in number.

    One exchange before them is warm-up. The exchanges are made in small batches, as the other end must know their
    number.
    """
    first = max(pinger.exchange(max(size, pinger.least), 1, mode)[0], 1e-6)
    start = time.perf_counter()
    times: list[float] = []
    # A batch begins with an order and its answer, whose time is not counted: on a hub, it waits for all other pairs.
    batch = least if mode == "both" else int(max(1, min(least, seconds / (4 * first))))
    while len(times) < least or time.perf_counter() - start < seconds:
        times += pinger.exchange(max(size, pinger.least), batch, mode)
    return times


def _options(order: Order) -> tcp.Options:
    plain = order["transport"] != "tcp-nagle"
    return tcp.Options(plain, order.get("buffer"), not plain)

"""Named anomalies of a network: the affected machine, the evidence, and a remedy.

The layers of one machine are compared with each other, and the machines on the same layer: if TCP is slow but ICMP is
normal on the same machine, the wire is fine and the configuration of TCP is not (F. Tinetti, thesis, Appendix C, about
*sofia* and *prited*).
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from minga.network.measuring.curves import Curve
from minga.network.measuring.encodings import BUFFERED
from minga.network.measuring.matrix import PairMatrix

__all__ = ["Anomaly", "find_anomalies"]

Identity = Mapping[str, Any]
Environment = Mapping[str, Any]
Times = dict[int, float]

_BAD: Final = 2.0
"""Ratio to the layer below, or to other machines, above which the time on a layer is anomalous."""
_ODD: Final = 1.3
"""Ratio to the median of the other machines above which a machine is anomalous, if there are enough machines."""
_SURE: Final = 1.15
"""Ratio like ``_ODD``, for the fastest message of each machine."""
_DIFFERENT: Final = 1.5
"""Ratio to the usual value above which a difference is more than noise."""
_CLEAR: Final = 200e-6
"""Seconds below which differences say nothing about configurations."""
_STEPS: Final = (0.02, 0.04, 0.1, 0.2)
"""One-way delays if one or both ends of a ping-pong wait for an acknowledgement: 40 ms on Linux, 200 ms elsewhere."""
_COLLAPSE: Final = 3.0
_SMALL_BUFFER: Final = 65_536
_FREE, _HALVED = 0.85, 0.65
"""Fraction of speed that simultaneous streams in both directions keep: least on a switch, most at half duplex."""


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something wrong with a machine.

    ``node`` is the machine's name, or several names joined by "or" if the machines cannot be told apart.
    """

    name: str
    node: str
    evidence: tuple[str, ...]
    cure: str

    def __str__(self) -> str:
        return f"{self.name} of {self.node}: {'; '.join(self.evidence)}. {self.cure[:1].upper()}{self.cure[1:]}"

    def as_dict(self) -> dict[str, Any]:
        """Return the anomaly as JSON-serialisable data."""
        return asdict(self)


@dataclass(frozen=True)
class _Machine:
    """Curves of a machine for each transport and encoding."""

    number: int
    name: str
    hub: int
    hub_name: str
    curves: Mapping[tuple[str, str], Curve]

    def times(self, transport: str, encoding: str = "none") -> Times:
        """Return the median times in seconds by bytes; empty if they were not measured."""
        curve = self.curves.get((transport, encoding))
        return {} if curve is None else curve.medians()

    def least(self, transport: str) -> Times:
        """Return the minimum times in seconds by bytes; empty if they were not measured."""
        curve = self.curves.get((transport, "none"))
        return {} if curve is None else curve.minima()

    def wire(self) -> Times:
        """Return by size the minimum times of the slower one of ICMP and UDP, which TCP should achieve."""
        icmp, udp = self.least("icmp"), self.least("udp")
        return {size: max(times[size] for times in (icmp, udp) if size in times) for size in sorted({*icmp, *udp})}


def find_anomalies(
    curves: Sequence[Curve],
    known: Mapping[int, Identity],
    around: Mapping[int, Environment],
    matrix: PairMatrix,
) -> list[Anomaly]:
    """Find the anomalies of a network.

    Parameters
    ----------
    curves
        Measured curves.
    known, around
        Identity and environment of the machines, by member.
    matrix
        Measured pairs.

    Returns
    -------
    list of Anomaly
        The anomalies found.
    """
    machines = _machines(curves)
    found = [*_links(machines)]
    waiting = [*_waiting(machines)]
    bad = [*_tcp(machines, around, {one.node for one in waiting})]
    found += waiting + bad
    found += _memory(machines, known)
    found += _interfaces(machines, known, around)
    small = {name: text for number, name in _names(machines).items() if (text := _small_buffers(number, around))}
    # If TCP waits or is slow, its acknowledgements also make the two directions halve each other.
    found += _duplex(_names(machines), around, matrix, _nodes(waiting + bad), small)
    slow = _nodes(one for one in found if one.name == "TCP configuration")
    found += (Anomaly("small buffers", name, tuple(small[name]), _BUFFER_CURE) for name in small if name not in slow)
    return found


def _nodes(anomalies: Iterable[Anomaly]) -> set[str]:
    return {name for one in anomalies for name in one.node.split(" or ")}


def _names(machines: Sequence[_Machine]) -> dict[int, str]:
    return {m.number: m.name for m in machines} | {m.hub: m.hub_name for m in machines}


def _machines(curves: Sequence[Curve]) -> list[_Machine]:
    by_number: dict[int, dict[tuple[str, str], Curve]] = {}
    for curve in curves:
        by_number.setdefault(curve.machine, {})[curve.transport, curve.encoding] = curve
    return [
        _Machine(number, first.name, first.hub, first.hub_name, own)
        for number, own in by_number.items()
        for first in [next(iter(own.values()))]
    ]


def _links(machines: Sequence[_Machine]) -> Iterator[Anomaly]:
    """Find machines that are slow already on the wire."""
    for machine in machines:
        times = machine.wire()
        others = [other.wire() for other in machines if other is not machine]
        if len(others) < 2:
            continue
        for size in sorted(times, reverse=True):
            usual = [other[size] for other in others if size in other]
            if not usual:
                continue
            if times[size] > _BAD * float(np.median(usual)) and times[size] - float(np.median(usual)) > _CLEAR:
                others_take = _time(float(np.median(usual)))
                text = f"{size} bytes take {_time(times[size])} even by ICMP or UDP, {others_take} to other machines"
                cure = f"check the cable, port and negotiated speed of {machine.name}"
                yield Anomaly("slow link", machine.name, (text,), cure)
            break


def _waiting(machines: Sequence[_Machine]) -> Iterator[Anomaly]:
    """Find the delay of delayed acknowledgements over TCP or MPI."""
    for transport in ("tcp", "mpi"):
        stuck = {machine.number: steps for machine in machines if (steps := _steps(machine, transport))}
        for machine in machines:
            if machine.number not in stuck:
                continue
            step, sizes = stuck[machine.number]
            evidence = (
                f"{transport.upper()} messages of {_listed(sizes)} bytes wait {_time(step)} longer than the wire needs",
            )
            cure = "set TCP_NODELAY on the connection, or write header and data of a message in one call"
            if transport == "mpi":
                cure = "set the MPI library's option for TCP_NODELAY"
            yield Anomaly("Nagle with delayed ACK", _culprit(machine, machines, stuck), evidence, cure)
            if len(stuck) == len(machines) > 1:
                return  # the hub's fault, reported once


def _steps(machine: _Machine, transport: str) -> tuple[float, list[int]] | None:
    """Return the delay and the sizes at which messages wait for it, or None.

    It counts if at least a tenth of the messages wait at two or more sizes, or if all messages of the largest measured
    size do, since waiting leaves no time for larger ones.
    """
    curve = machine.curves.get((transport, "none"))
    if curve is None:
        return None
    wire = machine.wire()
    sizes: dict[float, list[int]] = {}
    answered = [sample for sample in curve.samples if any(map(math.isfinite, sample.seconds))]
    for sample in answered:
        summary = sample.summary
        base = wire.get(sample.size, summary.least)
        for median, share in ((summary.median, 1.0), *summary.modes):
            step = _step(median - base, base)
            if step is not None and share >= 0.1:
                sizes.setdefault(step, []).append(sample.size)
                break
    if not sizes:
        return None
    step = max(sizes, key=lambda one: len(sizes[one]))
    if len(sizes[step]) > 1:
        return step, sizes[step]
    last = answered[-1]
    base = wire.get(last.size, math.inf)
    certain = sizes[step] == [last.size] and base < 0.1 * step and last.summary.least - base > 0.8 * step
    return (step, sizes[step]) if certain else None


def _step(excess: float, base: float) -> float | None:
    """Return the delay in ``_STEPS`` that matches ``excess``, unless a message that takes ``base`` varies as much."""
    near = (step for step in _STEPS if 0.9 * step <= excess <= 1.2 * step and step >= 0.5 * base)
    return next(near, None)


def _tcp(machines: Sequence[_Machine], around: Mapping[int, Environment], said: set[str]) -> Iterator[Anomaly]:
    """Find machines on which TCP is slow while ICMP and UDP are normal."""
    found = {machine.number: slow for machine in machines if (slow := _slowness(machine)) is not None}
    everyone = len(machines) > 1 and all(slow.ratio > _BAD and slow.excess > _CLEAR for slow in found.values())
    for machine in machines:
        if machine.number not in found:
            continue
        slow, rest = found[machine.number], [other for number, other in found.items() if number != machine.number]
        usual = float(np.median([other.ratio for other in rest])) if rest else 1.0
        alone = everyone or len(rest) < 2
        if slow.excess < _CLEAR or slow.ratio <= (_BAD if alone else _ODD * max(1.0, usual)):
            continue
        if not alone and slow.best <= _SURE * max(1.0, float(np.median([other.best for other in rest]))):
            continue  # only some of its messages are slow, because of other programs
        node = _culprit(machine, machines, found if everyone else ())
        if node in said:
            continue
        ends = {machine.number: machine.name, machine.hub: machine.hub_name}
        if len(machines) > 1:
            ends.pop(machine.number if everyone else machine.hub)
        small = {name: own for number, name in ends.items() if (own := _small_buffers(number, around))}
        if small:
            node = " or ".join(small)
        elsewhere = f"; on other machines TCP takes {usual:.3g} times as long as the wire"
        text = slow.description + (elsewhere if rest and not everyone else "")
        texts = (text, *(text for own in small.values() for text in own))
        cure = "check the socket buffers, congestion control and offloads there; the cable is fine"
        yield Anomaly("TCP configuration", node, texts, _BUFFER_CURE if small else cure)
        if everyone:
            return


@dataclass(frozen=True, slots=True)
class _Slow:
    """Slowness of TCP relative to the wire."""

    ratio: float
    """Ratio of the median time to that of the wire."""
    best: float
    """Ratio of the minimum time to that of the wire."""
    excess: float
    """Seconds beyond the time of the wire."""
    description: str
    """Description of the evidence."""


def _slowness(machine: _Machine) -> _Slow | None:
    """Compare TCP with the wire at the largest common size and, by bandwidth, beyond it; return the worse result."""
    tcp, best, wire = machine.times("tcp"), machine.least("tcp"), machine.wire()
    common = sorted(size for size in tcp if size in wire and size >= 1000)
    if not common:
        return None
    size = common[-1]
    text = f"{size} bytes take {_time(tcp[size])} by TCP and {_time(wire[size])} by ICMP or UDP"
    found = [_Slow(tcp[size] / wire[size], best[size] / wire[size], tcp[size] - wire[size], text)]
    largest = max(tcp)
    if largest > size:
        slow, well = largest / tcp[largest], size / wire[size]
        text = f"TCP moves {slow / 1e6:.3g} MB/s of {largest} bytes, ICMP or UDP {well / 1e6:.3g} of {size}"
        found.append(_Slow(well / slow, well * best[largest] / largest, tcp[largest] - largest / well, text))
    return max(found, key=lambda one: one.ratio)


def _memory(machines: Sequence[_Machine], known: Mapping[int, Identity]) -> Iterator[Anomaly]:
    """Find machines whose bandwidth for large messages collapses only if the encoding needs a second copy."""
    for carrier in ("tcp", "mpi"):
        for machine in machines:
            plain = _collapse(machine.times(carrier))
            for encoding in BUFFERED:
                times = machine.times(carrier, encoding)
                factor, size = _collapse(times)
                if factor < _COLLAPSE or size not in machine.times(carrier) or plain[0] > _DIFFERENT or plain[1] < size:
                    continue
                others = [_collapse(other.times(carrier, encoding))[0] for other in machines if other is not machine]
                if others and factor < _DIFFERENT * float(np.median(others)):
                    continue
                memory = known.get(machine.number, {}).get("memory")
                slow, well = (size / one[size] / 1e6 for one in (times, machine.times(carrier)))
                text = (
                    f"{size} bytes in {encoding} move at {slow:.3g} MB/s, {factor:.2g} times slower than smaller ones, "
                    f"and at {well:.3g} MB/s without a second copy"
                )
                has = (f"the machine has {memory / 1e6:.0f} MB",) if memory else ()
                cure = "receive in place (encoding none or translated), send smaller messages, or give it memory"
                yield Anomaly("memory-bound receiver", machine.name, (text, *has), cure)
                break


def _collapse(times: Times) -> tuple[float, int]:
    """Return by which factor smaller messages are faster than the largest one, and its size (0 below a megabyte)."""
    large = max(times, default=0)
    if large < 1_000_000:
        return 0.0, 0
    # Short messages are left out: they may pass within the burst of a traffic shaper, faster than the wire.
    return max(size / times[size] for size in times if size >= 60_000) * times[large] / large, large


def _interfaces(
    machines: Sequence[_Machine], known: Mapping[int, Identity], around: Mapping[int, Environment]
) -> Iterator[Anomaly]:
    """Find machines that a faster or wired network also connects, or whose messages outpace their interface."""
    for machine in machines:
        used = (around.get(machine.number) or {}).get("interface") or {}
        if not used or used.get("loopback"):
            continue
        for other in (known.get(machine.number) or {}).get("interfaces", ()):
            if other["name"] == used["name"] or not _joined(other, known.get(machine.hub) or {}):
                continue
            faster = (other.get("speed") or 0) > _DIFFERENT * (used.get("speed") or math.inf)
            wired = bool(used.get("wireless")) and not other.get("wireless")
            if faster or wired:
                text = f"messages use {_interface(used)}, but {_interface(other)} connects it to {machine.hub_name} too"
                yield Anomaly(
                    "wrong interface",
                    machine.name,
                    (text,),
                    f"write address={other['address']} after {machine.name} in the hosts file, and give the MPI "
                    "library the name of the interface",
                )
                break
        speed, times = used.get("speed"), machine.times("tcp")
        if speed and times:
            rate = max(size / seconds for size, seconds in times.items() if size)
            if 8 * rate > 1.2 * speed:
                yield Anomaly(
                    "wrong interface",
                    machine.name,
                    (f"TCP moves {8 * rate / 1e6:.3g} Mb/s, more than {_interface(used)} can",),
                    "messages take a different path than assumed: check routes, and containers on the same host",
                )


def _duplex(
    names: Mapping[int, str],
    around: Mapping[int, Environment],
    matrix: PairMatrix,
    slow: set[str],
    small: Mapping[str, list[str]],
) -> Iterator[Anomaly]:
    """Find half-duplex links: from drivers, and machines where, unlike others, the two directions halve each other.

    The comparison uses TCP; if its buffers are small, they are the cause.
    """
    said = set(slow)
    for number, environment in around.items():
        used = environment.get("interface") or {}
        if used.get("duplex") == "half":
            name = names.get(number, str(number))
            said.add(name)
            yield Anomaly("half duplex", name, (f"the driver of {used['name']} reports it",), _DUPLEX_CURE)
    if matrix.medium.kind == "hub":
        return  # on a hub, all ports are half duplex
    kept: dict[int, list[float]] = {}
    for met in matrix.rounds:
        for (i, j), together, alone in zip(met.pairs, met.together, met.alone):
            for machine in (i, j):
                kept.setdefault(machine, []).append(together / alone)
    for machine, shares in kept.items():
        others = [min(own) for other, own in kept.items() if other != machine and max(own) > _FREE]
        name = matrix.names[machine]
        if len(shares) > 1 and max(shares) < _HALVED and len(others) > 1 and name not in said:
            text = f"sending and receiving at once, it keeps {100 * max(shares):.0f} % of its speed, others nearly all"
            if name in small:
                yield Anomaly("TCP configuration", name, (text, *small[name]), _BUFFER_CURE)
            else:
                yield Anomaly("half duplex", name, (text,), _DUPLEX_CURE)


def _small_buffers(number: int, around: Mapping[int, Environment]) -> list[str]:
    found = []
    for key in ("net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"):
        numbers = re.findall(r"\d+", ((around.get(number) or {}).get("settings") or {}).get(key) or "")
        if len(numbers) == 3 and int(numbers[2]) < _SMALL_BUFFER:
            found.append(f"{key} = {' '.join(numbers)}: at most {int(numbers[2])} bytes are in flight")
    return found


def _culprit(machine: _Machine, machines: Sequence[_Machine], bad: Collection[int]) -> str:
    """Return the machine; the hub if all machines are affected; both if there are only two."""
    if len(machines) == 1:
        return f"{machine.name} or {machine.hub_name}"
    return machine.hub_name if len(bad) == len(machines) else machine.name


def _joined(interface: Mapping[str, Any], other: Identity) -> bool:
    if interface.get("loopback"):
        return False
    network = ipaddress.ip_network(f"{interface['address']}/{interface['mask']}", strict=False)
    return any(
        ipaddress.ip_address(one["address"]) in network for one in other.get("interfaces", ()) if not one["loopback"]
    )


def _interface(one: Mapping[str, Any]) -> str:
    speed = f", {one['speed'] / 1e6:.0f} Mb/s" if one.get("speed") else ""
    return f"{one['name']} ({'wireless' if one.get('wireless') else 'wired'}{speed})"


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes[:4])) + (", ..." if len(sizes) > 4 else "")


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


_BUFFER_CURE: Final = (
    "enlarge its buffers: sysctl -w net.ipv4.tcp_wmem='4096 16384 4194304' net.ipv4.tcp_rmem='4096 131072 6291456'"
)
_DUPLEX_CURE: Final = "let both ends of the cable negotiate (ethtool -s eth0 autoneg on), and replace hubs by switches"

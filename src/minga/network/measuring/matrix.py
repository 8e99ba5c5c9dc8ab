"""Measured pairs of machines, alone and simultaneously: shared media, slow machines and odd pairs.

One pair at a time gives the latency and bandwidth of each ordered pair. Disjoint pairs at the same time, as in the
rounds of a tournament, show what they share: the streams of a switch do not affect each other, while those of a hub
share the bandwidth of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "SWITCH",
    "Costs",
    "Medium",
    "Pair",
    "PairMatrix",
    "Round",
    "capacities",
    "medium",
    "node_costs",
    "tournament",
]

Floats = NDArray[np.float64]
Kind = Literal["switch", "hub", "mixed", "unknown"]

_HUB, SWITCH = 0.35, 0.7
"""Largest freedom (see :class:`Round`) of a hub, and smallest of a switch."""
_FASTEST_HUB = 2.5e8
"""Bytes per second above which no shared medium exists: hubs reach 100 Mb/s, a radio channel about 2 Gb/s."""
_ODD = 0.7
_ASYMMETRIC = 1.25


@dataclass(frozen=True, slots=True)
class Pair:
    """Message from one machine to another, alone on the network: ``seconds`` for ``size`` bytes, ``latency`` for one.

    Times are in seconds.
    """

    sender: int
    receiver: int
    latency: float
    size: int
    seconds: float

    @property
    def bandwidth(self) -> float:
        """Bandwidth in bytes per second, without the latency."""
        return self.size / max(self.seconds - self.latency, 1e-9)


@dataclass(frozen=True, slots=True)
class Round:
    """Disjoint pairs that exchange simultaneously in both directions: bandwidth of each stream together and alone."""

    pairs: tuple[tuple[int, int], ...]
    together: tuple[float, ...]
    """Bytes per second in each of the two directions of each pair."""

    alone: tuple[float, ...]

    @property
    def streams(self) -> int:
        """Number of messages in transit at the same time."""
        return 2 * len(self.pairs)

    @property
    def gain(self) -> float:
        """Throughput in units of a single stream: 1 on a hub, the number of streams on a switch."""
        return 2 * sum(t / a for t, a in zip(self.together, self.alone))

    @property
    def freedom(self) -> float:
        """Logarithm of the gain to the base of the number of streams: 0 for a hub, 1 for a switch."""
        return math.log(max(self.gain, 1e-3)) / math.log(self.streams)


@dataclass(frozen=True, slots=True)
class Medium:
    """Medium that connects the machines, and the evidence for it."""

    kind: Kind
    freedom: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Costs:
    """Contributions to latency: ``alpha_ij = o_i + o_j + wire`` seconds, where the smallest of the ``o_i`` is 0."""

    nodes: tuple[float, ...]
    wire: float
    odd: tuple[tuple[int, int], ...]
    """Pairs that this model does not explain."""


@dataclass(frozen=True, slots=True)
class PairMatrix:
    """All measurements between pairs of machines."""

    names: tuple[str, ...]
    transport: str
    pairs: tuple[Pair, ...]
    rounds: tuple[Round, ...] = ()
    medium: Medium = field(default=Medium("unknown", math.nan, "nothing was measured"))
    costs: Costs | None = None

    def values(self, what: Literal["latency", "bandwidth"]) -> Floats:
        """Return latencies (seconds) or bandwidths (bytes per second): shape (senders, receivers), NaN if unknown."""
        table = np.full((len(self.names), len(self.names)), np.nan)
        for pair in self.pairs:
            table[pair.sender, pair.receiver] = pair.latency if what == "latency" else pair.bandwidth
        return table

    def asymmetric(self) -> list[tuple[int, int, float]]:
        """Return (i, j, ratio) of the pairs that are more than 25 % faster from i to j than back."""
        table = self.values("bandwidth")
        with np.errstate(invalid="ignore"):
            ratio = table / table.T
        return [(int(i), int(j), float(ratio[i, j])) for i, j in np.argwhere(ratio > _ASYMMETRIC)]

    def odd(self) -> list[tuple[int, int]]:
        """Return the pairs that are slower than the slower of their two machines is with others."""
        table = self.values("bandwidth")
        caps = capacities(table)
        with np.errstate(invalid="ignore"):
            slow = table < _ODD * np.minimum(caps[:, None], caps[None, :])
        return [(int(i), int(j)) for i, j in np.argwhere(slow)]

    def as_dict(self) -> dict[str, Any]:
        """Return the matrix as JSON-serialisable data."""
        rounds = [asdict(one) | {"gain": one.gain, "freedom": one.freedom} for one in self.rounds]
        return {
            "names": list(self.names),
            "transport": self.transport,
            "pairs": [asdict(pair) for pair in self.pairs],
            "rounds": rounds,
            "medium": asdict(self.medium) | {"freedom": _number(self.medium.freedom)},
            "costs": None if self.costs is None else asdict(self.costs),
            "asymmetric": [list(one) for one in self.asymmetric()],
            "odd": [list(one) for one in self.odd()],
        }


def tournament(players: int) -> list[list[tuple[int, int]]]:
    """Return rounds of disjoint pairs in which each meets each once; if the number is odd, one rests in each round."""
    seats: list[int | None] = list(range(players))
    if players % 2:
        seats.append(None)
    half = len(seats) // 2
    rounds = []
    for _ in range(len(seats) - 1):
        met = zip(seats[:half], reversed(seats[half:]))
        rounds.append([(a, b) for a, b in met if a is not None and b is not None])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return [pairs for pairs in rounds if pairs]


def medium(rounds: Sequence[Round]) -> Medium:
    """Classify the medium as a hub, a switch or neither; the evidence is text that can be printed."""
    if not rounds:
        return Medium("unknown", math.nan, "there is one machine, or nothing was measured simultaneously")
    freedoms = [one.freedom for one in rounds]
    typical = float(np.median(freedoms))
    widest = max(rounds, key=lambda one: one.streams)
    said = f"{widest.streams} streams at the same time carried as much as {widest.gain:.1f} single ones"
    if all(value > SWITCH for value in freedoms):
        return Medium("switch", typical, said)
    carried = max(sum(one.together) for one in rounds)
    if carried > _FASTEST_HUB and not all(value > _HUB for value in freedoms):
        reason = f"{said}, at {carried / 1e6:.0f} MB/s each way: no hub can, so processors or memory were the limit"
        return Medium("unknown", typical, reason)
    if all(value < _HUB for value in freedoms):
        return Medium("hub", typical, said)
    slow = min(rounds, key=lambda one: one.freedom)
    free = max(rounds, key=lambda one: one.freedom)
    said = f"between {slow.gain / slow.streams:.0%} and {free.gain / free.streams:.0%} of a stream's bandwidth remain"
    how = "disjoint pairs talk" if widest.streams > 2 else "a pair talks both ways"
    return Medium("mixed", typical, f"{said} when {how} at the same time")


def node_costs(latencies: Floats) -> Costs | None:
    """Split latencies, shape (machines, machines) and NaN where unknown, into contributions of machines and wire.

    The method is least squares with weights that discount odd pairs. The result is None with fewer than three machines,
    or if a machine has too few partners to separate its contribution from that of the wire.
    """
    count = len(latencies)
    found = [(i, j) for i in range(count) for j in range(count) if i != j and np.isfinite(latencies[i, j])]
    matrix = np.zeros((len(found), count))
    for row, (i, j) in enumerate(found):
        matrix[row, [i, j]] = 1.0
    if count < 3 or np.linalg.matrix_rank(matrix) < count:
        return None
    values = np.array([latencies[i, j] for i, j in found])
    trust = np.ones(len(found))
    for _ in range(20):
        root = np.sqrt(trust)
        halves = np.linalg.lstsq(matrix * root[:, None], values * root, rcond=None)[0]
        errors = np.abs(values - matrix @ halves)
        scale = max(1.4826 * float(np.median(errors)), 0.01 * float(np.median(values)))
        trust = 1 / (1 + (errors / (2 * scale)) ** 2)
    # Only sums of two are known, so half of the wire is in each part; the fastest machine is assumed to add nothing.
    least = max(float(halves.min()), 0.0)
    odd = tuple(found[row] for row in np.flatnonzero(errors > 5 * scale))
    return Costs(tuple(max(float(value) - least, 0.0) for value in halves), 2 * least, odd)


def capacities(bandwidths: Floats) -> Floats:
    """Return the bytes per second of each machine: its best pair, assuming that the slower machine limits a pair."""
    both = np.fmax(bandwidths, bandwidths.T)
    caps: Floats = np.where(np.isfinite(both), both, 0.0).max(axis=1, initial=0.0)
    return caps


def slow_nodes(matrix: PairMatrix, tolerance: float = 1.3) -> Mapping[int, tuple[float, float]]:
    """Return, for machines clearly slower than most, the extra latency in seconds and the factor on time per byte."""
    caps = capacities(matrix.values("bandwidth"))
    usual = float(np.median(caps[caps > 0])) if (caps > 0).any() else 0.0
    parts = matrix.costs.nodes if matrix.costs is not None else (0.0,) * len(caps)
    wire = matrix.costs.wire if matrix.costs is not None else math.inf
    typical = float(np.median(parts)) if parts else 0.0
    slow = {}
    for node, cap in enumerate(caps):
        factor = usual / cap if cap > 0 else 1.0
        extra = parts[node] - typical
        if factor > tolerance or extra > (tolerance - 1) * (wire + 2 * typical):
            slow[node] = (max(float(extra), 0.0), max(float(factor), 1.0))
    return slow


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None

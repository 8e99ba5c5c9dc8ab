"""Pairs of machines: alone and all at once. Is the medium shared? Which machine is slow, which pair is odd?

One pair at a time gives latency and bandwidth of each ordered pair; disjoint pairs at the same time, as in the rounds
of a tournament, show what they share: the streams of a switch do not feel each other, those of a hub share one.
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
"""Freedom (see :class:`Round`) of hubs at most, of switches at least."""
_FASTEST_HUB = 2.5e8
"""Bytes per second that no shared medium carries: hubs end at 100 Mb/s, a radio channel at about 2 Gb/s."""
_ODD = 0.7
_ASYMMETRIC = 1.25


@dataclass(frozen=True, slots=True)
class Pair:
    """A message from one machine to another, alone on the network: ``seconds`` of ``size`` bytes, latency of one."""

    sender: int
    receiver: int
    latency: float
    size: int
    seconds: float

    @property
    def bandwidth(self) -> float:
        """Bytes per second without the latency."""
        return self.size / max(self.seconds - self.latency, 1e-9)


@dataclass(frozen=True, slots=True)
class Round:
    """Disjoint pairs at work at the same time, both ways: bandwidth of each stream together and alone."""

    pairs: tuple[tuple[int, int], ...]
    together: tuple[float, ...]
    """Bytes per second in each of the two directions of each pair."""
    alone: tuple[float, ...]

    @property
    def streams(self) -> int:
        """Messages that travelled at the same time."""
        return 2 * len(self.pairs)

    @property
    def gain(self) -> float:
        """How many single streams the network carried: 1 on a hub, all of them on a switch."""
        return 2 * sum(t / a for t, a in zip(self.together, self.alone))

    @property
    def freedom(self) -> float:
        """0 for a hub, 1 for a switch: the logarithm of the gain to the base of the streams."""
        return math.log(max(self.gain, 1e-3)) / math.log(self.streams)


@dataclass(frozen=True, slots=True)
class Medium:
    """What joins the machines, and why that is believed."""

    kind: Kind
    freedom: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Costs:
    """``alpha_ij = o_i + o_j + wire``: what each machine adds to a message's latency; the least of them is 0."""

    nodes: tuple[float, ...]
    wire: float
    odd: tuple[tuple[int, int], ...]
    """Pairs that this does not explain."""


@dataclass(frozen=True, slots=True)
class PairMatrix:
    """All that was measured between machines."""

    names: tuple[str, ...]
    transport: str
    pairs: tuple[Pair, ...]
    rounds: tuple[Round, ...] = ()
    medium: Medium = field(default=Medium("unknown", math.nan, "nothing was measured"))
    costs: Costs | None = None

    def values(self, what: Literal["latency", "bandwidth"]) -> Floats:
        """Shape (senders, receivers), NaN where a pair was not measured: seconds, or bytes per second."""
        table = np.full((len(self.names), len(self.names)), np.nan)
        for pair in self.pairs:
            table[pair.sender, pair.receiver] = pair.latency if what == "latency" else pair.bandwidth
        return table

    def asymmetric(self) -> list[tuple[int, int, float]]:
        """(i, j, ratio) of pairs for which the way there is more than 25 % faster than the way back."""
        table = self.values("bandwidth")
        with np.errstate(invalid="ignore"):
            ratio = table / table.T
        return [(int(i), int(j), float(ratio[i, j])) for i, j in np.argwhere(ratio > _ASYMMETRIC)]

    def odd(self) -> list[tuple[int, int]]:
        """Pairs slower than the slower of their two machines is with others."""
        table = self.values("bandwidth")
        caps = capacities(table)
        with np.errstate(invalid="ignore"):
            slow = table < _ODD * np.minimum(caps[:, None], caps[None, :])
        return [(int(i), int(j)) for i, j in np.argwhere(slow)]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
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
    """Rounds of disjoint pairs in which each meets each once; with an odd number one rests in each round."""
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
    """Hub or switch? The evidence is in words that can be printed."""
    if not rounds:
        return Medium("unknown", math.nan, "one machine, or nothing was measured at the same time")
    freedoms = [one.freedom for one in rounds]
    typical = float(np.median(freedoms))
    widest = max(rounds, key=lambda one: one.streams)
    said = f"{widest.streams} streams at the same time carried as much as {widest.gain:.1f} single ones"
    if all(value > SWITCH for value in freedoms):
        return Medium("switch", typical, said)
    carried = max(sum(one.together) for one in rounds)
    if carried > _FASTEST_HUB and not all(value > _HUB for value in freedoms):
        reason = f"{said}, at {carried / 1e6:.0f} MB/s each way: no hub does, so processors or memory were the limit"
        return Medium("unknown", typical, reason)
    if all(value < _HUB for value in freedoms):
        return Medium("hub", typical, said)
    slow = min(rounds, key=lambda one: one.freedom)
    free = max(rounds, key=lambda one: one.freedom)
    said = (
        f"between {slow.gain / slow.streams:.0%} and {free.gain / free.streams:.0%} of a stream's own bandwidth is left"
    )
    how = "disjoint pairs talk" if widest.streams > 2 else "a pair talks both ways"
    return Medium("mixed", typical, f"{said} when {how} at the same time")


def node_costs(latencies: Floats) -> Costs | None:
    """Each machine's part of the latencies, shape (machines, machines), NaN where unknown.

    Least squares that forgets odd pairs; None with fewer than three machines, or when a machine has too few partners to
    tell its part from the wire's.
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
    # Only sums of two are known, so half of the wire is in each part: the cheapest machine is said to cost nothing.
    least = max(float(halves.min()), 0.0)
    odd = tuple(found[row] for row in np.flatnonzero(errors > 5 * scale))
    return Costs(tuple(max(float(value) - least, 0.0) for value in halves), 2 * least, odd)


def capacities(bandwidths: Floats) -> Floats:
    """Bytes per second of each machine, if a pair is as fast as the slower of its two: its best with any other."""
    both = np.fmax(bandwidths, bandwidths.T)
    caps: Floats = np.where(np.isfinite(both), both, 0.0).max(axis=1, initial=0.0)
    return caps


def slow_nodes(matrix: PairMatrix, tolerance: float = 1.3) -> Mapping[int, tuple[float, float]]:
    """(extra seconds of latency, factor on the time of a byte) of machines that are clearly slower than most."""
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

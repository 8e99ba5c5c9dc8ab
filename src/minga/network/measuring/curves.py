"""Curves of time over size: one machine exchanges messages with each other one, over every transport and encoding.

In this way F. Tinetti (thesis, Appendix C, Figures C.6 to C.15) found two workstations whose TCP was slow although
their wires were fine: a machine is compared with itself on other layers, and with other machines on the same layer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from minga.network.measuring.encodings import ENCODINGS, Encoding
from minga.network.measuring.exchanges import Ends, sample_message_sizes
from minga.network.measuring.matrix import PairMatrix, capacities
from minga.network.measuring.sampling import Sample
from minga.network.measuring.team import Team
from minga.network.measuring.transports import Unavailable

__all__ = ["SIZES", "Curve", "best_machine", "curves_wanted", "measure_curves"]

SIZES: Final = (8, 104, 1000, 4000, 10_000, 60_000, 250_000, 1_000_000, 4_000_000, 10_000_000)
"""Message sizes in bytes, multiples of a float64: those of the thesis, and some in between."""
_SPLIT_SIZES: Final = (8, 104, 1000, 60_000)
"""Message sizes for a transport on which every message may wait for a delayed acknowledgement."""
_MOST_MACHINES: Final = 16
_LEAST_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Curve:
    """One-way times between two machines over sizes. ``machine`` and ``hub`` are numbers of members."""

    machine: int
    name: str
    hub: int
    hub_name: str
    transport: str
    encoding: Encoding
    samples: tuple[Sample, ...]

    def medians(self) -> dict[int, float]:
        """Return the median seconds by bytes, without sizes of which no message came back."""
        return {size: statistics.median(times) for size, times in self._answered()}

    def minima(self) -> dict[int, float]:
        """Return the minimum seconds by bytes, without sizes of which no message came back."""
        return {size: min(times) for size, times in self._answered()}

    def _answered(self) -> Iterator[tuple[int, list[float]]]:
        for sample in self.samples:
            times = [seconds for seconds in sample.seconds if math.isfinite(seconds)]
            if times:
                yield sample.size, times

    def as_dict(self) -> dict[str, Any]:
        """Return the curve as JSON-serialisable data."""
        return {
            "machine": self.machine,
            "name": self.name,
            "hub": self.hub,
            "hub_name": self.hub_name,
            "transport": self.transport,
            "encoding": self.encoding,
            "samples": [sample.as_dict() for sample in self.samples],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Curve:
        """Return the curve that :meth:`as_dict` wrote."""
        return cls(**{**data, "samples": tuple(map(Sample.from_dict, data["samples"]))})


def best_machine(matrix: PairMatrix) -> int:
    """Return the machine with which the others exchange: the fastest one, so that it hides no faults of others."""
    if not matrix.pairs:
        return 0
    caps = capacities(matrix.values("bandwidth"))
    waits: list[float] = []
    for machine in range(len(matrix.names)):
        own = [pair.latency for pair in matrix.pairs if machine in (pair.sender, pair.receiver)]
        waits.append(min(own, default=math.inf))
    # Machines that differ by less than a tenth count as equal in bandwidth; among them latency decides.
    alike = [machine for machine, cap in enumerate(caps) if cap >= 0.9 * float(caps.max())]
    return min(alike, key=lambda machine: (waits[machine], machine))


def curves_wanted(transports: Sequence[str]) -> list[tuple[str, Encoding]]:
    """Return the curves to measure: all transports without encoding, and other encodings on the layer programs use."""
    plain: list[tuple[str, Encoding]] = [(transport, "none") for transport in transports]
    if "udp" in transports:
        plain.insert(plain.index(("udp", "none")) + 1, ("udpbcast", "none"))
    if "tcp" in transports:
        plain.insert(plain.index(("tcp", "none")) + 1, ("tcp-nagle", "none"))
    carrier = next((one for one in ("tcp", "mpi") if one in transports), None)
    return plain + [(carrier, encoding) for encoding in ENCODINGS if carrier is not None and encoding != "none"]


def measure_curves(
    team: Team,
    matrix: PairMatrix,
    members: Sequence[int],
    addresses: Mapping[tuple[int, int], str | None],
    transports: Sequence[str],
    budget: float,
    seed: int,
    on_progress: Callable[[float, str], None],
) -> tuple[list[Curve], dict[str, str]]:
    """Measure curves in about ``budget`` seconds.

    With more than 16 other machines, only the slowest 16 are measured.

    Returns
    -------
    list of Curve
        The curves.
    dict
        The reason for each transport and machine that could not be measured.
    """
    hub = best_machine(matrix)
    caps = capacities(matrix.values("bandwidth"))
    others = sorted((m for m in range(len(members)) if m != hub), key=lambda m: (caps[m], m))[:_MOST_MACHINES]
    wanted = curves_wanted(transports)
    share = max(_LEAST_SECONDS, budget / max(1, len(others) * len(wanted)))
    found, missing = [], {}
    for at, machine in enumerate(sorted(others)):
        name = matrix.names[machine]
        on_progress(at / len(others), f"{name}, every transport and encoding")
        ends = Ends(members[hub], members[machine], addresses.get((members[hub], members[machine])))
        for transport, encoding in wanted:
            sizes = _SPLIT_SIZES if transport == "tcp-nagle" else SIZES
            try:
                samples = sample_message_sizes(team, ends, transport, sizes, share, seed, least=6, encoding=encoding)
            except Unavailable as error:
                missing[f"{transport} to {name}"] = error.message
                continue
            whole = (members[machine], name, members[hub], matrix.names[hub])
            found.append(Curve(*whole, transport, encoding, tuple(samples)))
    return found, missing

"""A curve for each machine: one of them exchanges messages with each of the others, over every transport and encoding.

That is how F. Tinetti (thesis, Appendix C, Figures C.6 to C.15) found two workstations whose TCP was bad while their
wires were well: the same machine is compared with itself on other layers, and with the others on the same layer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from minga.network.measuring.encodings import ENCODINGS, Encoding
from minga.network.measuring.exchanges import Ends, ladder_of
from minga.network.measuring.matrix import PairMatrix, capacities
from minga.network.measuring.sampling import Sample
from minga.network.measuring.team import Team
from minga.network.measuring.transports import Unavailable

__all__ = ["SIZES", "Curve", "best_machine", "curves_wanted", "measure_curves"]

SIZES: Final = (8, 104, 1000, 4000, 10_000, 60_000, 250_000, 1_000_000, 4_000_000, 10_000_000)
"""Bytes, whole numbers of float64: those of the thesis, and some between them."""
_SPLIT_SIZES: Final = (8, 104, 1000, 60_000)
"""Where every message may wait for an acknowledgement that is delayed."""
_MOST_MACHINES: Final = 16
_LEAST_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Curve:
    """Times one way between two machines over sizes. ``machine``, ``hub``: numbers of members."""

    machine: int
    name: str
    hub: int
    hub_name: str
    transport: str
    encoding: Encoding
    samples: tuple[Sample, ...]

    def medians(self) -> dict[int, float]:
        """Median seconds by bytes, without sizes of which no message came back."""
        return {size: statistics.median(times) for size, times in self._answered()}

    def minima(self) -> dict[int, float]:
        """The least seconds by bytes, without sizes of which no message came back."""
        return {size: min(times) for size, times in self._answered()}

    def _answered(self) -> Iterator[tuple[int, list[float]]]:
        for sample in self.samples:
            times = [seconds for seconds in sample.seconds if math.isfinite(seconds)]
            if times:
                yield sample.size, times

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
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
        """Back from JSON."""
        return cls(**{**data, "samples": tuple(map(Sample.from_dict, data["samples"]))})


def best_machine(matrix: PairMatrix) -> int:
    """The machine to which the others are compared: the one that moves most, so that it hides nobody's faults."""
    if not matrix.pairs:
        return 0
    caps = capacities(matrix.values("bandwidth"))
    waits: list[float] = []
    for machine in range(len(matrix.names)):
        own = [pair.latency for pair in matrix.pairs if machine in (pair.sender, pair.receiver)]
        waits.append(min(own, default=math.inf))
    # Machines that differ by less than a tenth are alike in bandwidth; among them the quickest counts.
    alike = [machine for machine, cap in enumerate(caps) if cap >= 0.9 * float(caps.max())]
    return min(alike, key=lambda machine: (waits[machine], machine))


def curves_wanted(transports: Sequence[str]) -> list[tuple[str, Encoding]]:
    """Transports with the numbers as they lie in memory; the other encodings on the layer that programs use."""
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
    """Curves in about ``budget`` seconds, and for each transport that could not be used, why.

    With more than 16 machines those that are slowest come first, and the rest is left out.
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
                samples = ladder_of(team, ends, transport, sizes, share, seed, least=6, encoding=encoding)
            except Unavailable as error:
                missing[f"{transport} to {name}"] = error.message
                continue
            whole = (members[machine], name, members[hub], matrix.names[hub])
            found.append(Curve(*whole, transport, encoding, tuple(samples)))
    return found, missing

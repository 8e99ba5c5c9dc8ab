"""All about a network as plain data for a machine's JSON file, and the links that a planner makes of it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from minga.network.measuring.matrix import PairMatrix, slow_nodes
from minga.network.measuring.overlap import Overlap
from minga.network.measuring.piecewise import Fit, fit_pieces, link_of
from minga.network.measuring.sampling import Sample
from minga.network.measuring.transports import Unavailable
from minga.plan.links import Link, Links, Segment

__all__ = ["VERSION", "break_names", "drain_time", "fits_of", "link_from", "links_from", "measured_link", "remarks"]

VERSION = 2
_BEST = ("mpi", "tcp", "udp", "icmp")
"""What a run uses first; the others stand in where MPI was not measured."""
_DOUBT = 0.3
"""No size is doubted more than this in fits."""


def fits_of(samples: Sequence[Sample], names: Mapping[str, int], seed: int = 0) -> tuple[Fit, Fit]:
    """Of the minima (what the wire can do) and of the medians (what people get). Unavailable where all was lost."""
    good = [(sample.size, sample.summary) for sample in samples if any(map(math.isfinite, sample.seconds))]
    if len(good) < 2:
        raise Unavailable(f"of {len(samples)} sizes of message only {len(good)} came back")
    sizes = [size for size, _ in good]
    found = [one for _, one in good]
    wire = [one.least for one in found]
    near = [(one.p5 - one.least) / one.least for one in found]
    usual = [one.median for one in found]
    unsure = [1.25 * one.deviation / (one.median * math.sqrt(one.count)) for one in found]  # of a median
    least = fit_pieces(sizes, wire, names=names, doubt=[min(u, _DOUBT) for u in near], seed=seed)
    return least, fit_pieces(sizes, usual, names=names, doubt=[min(u, _DOUBT) for u in unsure], seed=seed)


def measured_link(
    level: int, between: str, transport: str, members: Sequence[int], samples: Sequence[Sample], fits: tuple[Fit, Fit]
) -> dict[str, Any]:
    """One entry of ``links``: the class of pairs, who stood for it, all samples, and the fits."""
    return {
        "level": level,
        "between": between,
        "transport": transport,
        "members": list(members),
        "samples": [sample.as_dict() for sample in samples],
        "fit_minimum": fits[0].as_dict(),
        "fit_median": fits[1].as_dict(),
    }


def break_names(transport: str, environment: Mapping[str, Any], library: str = "") -> dict[str, int]:
    """Limits in bytes at which this transport may change its ways: the largest message that is still below each."""
    interface = environment.get("interface") or {}
    mtu = int(interface.get("mtu") or 1500)
    names = {"one frame": mtu - (28 if transport in ("icmp", "udp") else 52)}
    if transport in ("tcp", "tcp-nagle", "mpi"):
        buffer = _send_buffer(environment)
        if buffer is not None:
            names["send buffer"] = buffer
    if transport == "mpi" and "open mpi" in library.lower():
        variables = environment.get("variables") or {}
        names["eager limit"] = int(variables.get("OMPI_MCA_btl_tcp_eager_limit", 65536)) - 1
        names["largest fragment"] = int(variables.get("OMPI_MCA_btl_tcp_max_send_size", 131072))
    return names


def drain_time(environment: Mapping[str, Any], fit: Fit) -> float | None:
    """Seconds in which the network empties a full send buffer: who polls less often leaves it idle."""
    buffer = _send_buffer(environment)
    beta = fit.pieces[-1].beta
    return None if buffer is None or beta == 0 else buffer * beta


def link_from(entry: Mapping[str, Any], overlap: float = 1.0) -> Link:
    """The link of an entry of ``links``: the medians, which is what people get."""
    fit = entry["fit_median"]
    return link_of(fit["pieces"], float(fit["zero"]), overlap)


def links_from(section: Mapping[str, Any], depth: int) -> Links:
    """The links of a tree of ``depth`` levels (see :class:`Links`) from what was measured.

    Where a level was not measured, the next one outside it stands in; nodes that are clearly slower than most have a
    link of their own.
    """
    overlap = overlap_of(section)
    found: dict[int, Link] = {}
    for transport in reversed(_BEST):
        for entry in section["links"]:
            if entry["transport"] == transport:
                found[int(entry["level"])] = link_from(entry, overlap if int(entry["level"]) == 0 else 1.0)
    if not found:
        raise ValueError("no links were measured")
    levels: list[Link] = []
    for level in range(depth + 1):
        nearest = max((known for known in found if known <= level), default=min(found))
        levels.append(found[nearest])
    slow = section.get("slow_nodes") or {}
    between = levels[0]
    nodes = {int(node): _slower(between, float(extra), float(factor)) for node, (extra, factor) in slow.items()}
    return Links(tuple(levels), nodes, section["pairs"]["medium"]["kind"] == "hub")


def overlap_of(section: Mapping[str, Any]) -> float:
    """The part of a large message that computation hides when the run polls, as it does; 1 where nothing is known."""
    points = (section.get("overlap") or {}).get("points") or []
    if not points:
        return 1.0
    largest = max(points, key=lambda point: point["bytes"])
    return float(max([largest["overlap"], *(one["overlap"] for one in largest["polled"])]))


def slow_section(matrix: PairMatrix) -> dict[str, list[float]]:
    """``slow_nodes`` for JSON."""
    return {str(node): list(how) for node, how in slow_nodes(matrix).items()}


def remarks(fits: Mapping[str, Fit], matrix: PairMatrix, crossed: Mapping[str, Any] | None) -> list[str]:
    """What stands out when layers are compared (Tinetti's way of finding out what is wrong), in words."""
    said = []
    if crossed is not None and not crossed["enough"]:
        said.append(
            f"messages did not cross the interface {crossed['interface']}: {crossed['sent']} bytes left it, "
            f"{crossed['payload']} were sent; the MPI library takes another way (shared memory?)"
        )
    layers = [name for name in ("icmp", "udp", "tcp", "mpi") if name in fits]
    for lower, upper in itertools.pairwise(layers):
        if fits[upper].bandwidth < 0.7 * fits[lower].bandwidth:
            said.append(
                f"{upper.upper()} moves {fits[upper].bandwidth / 1e6:.3g} MB/s where {lower.upper()} moves "
                f"{fits[lower].bandwidth / 1e6:.3g}: {_blame(lower, upper)}"
            )
        if fits[upper].zero > 3 * fits[lower].zero and fits[upper].zero > 50e-6:
            said.append(
                f"{upper.upper()} takes {fits[upper].zero * 1e6:.3g} us for a small message where {lower.upper()} "
                f"takes {fits[lower].zero * 1e6:.3g}: {_blame(lower, upper)}"
            )
    for i, j, ratio in matrix.asymmetric():
        said.append(
            f"{matrix.names[i]} sends to {matrix.names[j]} {ratio:.2g} times as fast as the other way round: look for "
            "a duplex mismatch or a shaped uplink"
        )
    for i, j in matrix.odd():
        said.append(f"{matrix.names[i]} to {matrix.names[j]} is slower than either of them is with others")
    if matrix.medium.kind == "hub":
        said.append(f"one shared medium: {matrix.medium.evidence}; broadcast by UDP, and give ranks few neighbours")
    return said


def from_points(points: Sequence[Mapping[str, Any]]) -> list[Overlap]:
    """Measured overlap back from JSON."""
    from minga.network.measuring.overlap import Polled

    return [Overlap(**{**point, "polled": tuple(Polled(**one) for one in point["polled"])}) for point in points]


def _blame(lower: str, upper: str) -> str:
    if upper == "mpi":
        return "the MPI library's transport or its settings"
    if upper == "tcp":
        return "TCP's buffers or settings, while the wire is well"
    return "the far end's programs, while its kernel answers quickly"


def _slower(link: Link, extra: float, factor: float) -> Link:
    slowed = (Segment(s.least, s.alpha + extra, s.beta * factor) for s in link.segments)
    return Link(tuple(slowed), link.overlap)


def _send_buffer(environment: Mapping[str, Any]) -> int | None:
    words = re.findall(r"\d+", (environment.get("settings") or {}).get("net.ipv4.tcp_wmem") or "")
    return int(words[1]) if len(words) == 3 else None

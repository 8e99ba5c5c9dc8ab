"""Network section of a machine's JSON file: measurements as plain data, and the planner's links made from them."""

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
"""Transports in order of preference; the others substitute for MPI if it was not measured."""
_DOUBT = 0.3
"""Upper limit of the relative uncertainty of a size in fits."""


def fits_of(samples: Sequence[Sample], names: Mapping[str, int], seed: int = 0) -> tuple[Fit, Fit]:
    """Return the fits of the minima (capability of the wire) and of the medians (what programs experience).

    Raises
    ------
    Unavailable
        If fewer than two sizes have messages that came back.
    """
    good = [(sample.size, sample.summary) for sample in samples if any(map(math.isfinite, sample.seconds))]
    if len(good) < 2:
        raise Unavailable(f"of {len(samples)} message sizes, only {len(good)} came back")
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
    """Return an entry of ``links``: the class of pairs, its representatives, all samples, and the fits."""
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
    """Return named limits at which a transport may change its protocol: the largest message in bytes below each."""
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
    """Return the seconds in which the network drains a full send buffer; polling less often leaves it idle."""
    buffer = _send_buffer(environment)
    beta = fit.pieces[-1].beta
    return None if buffer is None or beta == 0 else buffer * beta


def link_from(entry: Mapping[str, Any], overlap: float = 1.0) -> Link:
    """Return the link of an entry of ``links``, from the medians, which are what programs experience."""
    fit = entry["fit_median"]
    return link_of(fit["pieces"], float(fit["zero"]), overlap)


def links_from(section: Mapping[str, Any], depth: int) -> Links:
    """Return the links of a tree of ``depth`` levels (see :class:`Links`) from a measured section.

    A level that was not measured gets the link of the next level outside it; nodes that are clearly slower than most
    have their own link.

    Raises
    ------
    ValueError
        If the section contains no links.
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
    """Return the fraction of a large message that computation hides with polling, which runs use; 1 if unknown."""
    points = (section.get("overlap") or {}).get("points") or []
    if not points:
        return 1.0
    largest = max(points, key=lambda point: point["bytes"])
    return float(max([largest["overlap"], *(one["overlap"] for one in largest["polled"])]))


def slow_section(matrix: PairMatrix) -> dict[str, list[float]]:
    """Return ``slow_nodes`` as JSON-serialisable data."""
    return {str(node): list(how) for node, how in slow_nodes(matrix).items()}


def remarks(fits: Mapping[str, Fit], matrix: PairMatrix, crossed: Mapping[str, Any] | None) -> list[str]:
    """Return remarks on what stands out when layers are compared (Tinetti's method of locating faults)."""
    said = []
    if crossed is not None and not crossed["enough"]:
        said.append(
            f"messages did not cross the interface {crossed['interface']}: {crossed['sent']} bytes left it, "
            f"{crossed['payload']} were sent; the MPI library uses a different path (shared memory?)"
        )
    layers = [name for name in ("icmp", "udp", "tcp", "mpi") if name in fits]
    for lower, upper in itertools.pairwise(layers):
        if fits[upper].bandwidth < 0.7 * fits[lower].bandwidth:
            said.append(
                f"{upper.upper()} moves {fits[upper].bandwidth / 1e6:.3g} MB/s, while {lower.upper()} moves "
                f"{fits[lower].bandwidth / 1e6:.3g}: {_blame(lower, upper)}"
            )
        if fits[upper].zero > 3 * fits[lower].zero and fits[upper].zero > 50e-6:
            said.append(
                f"{upper.upper()} takes {fits[upper].zero * 1e6:.3g} us for a small message, while {lower.upper()} "
                f"takes {fits[lower].zero * 1e6:.3g}: {_blame(lower, upper)}"
            )
    for i, j, ratio in matrix.asymmetric():
        said.append(
            f"{matrix.names[i]} sends to {matrix.names[j]} {ratio:.2g} times as fast as it receives from it: look for "
            "a duplex mismatch or a shaped uplink"
        )
    for i, j in matrix.odd():
        said.append(f"{matrix.names[i]} to {matrix.names[j]} is slower than either of them with other machines")
    if matrix.medium.kind == "hub":
        said.append(f"one shared medium: {matrix.medium.evidence}; broadcast by UDP, and give ranks few neighbours")
    return said


def from_points(points: Sequence[Mapping[str, Any]]) -> list[Overlap]:
    """Return measured overlap from JSON data."""
    from minga.network.measuring.overlap import Polled

    return [Overlap(**{**point, "polled": tuple(Polled(**one) for one in point["polled"])}) for point in points]


def _blame(lower: str, upper: str) -> str:
    if upper == "mpi":
        return "the MPI library's transport or its settings"
    if upper == "tcp":
        return "TCP's buffers or settings, while the wire is fine"
    return "the programs at the far end, while its kernel answers quickly"


def _slower(link: Link, extra: float, factor: float) -> Link:
    slowed = (Segment(s.least, s.alpha + extra, s.beta * factor) for s in link.segments)
    return Link(tuple(slowed), link.overlap)


def _send_buffer(environment: Mapping[str, Any]) -> int | None:
    words = re.findall(r"\d+", (environment.get("settings") or {}).get("net.ipv4.tcp_wmem") or "")
    return int(words[1]) if len(words) == 3 else None

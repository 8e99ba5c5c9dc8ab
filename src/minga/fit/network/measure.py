"""Measure a network: over hosts without MPI, or inside an MPI job. The result is plain data for a machine's JSON."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minga.fit.network.environment import common_address
from minga.fit.network.exchanges import Ends, both_sides, ladder_of, measure_matrix, payload
from minga.fit.network.hosts import Host, Launcher, agents, ssh
from minga.fit.network.matrix import Medium, PairMatrix
from minga.fit.network.overlap import cures
from minga.fit.network.piecewise import Fit
from minga.fit.network.sampling import between, ladder
from minga.fit.network.section import (
    VERSION,
    break_names,
    drain_time,
    fits_of,
    from_points,
    measured_link,
    remarks,
    slow_section,
)
from minga.fit.network.team import Team, one_job
from minga.fit.network.transports import TRANSPORTS, Unavailable
from minga.fit.topology import Tree

__all__ = ["Progress", "measure_hosts", "measure_job"]

Progress = Callable[[float, str], None]
"""Told what part is done, 0 to 1, and what comes next."""

_OVERHEAD_SIZES = (1, 1000, 60_000)
_OVERLAP_SIZES = (60_000, 300_000, 1_000_000, 4_000_000)
_LADDERS, _MATRIX, _OVERLAP = 0.55, 0.25, 0.15


def measure_hosts(
    hosts: Sequence[Host],
    launcher: Launcher = ssh,
    budget: float = 60.0,
    on_progress: Progress | None = None,
    *,
    transports: Sequence[str] = ("icmp", "udp", "tcp"),
    interface: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure between hosts by agents that ``launcher`` starts, in about ``budget`` seconds; no MPI is needed.

    ``interface``: measure over this one only. Errors: see :func:`minga.fit.network.hosts.agents`; RunError for a host
    that goes away meanwhile. All agents are ended in any case.
    """
    _say(on_progress, 0.0, f"starting agents on {len(hosts)} hosts")
    with agents(hosts, launcher) as team:
        known = {number: member.identity for number, member in enumerate(team.members)}
        given = {number: host.address for number, host in enumerate(hosts)}
        addresses = _addresses(known, given, interface)
        for (a, b), found in addresses.items():
            addresses[a, b] = found or hosts[b].name
        members = list(range(len(hosts)))
        return _measure(team, members, {}, known, addresses, transports, budget, on_progress, seed)


def measure_job(
    communicator: Any,
    budget: float = 60.0,
    on_progress: Progress | None = None,
    *,
    seats: Tree | None = None,
    transports: Sequence[str] = TRANSPORTS,
    interface: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure inside an MPI job (mpi4py's communicator); collective, the result is equal on all ranks.

    ``seats``: where the ranks sit (:func:`minga.fit.topology.seats_of`); with it a pair of ranks stands for each level
    inside a node. Progress is told on rank 0.
    """
    section: dict[str, Any] | None = None
    leaders, inside = _places(communicator, seats)
    with one_job(communicator) as team:
        if team is not None:
            replies = team.run({member: {"do": "identity"} for member in leaders})
            addresses = _addresses(replies, {}, interface)
            section = _measure(team, leaders, inside, replies, addresses, transports, budget, on_progress, seed)
    shared: dict[str, Any] = communicator.bcast(section)
    return shared


def _measure(
    team: Team,
    members: Sequence[int],
    inside: Mapping[int, tuple[str, int, int]],
    known: Mapping[int, Mapping[str, Any]],
    addresses: Mapping[tuple[int, int], str | None],
    transports: Sequence[str],
    budget: float,
    on_progress: Progress | None,
    seed: int,
) -> dict[str, Any]:
    start = time.monotonic()
    library = str(known[members[0]]["mpi"] or "no MPI")
    _say(on_progress, 0.02, f"pairs of {len(members)} machines, alone and at the same time")
    matrix = _matrix(team, members, addresses, transports, _MATRIX * budget)
    around: dict[str, Any] = {}
    if len(members) > 1:
        ends = _typical(matrix, members, addresses)
        around = team.run({ends.sender: {"do": "environment", "address": ends.address}})[ends.sender]
    if (around.get("interface") or {}).get("loopback"):
        alone = Medium("unknown", math.nan, "messages do not leave the machine")
        matrix = PairMatrix(matrix.names, matrix.transport, (), (), alone)
    section: dict[str, Any] = {
        "version": VERSION,
        "seed": seed,
        "library": library,
        "members": [{"number": number, **known[number]} for number in members],
        "links": [],
        "unavailable": {},
        "pairs": matrix.as_dict(),
        "slow_nodes": slow_section(matrix),
        "environment": around,
        "overhead": [],
        "overlap": {},
        "crossed": None,
        "advice": [],
    }
    fits: dict[str, Fit] = {}
    classes = len(inside) + (len(transports) if len(members) > 1 else 0)
    share = _LADDERS * budget / max(1, classes)
    done = 0
    if len(members) > 1:
        for transport in transports:
            _say(on_progress, _MATRIX + _LADDERS * done / classes, f"{transport.upper()} between machines")
            done += 1
            try:
                entry, fit = _ladder(team, ends, transport, section, share, seed)
            except Unavailable as error:
                section["unavailable"][transport] = error.message
                continue
            section["links"].append(entry)
            fits[transport] = fit
        _host_costs(team, ends, transports, section, fits, budget, on_progress)
    for level, (name, a, b) in sorted(inside.items()):
        _say(on_progress, _MATRIX + _LADDERS * done / classes, f"MPI inside a node, {name}")
        done += 1
        samples = ladder_of(team, Ends(a, b), "mpi", ladder(), share, seed)
        section["links"].append(measured_link(level, name, "mpi", (a, b), samples, fits_of(samples, {}, seed)))
    section["advice"] += remarks(fits, matrix, section["crossed"])
    section["seconds"] = time.monotonic() - start
    _say(on_progress, 1.0, "done")
    plain: dict[str, Any] = json.loads(json.dumps(section, allow_nan=False))  # lists instead of tuples, as in a file
    return plain


def _matrix(
    team: Team,
    members: Sequence[int],
    addresses: Mapping[tuple[int, int], str | None],
    transports: Sequence[str],
    budget: float,
) -> PairMatrix:
    """Over TCP where it can be had: MPI libraries that wait by polling keep each other from the cores."""
    reachable = all(addresses.get((a, b)) for a in members for b in members if a != b)
    if "mpi" not in transports or ("tcp" in transports and reachable):
        try:
            return measure_matrix(team, members, addresses, "tcp", budget)
        except Unavailable:
            if "mpi" not in transports:
                raise
    return measure_matrix(team, members, addresses, "mpi", budget)


def _ladder(
    team: Team, ends: Ends, transport: str, section: dict[str, Any], budget: float, seed: int
) -> tuple[dict[str, Any], Fit]:
    """All sizes, then more around the breaks that were found; with a look at the interface's counters."""
    interface = section["environment"].get("interface") or {}
    sizes = ladder(mtu=int(interface.get("mtu") or 1500), neighbours=True)
    names = break_names(transport, section["environment"], section["library"])
    before = _sent(team, ends, interface)
    samples = ladder_of(team, ends, transport, sizes, 0.8 * budget, seed)
    _, median = fits = fits_of(samples, names, seed)
    extra = between([sample.size for sample in samples], [piece.least for piece in median.pieces[1:]])
    if extra:
        more = ladder_of(team, ends, transport, extra, 0.2 * budget, seed + 1)
        new = {sample.size: sample for sample in (*samples, *more)}
        samples = [new[size] for size in sorted(new)]
        fits = fits_of(samples, names, seed)
    after = _sent(team, ends, interface)
    if before is not None and after is not None:
        sent, least = after - before, payload(samples)
        if transport == "mpi" or section["crossed"] is None:
            section["crossed"] = {
                "transport": transport,
                "interface": interface["name"],
                "sent": sent,
                "payload": least,
                "enough": sent >= 0.95 * least,
            }
    members = (ends.sender, ends.receiver)
    return measured_link(0, "nodes", transport, members, samples, fits), fits[1]


def _host_costs(
    team: Team,
    ends: Ends,
    transports: Sequence[str],
    section: dict[str, Any],
    fits: Mapping[str, Fit],
    budget: float,
    on_progress: Progress | None,
) -> None:
    """Overhead of the hosts on TCP and MPI, and overlap on MPI."""
    _say(on_progress, _MATRIX + _LADDERS, "what messages cost the hosts")
    for transport in ("tcp", "mpi"):
        if transport in fits:
            points = both_sides(team, ends, "overhead", transport, sizes=list(_OVERHEAD_SIZES), allowed=30.0)
            section["overhead"].append({"transport": transport, "points": points})
    if "mpi" not in fits:
        return
    _say(on_progress, 1 - _OVERLAP, "how much of a transfer computation hides")
    share = _OVERLAP * budget
    # Each size is timed at least three times in seven ways.
    sizes = [size for size in _OVERLAP_SIZES if 40 * float(fits["mpi"].time([size])[0]) < share]
    points = both_sides(team, ends, "overlap", "mpi", sizes=sizes or [_OVERLAP_SIZES[0]], budget=share)
    drain = drain_time(section["environment"], fits["mpi"])
    advice = cures(from_points(points), section["library"], drain)
    section["overlap"] = {"library": section["library"], "drain": drain, "points": points, "cures": advice}
    section["advice"] += advice


def _addresses(
    known: Mapping[int, Mapping[str, Any]], given: Mapping[int, str | None], interface: str | None
) -> dict[tuple[int, int], str | None]:
    """For each ordered pair of members an address of the second one that the first one reaches."""
    return {
        (a, b): given.get(b) or common_address(known[a]["interfaces"], known[b]["interfaces"], interface)
        for a in known
        for b in known
        if a != b
    }


def _typical(matrix: PairMatrix, members: Sequence[int], addresses: Mapping[tuple[int, int], str | None]) -> Ends:
    """The pair of machines with the median bandwidth."""
    ordered = sorted(matrix.pairs, key=lambda pair: (pair.bandwidth, pair.sender, pair.receiver))
    chosen = ordered[len(ordered) // 2]
    a, b = members[chosen.sender], members[chosen.receiver]
    return Ends(a, b, addresses.get((a, b)))


def _places(communicator: Any, seats: Tree | None) -> tuple[list[int], dict[int, tuple[str, int, int]]]:
    """The first rank of each node, and for each level inside nodes its name and a pair of ranks that stands for it."""
    from mpi4py import MPI

    node = communicator.Split_type(MPI.COMM_TYPE_SHARED)
    first = node.bcast(communicator.rank)
    node.Free()
    firsts: list[int] = communicator.allgather(first)
    leaders = sorted(set(firsts))
    inside: dict[int, tuple[str, int, int]] = {}
    if seats is None:
        for rank, leader in enumerate(firsts):
            if rank != leader:
                inside[1] = ("one node", leader, rank)
                break
        return leaders, inside
    ranks = range(communicator.size)
    for a in ranks:
        for b in ranks[a + 1 :]:
            if firsts[a] == firsts[b]:
                level = int(seats.common(a, b))
                inside.setdefault(level, (seats.relations[level] if level < len(seats.relations) else "", a, b))
        if len(inside) == len(seats.levels):
            break
    return leaders, inside


def _sent(team: Team, ends: Ends, interface: Mapping[str, Any]) -> int | None:
    if "name" not in interface:
        return None
    reply = team.run({ends.sender: {"do": "counters", "interface": interface["name"]}})[ends.sender]
    found = reply.get("counters")
    return None if found is None else int(found["sent_bytes"])


def _say(on_progress: Progress | None, part: float, what: str) -> None:
    if on_progress is not None:
        on_progress(part, what)

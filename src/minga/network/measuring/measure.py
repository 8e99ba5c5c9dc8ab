"""Measurement of a network, over hosts without MPI or inside an MPI job; gives plain data for a machine's JSON."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minga.launch.hosts import Host, Launcher, ssh
from minga.network.measuring.environment import common_address
from minga.network.measuring.exchanges import Ends, measure_matrix, sample_message_sizes
from minga.network.measuring.host_team import agents
from minga.network.measuring.levels import levels_of
from minga.network.measuring.matrix import Medium, PairMatrix
from minga.network.measuring.sampling import message_sizes
from minga.network.measuring.section import VERSION, fits_of, measured_link, remarks, slow_section
from minga.network.measuring.stages import (
    SHARES,
    Survey,
    broadcast_advice,
    cache_stage,
    curve_stage,
    encoding_stage,
    host_stage,
    link_stage,
)
from minga.network.measuring.switches import as_at_one_switch, switch_remarks, switches_section
from minga.network.measuring.team import one_job
from minga.network.measuring.transports import TRANSPORTS, Unavailable
from minga.plan.topology import Tree

__all__ = ["Progress", "measure_hosts", "measure_job"]

Progress = Callable[[float, str], None]
"""Function that is called with the fraction done, 0 to 1, and the next step."""


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
    """Measure between hosts through agents; no MPI is needed. All agents are ended in any case.

    Parameters
    ----------
    hosts
        The hosts.
    launcher
        Function that runs a command on a host, used to start the agents.
    budget
        Approximate time in seconds.
    on_progress
        Called with the fraction done and the next step.
    transports
        Transports to measure.
    interface
        Name of the only interface to use; None uses any.
    seed
        Seed of the random order of sizes.

    Returns
    -------
    dict
        The network section of a machine's JSON, see docs/network.md.

    Raises
    ------
    LaunchError
        See :func:`minga.network.measuring.host_team.agents`.
    RunError
        If a host is lost during the measurement.
    """
    say = on_progress or _quietly
    say(0.0, f"starting agents on {len(hosts)} hosts")
    with agents(hosts, launcher) as team:
        known = {number: member.identity for number, member in enumerate(team.members)}
        given = {number: host.address for number, host in enumerate(hosts)}
        addresses = _addresses(known, given, interface)
        for (a, b), found in addresses.items():
            addresses[a, b] = found or hosts[b].name
        members = list(range(len(hosts)))
        survey = Survey(team, members, known, addresses, transports, budget, seed, say, _empty(known, members, seed))
        return _measure(survey, {})


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
    """Measure inside an MPI job; collective, with the same result on all ranks.

    Parameters
    ----------
    communicator
        Communicator of mpi4py.
    budget
        Approximate time in seconds.
    on_progress
        Called on rank 0 with the fraction done and the next step.
    seats
        Locations of the ranks (:func:`minga.plan.topology.seats_of`); if given, one pair of ranks is measured for each
        level inside a node.
    transports, interface, seed
        See :func:`measure_hosts`.

    Returns
    -------
    dict
        The network section of a machine's JSON, see docs/network.md.
    """
    section: dict[str, Any] | None = None
    leaders, inside = _places(communicator, seats)
    with one_job(communicator) as team:
        if team is not None:
            replies = team.run({member: {"do": "identity"} for member in leaders})
            addresses = _addresses(replies, {}, interface)
            empty = _empty(replies, leaders, seed)
            survey = Survey(team, leaders, replies, addresses, transports, budget, seed, on_progress or _quietly, empty)
            section = _measure(survey, inside)
    shared: dict[str, Any] = communicator.bcast(section)
    return shared


def _measure(survey: Survey, inside: Mapping[int, tuple[str, int, int]]) -> dict[str, Any]:
    start = time.monotonic()
    section, members = survey.section, survey.members
    survey.progress(0.02, f"pairs of {len(members)} machines, alone and at the same time")
    matrix = _matrix(survey)
    between = len(members) > 1
    if between:
        ends = _typical(matrix, members, survey.addresses)
        around = survey.team.run({ends.sender: {"do": "environment", "address": ends.address}})[ends.sender]
        section["environment"] = around
        if (around.get("interface") or {}).get("loopback"):
            alone = Medium("unknown", math.nan, "messages do not leave the machine")
            matrix = PairMatrix(matrix.names, matrix.transport, (), (), alone)
    levels = levels_of(matrix)
    section |= {
        "pairs": matrix.as_dict(),
        "switches": switches_section(matrix, levels),
        "slow_nodes": slow_section(as_at_one_switch(matrix, levels)),
    }
    classes = len(inside) + (len(survey.transports) if between else 0)
    share, first = survey.share("links") / max(1, classes), SHARES["pairs"]
    step = SHARES["links"] / max(1, classes)
    if between:
        for transport in survey.transports:
            survey.progress(first, f"{transport.upper()} between machines")
            link_stage(survey, ends, transport, share)
            first += step
    for level, (name, a, b) in sorted(inside.items()):
        survey.progress(first, f"MPI inside a node, {name}")
        samples = sample_message_sizes(survey.team, Ends(a, b), "mpi", message_sizes(), share, survey.seed)
        section["links"].append(measured_link(level, name, "mpi", (a, b), samples, fits_of(samples, {}, survey.seed)))
        first += step
    if between:
        curve_stage(survey, matrix)
        host_stage(survey, ends)
    survey.progress(1 - SHARES["overlap"] / 3, "caches and encodings")
    _caches(survey, inside, ends if between else None)
    encoding_stage(survey, max(0.2, 0.01 * survey.budget))
    broadcast_advice(survey)
    said = remarks(survey.fits, matrix, section["crossed"]) + switch_remarks(matrix, levels)
    section["advice"] = said + section["advice"]
    section["seconds"] = time.monotonic() - start
    survey.progress(1.0, "done")
    plain: dict[str, Any] = json.loads(json.dumps(section, allow_nan=False))  # lists instead of tuples, as in a file
    return plain


def _empty(known: Mapping[int, Mapping[str, Any]], members: Sequence[int], seed: int) -> dict[str, Any]:
    """Return the section before anything is measured."""
    return {
        "version": VERSION,
        "seed": seed,
        "library": str(known[members[0]]["mpi"] or "no MPI"),
        "members": [{"number": number, **known[number]} for number in members],
        "links": [],
        "libraries": [],
        "unavailable": {},
        "pairs": {},
        "switches": {},
        "slow_nodes": {},
        "environment": {},
        "settings": {},
        "machines": [],
        "anomalies": [],
        "overhead": [],
        "trains": [],
        "one_way": {},
        "cache": [],
        "encodings": {},
        "overlap": {},
        "broadcast": {},
        "crossed": None,
        "advice": [],
    }


def _matrix(survey: Survey) -> PairMatrix:
    """Measure pairs over TCP if possible, because MPI libraries that poll while waiting compete for the cores."""
    team, members, addresses, budget = survey.team, survey.members, survey.addresses, survey.share("pairs")
    reachable = all(addresses.get((a, b)) for a in members for b in members if a != b)
    if "mpi" not in survey.transports or ("tcp" in survey.transports and reachable):
        try:
            return measure_matrix(team, members, addresses, "tcp", budget)
        except Unavailable:
            if "mpi" not in survey.transports:
                raise
    return measure_matrix(team, members, addresses, "mpi", budget)


def _caches(survey: Survey, inside: Mapping[int, tuple[str, int, int]], ends: Ends | None) -> None:
    """Compare messages in and out of cache, on the layer that programs use between machines and inside one node."""
    budget = max(0.2, 0.02 * survey.budget)
    carrier = next((transport for transport in ("mpi", "tcp") if transport in survey.fits), None)
    if ends is not None and carrier is not None:
        cache_stage(survey, ends, carrier, budget)
    if inside:
        _, a, b = inside[min(inside)]
        cache_stage(survey, Ends(a, b), "mpi", budget)


def _addresses(
    known: Mapping[int, Mapping[str, Any]], given: Mapping[int, str | None], interface: str | None
) -> dict[tuple[int, int], str | None]:
    """Return, for each ordered pair of members, an address of the second one that the first one can reach."""
    return {
        (a, b): given.get(b) or common_address(known[a]["interfaces"], known[b]["interfaces"], interface)
        for a in known
        for b in known
        if a != b
    }


def _typical(matrix: PairMatrix, members: Sequence[int], addresses: Mapping[tuple[int, int], str | None]) -> Ends:
    """Return the pair of machines with the median bandwidth."""
    ordered = sorted(matrix.pairs, key=lambda pair: (pair.bandwidth, pair.sender, pair.receiver))
    chosen = ordered[len(ordered) // 2]
    a, b = members[chosen.sender], members[chosen.receiver]
    return Ends(a, b, addresses.get((a, b)))


def _places(communicator: Any, seats: Tree | None) -> tuple[list[int], dict[int, tuple[str, int, int]]]:
    """Return the first rank of each node, and the name and a representative pair of ranks of each level in nodes."""
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


def _quietly(part: float, what: str) -> None:
    """Ignore progress."""

"""A semi-dynamic probe: before a run, all ranks time the model's own step at the same time, and their messages.

As in G. Milano, E. Mocskos, G. Marshall (electrodeposition on a heterogeneous cluster, section 2.1), each node times a
reduced run of the same kernels, all times are sent to all nodes, and shares are derived from them. Here, speed is a
function of size (Lastovetsky and Reddy 2007), and all ranks of a node work at the same time, since caches and memory
are shared.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, overload

import numpy as np

from minga.engine.comm import Comm, MPIComm, SerialComm
from minga.engine.model import Model
from minga.engine.pin import available_cores, share
from minga.engine.quotas import quota
from minga.engine.waiting import longest_nap
from minga.plan.cost import work_of
from minga.plan.links import Link, Links, Segment
from minga.plan.machine.machine import MEMORY_SHARE
from minga.plan.machine.resources import available_memory, processor_name
from minga.plan.probe.pingpong import links_of
from minga.plan.probe.rehearsal import Rehearsal, Sample, part_of
from minga.plan.probe.remembered import key_of, load_cached, store_cached
from minga.plan.ranks import RankGroup
from minga.plan.speed import TRUSTED, Speed
from minga.plan.topology import Tree, seats_of, usable
from minga.plan.work.work import Work
from minga.space.boxes import Ints

__all__ = ["known_speed", "measure_speed", "probe_beyond", "probe_ranks", "probed_sizes", "sample_sizes"]

_FRACTIONS: Final = (1.0, 1 / 4, 1 / 16)
"""Sizes that are timed, as fractions of the equal share of cells."""
_LARGEST: Final = 1 << 24
"""Maximum cells of a part that is timed; larger parts are in memory anyway, and speed does not change."""
_FEWEST_PERIODS: Final = 10
"""Minimum number of periods of a processor-time quota that a measurement spans if the quota throttles."""
_LONGEST: Final = 1.5
"""Maximum seconds of such a measurement."""
_SAMPLES: Final = 7
"""Minimum number of samples of each size if time is not short."""
_ALIKE: Final = 1.1
"""Ratio of times up to which ranks count as equally fast: differences of this size are noise."""
_PREPARING: Final = 0.5
"""Seconds after which values in halos are good enough."""
_NETWORK: Final = 0.3
"""Seconds in which messages are timed."""
_PATIENCE: Final = 10.0
"""Maximum expected seconds of measuring a size; larger sizes are left out, and speeds of smaller parts are used."""
_RUNS: Final = 8
"""Minimum number of steps that the measurement of a size takes."""
_Times = tuple[tuple[float, ...], tuple[float, ...]]
"""Cells of the model and seconds of a step, for each size."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Measurements that a rank sends to the others."""

    cells: tuple[float, ...]
    seconds: tuple[float, ...]
    node: int
    host: str
    memory: int | None


def probe_ranks(
    model: Model, comm: Comm, *, threads: int = 1, seconds: float = 1.0, cache: bool = True,
    cpus: Sequence[int] | None = None, stop: Callable[[], bool] | None = None, seats: Tree | None = None,
) -> RankGroup:  # fmt: skip
    """Measure the ranks of ``comm``; collective, equal on all ranks.

    Functions that a step calls (:meth:`minga.engine.program.Program.call`) are left out, as their effects are unknown.

    Parameters
    ----------
    model
        The model whose step is timed, on parts of its grid: an equal share per rank, a quarter and a sixteenth of it.
    comm
        The ranks.
    threads, cpus
        As in the run.
    seconds
        Approximate time for kernels; messages take at most 0.3 s more, and compiling takes additional time.
    cache
        True if speeds that this host has measured for the same kernels within the last week may be reused, and likewise
        message times within the host.
    stop
        Called on every rank from time to time; if it returns True on any rank, all raise KeyboardInterrupt.
    seats
        The places of the ranks, if they are known.

    Returns
    -------
    RankGroup
        The ranks.
    """
    work = work_of(model)
    seats = seats_of(comm) if seats is None else seats
    crowd = len(np.flatnonzero(seats.nodes == seats.nodes[comm.rank]))
    parts = probed_sizes(work, comm.size)
    key = _key(work, parts, threads, crowd, len(usable()))
    known = load_cached(key, _speeds_in) if cache else None
    missing = np.array([known is None], np.int64)
    comm.allreduce(missing, "max")
    if missing[0] or known is None:
        known = _timed(model, work, parts, comm, threads, seconds, cpus, stop or _never)
        store_cached(key, {"cells": known[0], "seconds": known[1]})
    # The time for messages is not taken from the time that a short run allows for its probe.
    links = _links(comm, seats, min(_NETWORK, seconds), cache)
    found = comm.gather(_Found(*known, comm.node, platform.node(), available_memory()))
    group: RankGroup | None = None
    if found is not None:
        speeds, speed_of = _grouped(found)
        nodes = seats.nodes
        names = tuple(found[int(np.flatnonzero(nodes == n)[0])].host for n in range(int(nodes.max()) + 1))
        group = RankGroup(speeds, speed_of, _memory(found), seats, links, names)
    agreed: RankGroup = comm.bcast(group)
    return agreed


def known_speed(model: Model, ranks: int, threads: int = 1) -> Speed | None:
    """Return the speed per rank that this host has measured for a model within the last week; None if there is none."""
    work = work_of(model)
    parts = probed_sizes(work, ranks)
    pinned = sum(len(core) for core in share(available_cores(), 0, ranks, threads))
    for allowed in (pinned, len(usable())):
        found = load_cached(_key(work, parts, threads, ranks, allowed), _speeds_in)
        if found is not None:
            return Speed.measured(*found)
    return None


def probe_beyond(
    model: Model, comm: Comm, group: RankGroup, planned: Ints, *, threads: int = 1, seconds: float = 0.5,
    cpus: Sequence[int] | None = None, stop: Callable[[], bool] | None = None,
) -> RankGroup:  # fmt: skip
    """Measure ranks at the sizes that a plan gives them, if these are beyond the measured sizes.

    ``planned`` are the cells of the model for each rank. Collective, equal on all ranks; the same ``group`` is returned
    if no size is beyond. A plan can then be made again: this is the partial functional performance model of
    Lastovetsky and Reddy (2010).
    """
    known = np.array([group.speeds[number].cells[-1] for number in group.speed_of])
    size = np.minimum(planned, _LARGEST)
    expected = _RUNS * np.array([group.speeds[n].time(c) for n, c in zip(group.speed_of, size, strict=True)])
    beyond = (size > TRUSTED * known) & (expected <= _PATIENCE)
    if not beyond.any():
        return group
    work = work_of(model)
    mine = part_of(work, float(size[comm.rank]) / work.points) if beyond[comm.rank] else None
    with Rehearsal(model, work, mine, threads, cpus) if mine is not None else nullcontext() as rehearsal:
        sample = _together(rehearsal, comm, seconds, stop=stop or _never)
        found = comm.gather(None if rehearsal is None or sample is None else (rehearsal.cells, sample.typical))
    agreed: list[tuple[float, float] | None] = comm.bcast(found)
    speeds = []
    for number, speed in enumerate(group.speeds):
        points = [agreed[rank] for rank in np.flatnonzero(group.speed_of == number).tolist()]
        measured = sorted(point for point in points if point is not None)
        if measured:
            cells, times = zip(*measured)
            speed = Speed.measured([*speed.cells, float(np.median(cells))], [*speed.seconds, float(np.median(times))])
        speeds.append(speed)
    return replace(group, speeds=tuple(speeds))


def measure_speed(
    model: Model, sizes: Sequence[int], threads: int = 1, seconds: float = 1.0, comm: Comm | None = None
) -> Speed:
    """Measure the speed of this rank for a model at about the given numbers of cells.

    All ranks of ``comm`` measure at the same time.
    """
    found = sample_sizes(model, sizes, threads, seconds, comm)
    return Speed.measured([cells for cells, _ in found], [sample.typical for _, sample in found])


def sample_sizes(
    model: Model, sizes: Sequence[int], threads: int = 1, seconds: float = 1.0, comm: Comm | None = None
) -> list[tuple[int, Sample]]:
    """Return the samples behind :func:`measure_speed`: cells of each timed part, and the times of its steps."""
    work, found = work_of(model), []
    for size in sizes:
        with Rehearsal(model, work, part_of(work, size / work.points), threads) as rehearsal:
            found.append((rehearsal.cells, _together(rehearsal, comm or SerialComm(), seconds / len(sizes), _SAMPLES)))
    return found


def probed_sizes(work: Work, ranks: int) -> tuple[int, ...]:
    """Return the different sizes of the timed parts in cells of the domain, the largest first."""
    share = min(work.domain.size / ranks, _LARGEST)
    sizes = dict.fromkeys(part_of(work, share * fraction).size for fraction in _FRACTIONS)
    return tuple(sorted(sizes, reverse=True))


def _timed(
    model: Model, work: Work, sizes: Sequence[int], comm: Comm, threads: int, seconds: float,
    cpus: Sequence[int] | None, stop: Callable[[], bool],
) -> _Times:  # fmt: skip
    """Time the sizes from the smallest to the largest, but none that would take very long; collective.

    Returns
    -------
    tuple
        Cells and seconds of a step, the largest size first.
    """
    cells: list[float] = []
    times: list[float] = []
    _go_on(comm, stop)
    for size in reversed(sizes):
        if cells and _slowest(comm, times[0] * size * work.points / cells[0]) * _RUNS > _PATIENCE:
            break
        # The largest size is the most important one and gets half of the time.
        window = seconds / (2 if size == sizes[0] else 2 * (len(sizes) - 1))
        with Rehearsal(model, work, part_of(work, size), threads, cpus) as rehearsal:
            cells.insert(0, float(rehearsal.cells))
            times.insert(0, _together(rehearsal, comm, window if len(sizes) > 1 else seconds, stop=stop).typical)
    return tuple(cells), tuple(times)


def _slowest(comm: Comm, seconds: float) -> float:
    """Return the largest of the times of all ranks; collective."""
    words = np.array([int(1e9 * min(seconds, 1e9))], np.int64)
    comm.allreduce(words, "max")
    return float(words[0]) * 1e-9


def _never() -> bool:
    return False


@overload
def _together(
    rehearsal: Rehearsal, comm: Comm, seconds: float, fewest: int = 2, stop: Callable[[], bool] = _never
) -> Sample: ...
@overload
def _together(
    rehearsal: Rehearsal | None, comm: Comm, seconds: float, fewest: int = 2, stop: Callable[[], bool] = _never
) -> Sample | None: ...
def _together(
    rehearsal: Rehearsal | None, comm: Comm, seconds: float, fewest: int = 2, stop: Callable[[], bool] = _never
) -> Sample | None:
    """Time steps for so many seconds on all ranks at once, or longer on all ranks if a quota throttles one.

    Ranks without a rehearsal take part in the synchronisation.
    """
    if not comm.leads_node:
        comm.barrier()  # the first rank of a node compiles, and the others load the code
    if rehearsal is not None:
        rehearsal.prepare(max(seconds, _PREPARING), stop)
    if comm.leads_node:
        comm.barrier()
    _go_on(comm, stop)
    sample = None if rehearsal is None else rehearsal.sample(seconds, fewest)
    _go_on(comm, stop)
    need = 0.0
    if sample is not None and sample.throttled:
        limit = quota()
        need = _FEWEST_PERIODS * (limit[1] if limit is not None else 0.01)
    words = np.array([int(1e9 * min(need, _LONGEST)) if need > seconds else 0], np.int64)
    comm.allreduce(words, "max")
    return sample if not words[0] or rehearsal is None else rehearsal.sample(float(words[0]) * 1e-9, fewest)


def _go_on(comm: Comm, stop: Callable[[], bool]) -> None:
    """Synchronise all ranks; raise KeyboardInterrupt on each if one of them was asked to stop."""
    asked = np.array([stop()], np.int64)
    comm.allreduce(asked, "max")
    if asked[0]:
        raise KeyboardInterrupt


def _grouped(found: Sequence[_Found]) -> tuple[tuple[Speed, ...], Ints]:
    """Reduce the ranks' speeds to few: those that are nearly equal are replaced by their median."""
    size = min(entry.cells[0] for entry in found)
    curves = [Speed.measured(entry.cells, entry.seconds) for entry in found]
    at_size = np.array([float(curve.time(size)) for curve in curves])
    speeds: list[Speed] = []
    speed_of = np.empty(len(found), np.int64)
    order = np.argsort(at_size, kind="stable")
    while len(order):
        alike = order[at_size[order] <= _ALIKE * at_size[order[0]]]
        order = order[len(alike) :]
        speed_of[alike] = len(speeds)
        times = np.median([found[rank].seconds for rank in alike], axis=0)
        speeds.append(Speed.measured(found[int(alike[0])].cells, times.tolist()))
    return tuple(speeds), speed_of


def _memory(found: Sequence[_Found]) -> Ints:
    """Return the bytes that each rank may fill: an equal share of its node's free memory."""
    nodes = np.array([entry.node for entry in found])
    crowd = np.array([(nodes == node).sum() for node in nodes])
    free = np.array([1 << 62 if entry.memory is None else entry.memory for entry in found], float)
    least = np.array([free[nodes == node].min() for node in nodes])
    share: Ints = (MEMORY_SHARE * least / crowd).astype(np.int64)
    return share


# Earlier measurements ------------------------------------------------------------------------------------------------
def _key(work: Work, sizes: Sequence[int], threads: int, crowd: int, allowed: int) -> str:
    """Return the key of everything that speeds depend on."""
    return key_of(
        "2", platform.node(), processor_name(), work.kernel, str(sizes), str(work.domain), threads, crowd, allowed,
        quota(), os.environ.get("MINGA_PIN", ""),
    )  # fmt: skip


def _speeds_in(data: Mapping[str, Any]) -> _Times:
    cells, seconds = tuple(map(float, data["cells"])), tuple(map(float, data["seconds"]))
    Speed.measured(cells, seconds)
    return cells, seconds


def _links(comm: Comm, seats: Tree, seconds: float, cache: bool) -> Links:
    """Return the links between the ranks; collective, equal on all.

    For a single node, measurements of the last week are reused.
    """
    alone = isinstance(comm, MPIComm) and len(np.unique(seats.nodes)) == 1
    if not (cache and alone):
        return links_of(comm, seats, seconds)
    from mpi4py import MPI

    place = platform.node(), processor_name(), quota(), seats.levels, seats.paths.tolist()
    key = key_of("links", *place, MPI.Get_library_version(), longest_nap())
    known: Links | None = comm.bcast(load_cached(key, _links_in) if comm.rank == 0 else None)
    if known is not None:
        return known
    links = links_of(comm, seats, seconds)
    if comm.rank == 0:
        levels = [[(s.least, s.alpha, s.beta) for s in link.segments] for link in links.levels]
        store_cached(key, {"levels": levels})
    return links


def _links_in(data: Mapping[str, Any]) -> Links:
    levels = [tuple(Segment(int(n), float(a), float(b)) for n, a, b in link) for link in data["levels"]]
    if not all(levels):
        raise ValueError("a link without segments")
    return Links(tuple(map(Link, levels)))

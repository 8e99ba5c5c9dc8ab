"""Ranks of a product, with the speed of the BLAS of each, measured with panels like those of the product.

Speed is a function of size (Lastovetsky and Reddy, *Data Partitioning with a Functional Performance Model of
Heterogeneous Processors*, IJHPCA 21, 2007): thin blocks of rows take more time per row than thick ones. All ranks
measure at the same time, because those of one node share its memory; a host caches its measurements.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, MPIComm
from minga.engine.quotas import quota
from minga.errors import CaseError
from minga.models.matmul.operands import TYPES
from minga.models.matmul.panels import Panels
from minga.plan.broadcasting import best_route
from minga.plan.links import Link, Links
from minga.plan.machine.hosts import group_on
from minga.plan.machine.machine import MEMORY_SHARE, Machine
from minga.plan.machine.resources import available_memory, processor_name
from minga.plan.probe.pingpong import links_of
from minga.plan.probe.remembered import key_of, load_cached, store_cached
from minga.plan.ranks import RankGroup
from minga.plan.speed import Speed
from minga.plan.topology import Tree, seats_of, usable
from minga.space.boxes import Ints

__all__ = ["KERNELS", "Wire", "Workers", "described", "measured"]

Floats = NDArray[np.float64]

KERNELS: Final = {name: f"matmul {name}" for name in TYPES}
"""Names of the speeds of products in machine files; their cells are multiply-adds."""

_DEPTH: Final = 4096
"""Largest number of columns of the block of A that is timed: more do not change the speed of BLAS."""
_ROWS: Final = (64, 256, 1024)
"""Numbers of rows of the blocks of A that are timed."""
_UNMEASURED: Final = 1.0 / 2e9
"""Time to copy a byte between files and memory on hosts without measurements, s."""
_LONGEST: Final = 1.5
"""Longest time for a size under a quota, s."""
_FEWEST_PERIODS: Final = 20
"""Least time for a size under a quota, in periods of the quota."""
_MOST_OF_A_SAMPLE: Final = 2.0
"""Time that one product may take, as a multiple of the time for a size."""
_SENT: Final = (1 << 18, 1 << 21)
"""Bytes of the messages to all ranks that are timed: more than traffic-shaped links let pass at once."""
_SERIES: Final = 4
"""Least number of messages in a series."""
_LOOK: Final = 5e-4
"""Interval between two polls of a transfer, s."""
_MOST_SERIES: Final = 20
"""Largest number of series."""
_THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""Environment variables that set the number of threads of BLAS."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Cost of messages to all: a message from one rank to ``ranks - 1`` others takes ``alpha + beta * bytes`` seconds.

    For other numbers of ranks, the cost scales like that of large broadcasts of MPI libraries, a scatter and a ring, in
    which every rank sends each byte ``2 (ranks - 1) / ranks`` times. On one shared medium all bytes queue,
    ``ranks - 1`` times. If ``flat`` is set, the number of ranks makes no difference: for chains at a switch, and where
    the network itself delivers a message to all.
    """

    alpha: float
    beta: float
    ranks: int
    shared: bool = False
    flat: bool = False

    def time(self, count: float, ranks: int) -> float:
        """Return the seconds until all of ``ranks`` ranks have a message of ``count`` bytes."""
        return 0.0 if ranks < 2 else (self.alpha + self.beta * count) * self._part(ranks) / self._part(self.ranks)

    def slope(self, ranks: int) -> float:
        """Return the seconds per byte of large messages to ``ranks`` ranks."""
        return 0.0 if ranks < 2 else self.beta * self._part(ranks) / self._part(self.ranks)

    def _part(self, ranks: int) -> float:
        if self.flat:
            return 1.0
        return float(ranks - 1) if self.shared else 2.0 * (ranks - 1) / ranks


@dataclass(frozen=True, eq=False)
class Workers:
    """The ranks of a product, with their speeds and costs of communication.

    Attributes
    ----------
    group
        The ranks; its speeds are seconds of one call of BLAS by the number of multiply-adds.
    copying
        Time to copy a byte between a file and memory, by rank, s.
    handling
        Time during which a rank cannot multiply for each byte of a panel that passes through its network, by rank, s.
    wire
        Cost of messages to all.
    origin
        Origin of these numbers, such as "measured".
    route
        Route of the panels, see :class:`minga.engine.engine.Engine`.
    """

    group: RankGroup
    copying: tuple[float, ...]
    handling: tuple[float, ...]
    wire: Wire
    origin: str
    route: str = "auto"

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.group.ranks

    def speed(self, rank: int) -> Speed:
        """Return the speed of a rank."""
        return self.group.speeds[int(self.group.speed_of[rank])]

    def rate(self, rank: int) -> float:
        """Return the multiply-adds per second of a rank for large blocks."""
        speed = self.speed(rank)
        return float(speed.cells[-1] / speed.seconds[-1])

    @property
    def rates(self) -> Floats:
        """Multiply-adds per second of all ranks, shape (ranks,)."""
        return np.array([self.rate(rank) for rank in range(self.ranks)])

    def timer(self, ranks: Sequence[int]) -> Callable[[Floats], Floats]:
        """Return a function of the multiply-adds of some ranks to their seconds: :meth:`Speed.time` for all at once."""
        speeds = [self.speed(rank) for rank in ranks]
        most = max(len(speed.cells) for speed in speeds)
        # Shorter curves continue at the rate of their end; all begin at 0.
        scale = [np.r_[np.ones(len(speed.cells)), 2.0 ** np.arange(1, most - len(speed.cells) + 1)] for speed in speeds]
        last = [np.minimum(np.arange(most), len(speed.cells) - 1) for speed in speeds]
        cells = np.array([np.r_[0.0, s.cells[at] * by] for s, at, by in zip(speeds, last, scale)])
        seconds = np.array([np.r_[0.0, s.seconds[at] * by] for s, at, by in zip(speeds, last, scale)])
        every = np.arange(len(speeds))

        def time_of(amounts: Floats) -> Floats:
            at = np.minimum((cells[:, 1:] < amounts[:, None]).sum(axis=1), most - 1)
            low, high = cells[every, at], cells[every, at + 1]
            share = np.minimum((amounts - low) / (high - low), 1.0)
            within = seconds[every, at] + share * (seconds[every, at + 1] - seconds[every, at])
            found: Floats = within * np.maximum(amounts / cells[:, -1], 1.0)
            return found

        return time_of

    def name(self, rank: int) -> str:
        """Return a name for a rank: its node, with the rank's number if the node has several ranks."""
        node = self.group.node(rank)
        alone = int((self.group.seats.nodes == self.group.seats.nodes[rank]).sum()) == 1
        return node if alone else f"{node} #{rank}"


def measured(
    comm: Comm, dtype: np.dtype[Any], rows: int, depth: int, width: int, *, seconds: float = 0.6, cache: bool = True,
    route: str | None = None, memory: int | None = None,
) -> Workers:  # fmt: skip
    """Measure the ranks of ``comm``; collective, with the same result on all.

    Parameters
    ----------
    comm
        The ranks.
    dtype
        Type of the elements.
    rows, depth, width
        Rows of a rank with equal shares, depth of the product, and columns of a panel.
    seconds
        Approximate time for timing products, unless this host has cached its speed, and for timing messages.
    cache
        Whether cached speeds are used.
    route
        Route of the panels; by default the best one for the links.
    memory
        Largest number of bytes that the timed matrices may fill.
    """
    seats = seats_of(comm)
    crowd = int((seats.nodes == seats.nodes[comm.rank]).sum())
    sizes = _sizes(rows, depth, width, (memory or 1 << 40) // dtype.itemsize)
    key = _key(dtype, sizes, crowd)
    known = load_cached(key, _in_file) if cache else None
    missing = np.array([known is None], np.int64)
    comm.allreduce(missing, "max")
    if missing[0] or known is None:
        known = _together(comm, dtype, sizes, seconds)
        store_cached(key, {"cells": known[0], "seconds": known[1], "copying": known[2]})
    panel = depth * width * dtype.itemsize
    links, chosen, wire, handling = _network(comm, seats, seconds, route, panel)
    handling /= _cores(crowd)
    found = comm.gather((known, comm.node, platform.node(), available_memory(), handling))
    workers: Workers | None = None
    if found is not None:
        speeds = tuple(Speed.measured(entry[0][0], entry[0][1]) for entry in found)
        nodes = seats.nodes
        names = tuple(found[int(np.flatnonzero(nodes == n)[0])][2] for n in range(int(nodes.max()) + 1))
        room = _memory([(entry[1], entry[3]) for entry in found])
        group = RankGroup(speeds, np.arange(len(found)), room, seats, links, names)
        copying, busy = tuple(entry[0][2] for entry in found), tuple(entry[4] for entry in found)
        workers = Workers(group, copying, busy, wire, "measured", chosen)
    agreed: Workers = comm.bcast(workers)
    return agreed


def described(machine: Machine, dtype: np.dtype[Any], ranks: int | None = None, hosts: Sequence[str] = ()) -> Workers:
    """Return the ranks that a machine file describes.

    Parameters
    ----------
    machine
        The machine.
    dtype
        Type of the elements.
    ranks
        Number of ranks; by default those of all nodes.
    hosts
        Hosts that ranks were started on; by default ranks are on the nodes of the machine.

    Raises
    ------
    CaseError
        If a node has no speed for products.
    """
    kernel = KERNELS[dtype.str[1:]]
    for number, kind in enumerate(machine.nodes):
        known = kind.speeds.get("cpu", {})
        if kernel not in known and kernel not in {entry.name for entry in known.values()}:
            raise CaseError(
                f"the machine {machine.name or machine.source!r} does not say how fast node {kind.name!r} multiplies "
                f"matrices of {dtype.str[1:]}",
                key=f"nodes[{number}].speeds.cpu",
                remedy=f'add "{kernel}": "10 Gcells/s", where a cell is one multiply-add of one core',
            )
    group = group_on(machine, hosts, kernel) if hosts else machine.rank_group(ranks, kernel)
    wire, route = _expected(group.links.widest(group.seats), group.ranks, group.links.shared)
    origin = f"from {machine.source or machine.name}"
    return Workers(group, (_UNMEASURED,) * group.ranks, (0.0,) * group.ranks, wire, origin, route)


def _expected(link: Link, ranks: int, shared: bool) -> tuple[Wire, str]:
    """Return the expected cost of messages to all over described links, and the best route for large messages."""
    if ranks == 1:
        return Wire(0.0, 0.0, 1), "auto"
    sizes = (1 << 20, 1 << 24)
    routes = [best_route(size, ranks - 1, link, "hub" if shared else "switch", group=shared) for size in sizes]
    beta = (routes[1].seconds - routes[0].seconds) / (sizes[1] - sizes[0])
    alpha = max(0.0, routes[0].seconds - beta * sizes[0])
    word = routes[1].route
    return Wire(alpha, beta, ranks, shared, _is_flat(word, shared)), word


def _is_flat(route: str, shared: bool) -> bool:
    """Return whether a route takes the same time for any number of ranks."""
    return route == "group" or (route.startswith("chain") and not shared)


# Measuring -----------------------------------------------------------------------------------------------------------
_Found = tuple[tuple[float, ...], tuple[float, ...], float]
"""Multiply-adds and seconds of each size, and seconds to copy a byte."""
_Size = tuple[int, int, int]
"""Rows, depth and width of a product."""


def _sizes(rows: int, depth: int, width: int, room: int) -> tuple[_Size, ...]:
    """Return the sizes of the products that are timed, small ones first; matrices fill at most ``room`` elements."""
    deep = max(1, min(depth, _DEPTH, room // (4 * width)))
    most = max(1, min(rows, _ROWS[-1], room // (4 * (deep + width))))
    return tuple((count, deep, max(1, width)) for count in sorted({min(most, count) for count in _ROWS}))


def _together(comm: Comm, dtype: np.dtype[Any], sizes: Sequence[_Size], seconds: float) -> _Found:
    """Time all sizes, all ranks at once."""
    cells, times = list[float](), list[float]()
    limit = quota()
    least = seconds / (len(sizes) + 1)
    if limit is not None:
        least = min(_LONGEST, max(least, _FEWEST_PERIODS * limit[1]))
    for rows, depth, width in sizes:
        if times:  # slow ranks measure with fewer rows
            affordable = int(_MOST_OF_A_SAMPLE * least / times[-1] * cells[-1] / (depth * width))
            rows = min(rows, max(affordable, int(cells[-1] / (depth * width))))
        left, right = _filled(dtype, rows, depth), _filled(dtype, depth, width)
        product = np.empty((rows, width), dtype)
        comm.barrier()
        times.append(_seconds(lambda a=left, b=right, c=product: np.matmul(a, b, out=c), least, limit is not None))  # type: ignore[misc]
        cells.append(float(rows) * depth * width)
    source = _filled(dtype, sizes[-1][1], sizes[-1][0])
    comm.barrier()
    copying = _seconds(lambda: np.array(source), least / 2, limit is not None) / source.nbytes
    comm.barrier()
    return tuple(cells), tuple(times), copying


def _filled(dtype: np.dtype[Any], rows: int, columns: int) -> NDArray[Any]:
    """Return a matrix of numbers that are neither 0 nor subnormal, which some processors treat slower or faster."""
    numbers = np.arange(rows * columns, dtype=np.int64) % 251 + 1
    return (numbers.reshape(rows, columns) / 251).astype(dtype)


def _seconds(work: Callable[[], object], least: float, throttled: bool) -> float:
    """Time some work, in seconds: the minimum, as disturbances only add; under a quota with periods, the mean."""
    began = time.perf_counter()
    work()
    long = time.perf_counter() - began > least
    best, total, count = np.inf, 0.0, 0
    while total < least or count < (1 if long else 2):
        began = time.perf_counter()
        work()
        spent = time.perf_counter() - began
        best, total, count = min(best, spent), total + spent, count + 1
    return total / count if throttled else float(best)


def _network(comm: Comm, seats: Tree, seconds: float, route: str | None, panel: int) -> tuple[Links, str, Wire, float]:
    """Measure the costs of messages; collective.

    Returns the links between two ranks, the route for panels of ``panel`` bytes, the cost of messages to all, and the
    processor time per byte of a panel on this rank.
    """
    links = links_of(comm, seats, min(0.3, seconds))
    if comm.size == 1:
        return links, "auto", Wire(0.0, 0.0, 1), 0.0
    link = links.widest(seats)
    medium, over_mpi = "hub" if links.shared else "switch", isinstance(comm, MPIComm)
    best = best_route(panel, comm.size - 1, link, medium, group=links.shared and over_mpi, mpi=over_mpi)
    chosen = route or str(comm.bcast(best.route))
    found = []
    for size in _SENT:
        found.append(_to_all(comm, size, seconds / len(_SENT), chosen))
        slow = np.array([found[-1][0] * _SENT[-1] / size > 4 * seconds], np.int64)
        comm.allreduce(slow, "max")
        if slow[0]:
            break
    times = [time for time, _ in found]
    beta = times[0] / _SENT[0]
    if len(times) > 1:
        beta = max((times[1] - times[0]) / (_SENT[1] - _SENT[0]), 1e-13)
    alpha = max(0.0, times[0] - beta * _SENT[0])
    return links, chosen, Wire(alpha, beta, comm.size, links.shared, _is_flat(chosen, links.shared)), found[-1][1]


def _to_all(comm: Comm, size: int, seconds: float, route: str) -> tuple[float, float]:
    """Time messages to all, in series with one rank after the other as the source.

    Returns the seconds of a message on the slowest rank, and the processor time per byte on this rank: medians.
    """
    times, busy = list[float](), list[float]()
    count = max(_SERIES, comm.size)
    owners = [number % comm.size for number in range(count)]
    panels = Panels(comm, np.dtype(np.float64), [size // 8] * count, owners, _no_fill, _only_wait, route=route)
    more, until = True, time.perf_counter() + seconds
    while more:
        comm.barrier()
        began, worked = time.perf_counter(), time.process_time()
        panels.run()
        worked = time.process_time() - worked
        words = np.array([int(1e9 * (time.perf_counter() - began)), time.perf_counter() < until], np.int64)
        comm.allreduce(words, "max")
        times.append(float(words[0]) * 1e-9 / count)
        busy.append(worked / (count * size))
        more = len(times) < 3 or (bool(words[1]) and len(times) < _MOST_SERIES)
    panels.close()
    return float(np.median(times[1:])), float(np.median(busy[1:]))  # the first one sets up connections


def _cores(crowd: int) -> float:
    """Return the number of processors of a rank: by its quota, or its part of those that ranks of its node share."""
    limit = quota()
    shared = max(1.0, len(usable()) / crowd)
    return shared if limit is None else min(shared, limit[0] / limit[1])


def _no_fill(number: int, flat: NDArray[Any]) -> None:
    return None


def _only_wait(number: int, flat: NDArray[Any], progress: Callable[[], bool]) -> None:
    """Poll now and then, as a rank that multiplies does: busy waiting would take all of its processor."""
    while not progress():
        time.sleep(_LOOK)


def _memory(found: Sequence[tuple[int, int | None]]) -> Ints:
    """Return the bytes that each rank may fill: an equal part of the free memory of its node."""
    nodes = np.array([node for node, _ in found])
    free = np.array([1 << 62 if amount is None else amount for _, amount in found], float)
    each = [MEMORY_SHARE * free[nodes == node].min() / (nodes == node).sum() for node in nodes]
    return np.array(each).astype(np.int64)


def _key(dtype: np.dtype[Any], sizes: Sequence[_Size], crowd: int) -> str:
    """Return a cache key of everything that speeds depend on."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    threads = [os.environ.get(name, "") for name in _THREADS]
    return key_of(
        "matmul 1", platform.node(), processor_name(), dtype.str, sizes, crowd, len(usable()), quota(), threads,
        blas.get("name"), blas.get("version"), os.environ.get("MINGA_PIN", ""),
    )  # fmt: skip


def _in_file(data: Mapping[str, Any]) -> _Found:
    cells, seconds = tuple(map(float, data["cells"])), tuple(map(float, data["seconds"]))
    Speed.measured(cells, seconds)
    copying = float(data["copying"])
    if not copying > 0:
        raise ValueError("copying takes time")
    return cells, seconds, copying

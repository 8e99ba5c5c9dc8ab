"""Arrangement of a kernel's locals on a CPU: when they are computed, in which loops, and how long they are kept.

Such kernels are bounded by loads far more than by arithmetic. Therefore

- locals with the same reads are computed by one loop, which loads once. This holds even if some are needed earlier than
  others; the others are then computed early (second derivatives along an axis together with first ones, which mixed
  derivatives need some planes ahead);
- a local that is only needed by its own row of cells is computed one row at a time, so that it stays in the L1 cache;
- if neighbouring planes of such a local share most of their reads, two or four planes are computed at a time.

The decisions depend only on reads, which neither narrowing nor lowering a graph changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from minga.compile.scratch import Ring, rings
from minga.lang.expr import Node
from minga.lang.graph import Interner, KernelGraph, topological
from minga.lang.shift import shifted as seen_from

MOST_READS: Final = 24
"""Maximum number of different reads of one loop: each row takes a register for its address, or a reload of it."""
MOST_PAIRED: Final = 12
"""Maximum number of different reads of a loop for several planes, whose values are in registers at the same time."""
PLANES: Final = {1: (), 2: (4, 2), 3: (2,)}
"""Numbers of planes that may be processed at a time, by the number of axes, best first: those of two axes are rows."""

Offsets = tuple[int, ...]
Read = tuple[str, int, Offsets, Offsets]
"""Kind ("read" or "local"), number, strides and offsets of a read."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Locals that one loop computes together, for the same cells of `planes` planes at a time."""

    rings: tuple[Ring, ...]
    planes: int = 1


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The order of a march along axis 0.

    ahead   stages computed one plane at a time, before the planes of cells that need them
    beside  stages computed one row at a time, immediately before the cells of that row
    step    number of planes that the march processes at a time
    """

    ahead: tuple[Stage, ...]
    beside: tuple[Stage, ...]
    step: int

    @property
    def rings(self) -> tuple[Ring, ...]:
        """Rings of all locals, in the order of their stages."""
        return tuple(ring for stage in (*self.ahead, *self.beside) for ring in stage.rings)


def arrange(graph: KernelGraph, roots: Sequence[Node]) -> Arrangement:
    """Return the arrangement of the locals that `roots` (the values that cells store and reduce) need."""
    needed = rings(graph.ndim, graph.locals, roots)
    groups = _groups(graph, needed, _Hulls(graph, needed, roots))
    beside = _beside(graph, groups) if graph.ndim > 1 else []
    ahead = [group for group in groups if group not in beside]
    step, together = _step(graph, beside)
    return Arrangement(
        tuple(Stage(tuple(replace(ring, depth=ring.depth + step - 1) for ring in group)) for group in ahead),
        tuple(
            Stage(tuple(replace(ring, depth=step, row=True) for ring in group), step if group in together else 1)
            for group in beside
        ),
        step,
    )


def moved(graph: KernelGraph, roots: Sequence[Node], planes: int) -> list[Node]:
    """Return `roots` for this plane and for each of the following planes 1 .. planes - 1, with equal nodes shared."""
    share, axes, rest = Interner(), [param.axes for param in graph.params], (0,) * (graph.ndim - 1)
    return [share(seen_from(root, (plane, *rest), axes)) for plane in range(planes) for root in roots]


def _beside(graph: KernelGraph, groups: Sequence[tuple[Ring, ...]]) -> list[tuple[Ring, ...]]:
    """Return the groups that are only needed by their own row of cells, and by no stage that runs ahead of rows."""
    found: list[tuple[Ring, ...]] = []
    read_ahead: set[int] = set()
    for group in reversed(groups):  # readers come before the locals that they read
        if all(map(_own_row, group)) and read_ahead.isdisjoint(ring.number for ring in group):
            found.insert(0, group)
        else:
            definitions = [graph.locals[ring.number] for ring in group]
            read_ahead |= {number for kind, number, _, _ in _reads(definitions) if kind == "local"}
    return found


def _own_row(ring: Ring) -> bool:
    """Return True if a local is only needed by its own row of cells."""
    return ring.depth == 1 and not any((*ring.low[:-1], *ring.high[:-1]))


def _step(graph: KernelGraph, beside: Sequence[tuple[Ring, ...]]) -> tuple[int, list[tuple[Ring, ...]]]:
    """Return the number of planes that the march processes at a time, and the groups that compute them together."""
    for planes in () if graph.reductions else PLANES[min(graph.ndim, 3)]:
        if found := [group for group in beside if _shares_planes(graph, group, planes)]:
            return planes, found
    return 1, []


def _shares_planes(graph: KernelGraph, group: Sequence[Ring], planes: int) -> bool:
    """Return True if some planes of these locals together make at most three quarters of their separate reads."""
    definitions = [graph.locals[ring.number] for ring in group]
    if any(node.op == "index" for node in topological(definitions)):
        return False
    one, several = (len(_reads(moved(graph, definitions, number))) for number in (1, planes))
    return several <= 0.75 * planes * one and several <= MOST_PAIRED


def _reads(roots: Sequence[Node]) -> frozenset[Read]:
    found: set[Read] = set()
    for node in topological(roots):
        if node.op == "read":
            found.add(("read", *node.data))
        elif node.op == "local":
            found.add(("local", node.data[0], (), node.data[1]))
    return frozenset(found)


# Locals that share a loop --------------------------------------------------------------------------------------------
def _groups(graph: KernelGraph, needed: Sequence[Ring], hulls: _Hulls) -> list[tuple[Ring, ...]]:
    """Return the rings in groups that share a loop, ordered so that each ring comes after those that it reads."""
    found: list[list[Ring]] = []
    for ring in needed:
        reads = _reads([graph.locals[ring.number]])
        for group in found:
            if joined := _joined(graph, group, ring, reads, hulls):
                group[:] = joined
                break
        else:
            found.append([ring])
    return [tuple(group) for group in found]


def _joined(
    graph: KernelGraph, group: Sequence[Ring], ring: Ring, reads: frozenset[Read], hulls: _Hulls
) -> list[Ring] | None:
    """Return the group with one more ring, all for the same cells; None if this is impossible or gains little.

    Locals that read other locals stay alone: the locals that they read would be needed at more cells, too.
    """
    theirs = _reads([graph.locals[other.number] for other in group])
    shared, most = len(reads & theirs), min(len(reads), len(theirs))
    if 2 * shared < most or shared == 0 or len(reads | theirs) > MOST_READS:
        return None
    if any(read[0] == "local" for read in reads | theirs):
        return None
    first = group[0]
    if (ring.low, ring.high, ring.lead) == (first.low, first.high, first.lead):
        return [*group, ring]
    if graph.ndim < 2 or (ring.low[1:-1], ring.high[1:-1]) != (first.low[1:-1], first.high[1:-1]):
        return None
    low = tuple(map(min, first.low, ring.low))
    high = tuple(map(max, first.high, ring.high))
    if not all(hulls.hold(read, low, high) for read in reads | theirs):
        return None
    return [_widened(other, low, high) for other in (*group, ring)]


def _widened(ring: Ring, low: Offsets, high: Offsets) -> Ring:
    return replace(ring, low=low, high=high, lead=high[0], depth=ring.depth + high[0] - ring.lead)


class _Hulls:
    """The box around a tile that a kernel reads from each field; memory outside of it may not belong to the field."""

    def __init__(self, graph: KernelGraph, needed: Sequence[Ring], roots: Sequence[Node]) -> None:
        self._axes = [param.axes for param in graph.params]
        self._low: dict[int, list[int]] = {}
        self._high: dict[int, list[int]] = {}
        here = (0,) * graph.ndim
        users = [(roots, here, here)]
        users += [([graph.locals[ring.number]], ring.low, ring.high) for ring in needed]
        for nodes, low, high in users:
            for kind, number, strides, offsets in _reads(nodes):
                if kind == "read" and set(strides) <= {1}:
                    first, last = self._reached(number, offsets, low, high)
                    self._low[number] = [*map(min, first, self._low.get(number, first))]
                    self._high[number] = [*map(max, last, self._high.get(number, last))]

    def _reached(self, number: int, offsets: Offsets, low: Offsets, high: Offsets) -> tuple[list[int], list[int]]:
        places = [*zip(self._axes[number], offsets, strict=True)]
        return [low[axis] + offset for axis, offset in places], [high[axis] + offset for axis, offset in places]

    def hold(self, read: Read, low: Offsets, high: Offsets) -> bool:
        """Return True if a read at all cells from `low` to `high` (relative to a tile) stays within the box."""
        _, number, strides, offsets = read
        if set(strides) - {1} or number not in self._low:
            return False
        first, last = self._reached(number, offsets, low, high)
        inside = all(a >= b for a, b in zip(first, self._low[number], strict=True))
        return inside and all(a <= b for a, b in zip(last, self._high[number], strict=True))

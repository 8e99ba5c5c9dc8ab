"""When a kernel's locals are computed on a CPU, which of them in one loop, and how long they are kept.

What bounds such kernels is loading, far more than arithmetic. So

- locals made of the same reads are filled by one loop, which loads once, even where not all are needed as early: those
  that are not wait (second derivatives along an axis for first ones, which mixed derivatives need some planes ahead);
- a local that only its own row of cells needs is computed a row at a time, so that it stays in the first-level cache;
- where neighbouring planes of such a local share most of what they read, two planes are done at a time.

Decisions follow from reads alone, which neither narrowing nor lowering a graph changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from minga.compile.scratch import Ring, rings
from minga.lang.expr import Node
from minga.lang.graph import Interner, KernelGraph, topological
from minga.lang.moved import moved as seen_from

MOST_READS: Final = 24
"""Most different reads of one loop: each row that is read takes a register for its address, or a reload."""
MOST_PAIRED: Final = 12
"""Most different reads of a loop for two planes: the values are in registers at the same time."""

Offsets = tuple[int, ...]
Read = tuple[str, int, Offsets, Offsets]
"""read or local, its number, strides, offsets."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Locals that one loop computes, at the same cells of `planes` planes at a time."""

    rings: tuple[Ring, ...]
    planes: int = 1


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The order of a march along axis 0.

    ahead   stages done a plane at a time, before the planes of cells that need them
    beside  stages done a row at a time, right before the cells of that row
    step    planes that the march does at a time
    """

    ahead: tuple[Stage, ...]
    beside: tuple[Stage, ...]
    step: int

    @property
    def rings(self) -> tuple[Ring, ...]:
        return tuple(ring for stage in (*self.ahead, *self.beside) for ring in stage.rings)


def arrange(graph: KernelGraph, roots: Sequence[Node]) -> Arrangement:
    """How the locals that `roots` (what cells store and reduce) need are computed."""
    needed = rings(graph.ndim, graph.locals, roots)
    groups = _groups(graph, needed, _Hulls(graph, needed, roots))
    beside = _beside(graph, groups) if graph.ndim > 2 else []
    ahead = [group for group in groups if group not in beside]
    paired = [_shares_planes(graph, group) for group in beside]
    step = 2 if any(paired) and not graph.reductions else 1
    return Arrangement(
        tuple(Stage(tuple(replace(ring, depth=ring.depth + step - 1) for ring in group)) for group in ahead),
        tuple(
            Stage(tuple(replace(ring, depth=step, row=True) for ring in group), step if pair else 1)
            for group, pair in zip(beside, paired, strict=True)
        ),
        step,
    )


def moved(graph: KernelGraph, roots: Sequence[Node], planes: int) -> list[Node]:
    """`roots`, then the same for each of the planes behind (1 .. planes - 1); equal nodes are one."""
    share, axes, rest = Interner(), [param.axes for param in graph.params], (0,) * (graph.ndim - 1)
    return [share(seen_from(root, (plane, *rest), axes)) for plane in range(planes) for root in roots]


def _beside(graph: KernelGraph, groups: Sequence[tuple[Ring, ...]]) -> list[tuple[Ring, ...]]:
    """The groups that are needed at their own row only, and by nothing that is done before rows are."""
    found: list[tuple[Ring, ...]] = []
    read_ahead: set[int] = set()
    for group in reversed(groups):  # readers come before what they read
        if all(map(_own_row, group)) and read_ahead.isdisjoint(ring.number for ring in group):
            found.insert(0, group)
        else:
            definitions = [graph.locals[ring.number] for ring in group]
            read_ahead |= {number for kind, number, _, _ in _reads(definitions) if kind == "local"}
    return found


def _own_row(ring: Ring) -> bool:
    """Whether a local is needed at the row of its own cells only."""
    return ring.depth == 1 and not any((*ring.low[:-1], *ring.high[:-1]))


def _shares_planes(graph: KernelGraph, group: Sequence[Ring]) -> bool:
    """Whether two planes of these locals together read at most three quarters of what they read one by one."""
    definitions = [graph.locals[ring.number] for ring in group]
    if any(node.op == "index" for node in topological(definitions)):
        return False
    one, two = (len(_reads(moved(graph, definitions, planes))) for planes in (1, 2))
    return two <= 1.5 * one and two <= MOST_PAIRED


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
    """The rings in an order in which each comes after those that it reads, in groups that share a loop."""
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
    """The group with one more ring, all at the same cells; None where that is impossible or gains little.

    Locals that read others stay alone: what they read would be needed elsewhere, too.
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
    """The box around a tile that a kernel reads of each field: cells outside may be no memory of its own."""

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
        """Whether a read at all cells from low to high (about a tile's) stays within the box."""
        _, number, strides, offsets = read
        if set(strides) - {1} or number not in self._low:
            return False
        first, last = self._reached(number, offsets, low, high)
        inside = all(a >= b for a, b in zip(first, self._low[number], strict=True))
        return inside and all(a <= b for a, b in zip(last, self._high[number], strict=True))

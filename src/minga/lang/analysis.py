"""Requirements and costs of a traced kernel: the cells it reads, its operations and its memory traffic."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from minga.lang.expr import Node
from minga.lang.graph import KernelGraph, Param, topological
from minga.lang.operations import operation
from minga.lang.types import itemsize

Offsets = tuple[int, ...]
Access = tuple[Offsets, Offsets]
"""Strides and offsets along a parameter's axes: cell i of the iteration reads `strides * i + offsets`."""

Reads = Mapping[int, frozenset[Access]]
"""Accesses by parameter number; parameters that are not read do not appear."""


@functools.lru_cache(maxsize=1024)
def reads(graph: KernelGraph) -> Reads:
    """Return all reads of one cell, including those made through locals.

    A read at offset b in a local that is itself read at offset a counts as a read at a + b.
    """
    used = _used_locals(graph)
    by_local: dict[int, dict[int, set[Access]]] = {}
    for number in sorted(used):
        by_local[number] = _direct(graph, [graph.locals[number]], by_local)
    found = _direct(graph, _results(graph), by_local)
    return MappingProxyType({param: frozenset(accesses) for param, accesses in sorted(found.items())})


def offsets_of(graph: KernelGraph, param: int) -> frozenset[Offsets]:
    """Return the offsets at which a parameter is read; empty if it is not read."""
    return frozenset(offsets for _, offsets in reads(graph).get(param, ()))


@dataclass(frozen=True, slots=True)
class Radius:
    """Cells that a box's update reads before (`low`) and after (`high`) the box, along each axis of the parameter."""

    low: Offsets
    high: Offsets

    @property
    def zero(self) -> bool:
        """True if nothing outside the box is read."""
        return not any(self.low) and not any(self.high)


def radius(graph: KernelGraph) -> dict[int, Radius]:
    """Return how far each parameter is read around the box that is updated; (0, ...) for parameters not read.

    For reads with strides s, the distance counts from the box's image s * lo .. s * hi: a cell that reads its own
    cells 0 .. s - 1 stays inside.
    """
    found = reads(graph)
    return {number: _radius(param, found.get(number, ())) for number, param in enumerate(graph.params)}


def is_star(graph: KernelGraph, param: int) -> bool:
    """Return True if a parameter is read along the axes only, so that no corners need to be exchanged for it."""
    return all(sum(map(bool, offsets)) <= 1 for offsets in offsets_of(graph, param))


def is_pointwise(graph: KernelGraph, param: int) -> bool:
    """Return True if a parameter is read, if at all, only at the cell itself."""
    return all(not any(offsets) and set(strides) <= {1} for strides, offsets in reads(graph).get(param, ()))


# Costs ---------------------------------------------------------------------------------------------------------------
def flops(graph: KernelGraph) -> int:
    """Count the arithmetic operations per cell, on floats and integers alike.

    An expression that is shared or named by `mg.local` counts once. Casts, comparisons, selects, logic, shifts and
    expressions that depend on no cell (they are computed once per call) do not count. Loops inside cells count for
    their expected number of iterations.
    """
    varying: set[int] = set()
    count = 0
    for node in topological(_all_roots(graph)):
        if node.op in ("read", "local", "index") or any(id(arg) in varying for arg in node.args):
            varying.add(id(node))
            count += _work(node)
    return count


def _work(node: Node) -> int:
    if node.op == "iterate":
        return int(node.data.expected) * sum(map(_work, node.data.nodes()))
    return operation(node.op).flops


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes per cell between memory and the processor if neighbouring cells are found in cache.

    Attributes
    ----------
    read, written
        Bytes that the kernel reads and writes.
    allocated
        Bytes that processors read only because a cache line must be present before part of it is written.
    """

    read: int
    written: int
    allocated: int

    @property
    def total(self) -> int:
        """Bytes per cell in both directions, including allocated cache lines."""
        return self.read + self.written + self.allocated


def traffic(graph: KernelGraph) -> Traffic:
    """Return the traffic if each field is read once and written once.

    Fields that lack an axis stay in cache and do not count.
    """
    read = {n: _cells(found) for n, found in reads(graph).items() if len(graph.params[n].axes) == graph.ndim}
    written = {n: _cells((s.strides, s.offsets) for s in graph.stores if s.param == n) for n in graph.written}
    size = [itemsize(param.dtype) for param in graph.params]
    return Traffic(
        sum(cells * size[n] for n, cells in read.items()),
        sum(cells * size[n] for n, cells in written.items()),
        sum(cells * size[n] for n, cells in written.items() if n not in read),
    )


def bytes_per_cell(graph: KernelGraph, *, write_allocate: bool = True) -> int:
    """Return the bytes per cell to and from memory; `write_allocate=False` is for stores that bypass the caches."""
    moved = traffic(graph)
    return moved.total if write_allocate else moved.read + moved.written


# Helpers -------------------------------------------------------------------------------------------------------------
def _results(graph: KernelGraph) -> list[Node]:
    return [*(store.value for store in graph.stores), *(item.value for item in graph.reductions)]


def _used_locals(graph: KernelGraph) -> set[int]:
    """Return the numbers of the locals that the results need."""
    used: set[int] = set()
    waiting = _results(graph)
    while waiting:
        more = {number for number, _ in _local_reads(waiting)} - used
        used |= more
        waiting = [graph.locals[number] for number in sorted(more)]
    return used


def _all_roots(graph: KernelGraph) -> list[Node]:
    return [graph.locals[number] for number in sorted(_used_locals(graph))] + _results(graph)


def _local_reads(roots: Iterable[Node]) -> list[tuple[int, Offsets]]:
    data: list[Any] = [node.data for node in topological(roots) if node.op == "local"]
    return data


def _direct(
    graph: KernelGraph, roots: Iterable[Node], by_local: Mapping[int, Mapping[int, set[Access]]]
) -> dict[int, set[Access]]:
    """Return the reads of `roots`, given the reads of each local that they use."""
    roots = list(roots)
    found: dict[int, set[Access]] = {}
    for node in topological(roots):
        if node.op == "read":
            data: Any = node.data
            found.setdefault(data[0], set()).add((data[1], data[2]))
    for number, at in _local_reads(roots):
        for param, accesses in by_local[number].items():
            axes = graph.params[param].axes
            found.setdefault(param, set()).update(
                (strides, tuple(o + s * at[axis] for o, s, axis in zip(offsets, strides, axes, strict=True)))
                for strides, offsets in accesses
            )
    return found


def _radius(param: Param, accesses: Iterable[Access]) -> Radius:
    found = list(accesses)
    axes = range(len(param.axes))
    return Radius(
        tuple(max([0, *(-offsets[k] for _, offsets in found)]) for k in axes),
        tuple(max([0, *(offsets[k] - (strides[k] - 1) for strides, offsets in found)]) for k in axes),
    )


def _cells(accesses: Iterable[Access]) -> int:
    """Return the number of cells of a field that pass through the cache per cell of the iteration.

    With a stride, whole cache lines are transferred along the innermost axis, but only the accessed rows along the
    others.
    """
    found = list(accesses)
    rows = {tuple(o % s for o, s in zip(offsets[:-1], strides[:-1], strict=True)) for strides, offsets in found}
    return max(strides[-1] for strides, _ in found) * len(rows)

"""The order in which a kernel's cells are visited, and checks that the order is valid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from minga.errors import KernelError
from minga.lang.graph import KernelGraph, topological
from minga.lang.types import is_float, itemsize

Offsets = tuple[int, ...]
LINES: Final = 4
"""Number of independent lines of a sweep that are processed together, which hides latency and leaves few lines over."""
SMALL: Final = 200
"""Maximum number of operations of a kernel whose cells are printed in several ways: for long rows and short ones, and
with stores that bypass the caches."""
Access = tuple[int, Offsets, Offsets]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The loops of a kernel.

    axes        iteration axes, from the outermost loop to the innermost
    directions  +1 or -1 for each iteration axis (by axis number)
    parallel    True if the innermost loop's cells do not access each other's data, so that it may be vectorised
    step        2 if the innermost loop visits one colour of a red-black kernel, otherwise 1
    together    number of independent lines (neighbours along the axis before the innermost) that are processed at the
                same time if each line must be processed cell by cell
    """

    axes: tuple[int, ...]
    directions: tuple[int, ...]
    parallel: bool
    step: int = 1
    together: int = 1


def schedule(graph: KernelGraph) -> Schedule:
    """Return the loops that implement the graph's order; raise KernelError if cells could read updated values."""
    axes = tuple(range(graph.ndim))
    upwards = (1,) * graph.ndim
    order = graph.order
    if order is None:
        _refuse_in_place_neighbours(graph)
        return Schedule(axes, upwards, parallel=True)
    for param, strides, _ in _accesses_of_written(graph):
        if any(stride != 1 for stride in strides):
            raise KernelError(
                f"{graph.params[param].name!r} is updated in place in order, and accessed with strides {strides}",
                where=graph.where,
                remedy="ordered kernels update a field with stride 1; use another field for the other grid",
            )
    if order.kind == "red-black":
        return Schedule(axes, upwards, parallel=True, step=2)
    if order.kind in ("lexicographic", "boundary-first"):
        return Schedule(axes, upwards, parallel=False)
    return _sweep(graph, order.directions)


def may_repeat_cells(graph: KernelGraph) -> bool:
    """Return True if it is harmless to compute a cell twice.

    No parameter that is stored may be read, or share its array with one that is read; parameters can share an array if
    all reads are of the cell itself.
    """
    if graph.order is not None:
        return False
    accesses = [cast(Access, node.data) for node in graph.nodes() if node.op == "read"]
    elsewhere = {param for param, strides, offsets in accesses if any(offsets) or any(s != 1 for s in strides)}
    return {param for param, _, _ in accesses} <= elsewhere - graph.written


def may_bypass_caches(graph: KernelGraph, plan: Schedule) -> bool:
    """Return True if stores may bypass the caches.

    The values that they replace must not be read, so that their cache lines need not be fetched. The stored fields must
    have elements of one size, without strides along the rows. Kernels of many operations are not bounded by memory;
    they are spared the longer compilation.
    """
    read = {cast(Access, node.data)[0] for node in graph.nodes() if node.op == "read"}
    sizes = {itemsize(store.value.dtype) for store in graph.stores}
    rows = plan.parallel and plan.step == 1 and plan.axes[-1] == graph.ndim - 1
    plain = all(store.strides[-1] == 1 for store in graph.stores)
    alike = len(sizes) == 1 and not read & graph.written
    return rows and plain and is_small(graph) and alike and not is_number(graph)


def is_small(graph: KernelGraph) -> bool:
    """Return True if a kernel has no locals or loops, and so few operations that they may be printed several times."""
    return len(graph.nodes()) <= SMALL and not graph.locals and not iterates(graph)


def iterates(graph: KernelGraph) -> bool:
    """Return True if cells contain loops."""
    return any(node.op == "iterate" for node in graph.nodes())


def is_number(graph: KernelGraph) -> bool:
    """Return True if a kernel of one axis computes its results from scalars alone.

    Such kernels compute registers, one cell at a time; they are spared the compilation of loops for many cells.
    """
    return graph.ndim == 1 and all(node.op not in ("read", "local", "index") for node in graph.nodes())


def _sweep(graph: KernelGraph, directions: tuple[int, ...]) -> Schedule:
    """Return the loops of a sweep.

    Swept axes are outside, in their directions, and free axes inside, unless lines along the sweep are independent.
    """
    swept = [axis for axis in range(graph.ndim) if directions[axis]]
    crossed: set[int] = set()
    for param, _, offsets in _accesses_of_written(graph):
        free = {axis for axis in range(graph.ndim) if not directions[axis] and offsets[axis]}
        if free and not any(offsets[axis] for axis in swept):
            raise KernelError(
                f"sweep: {graph.params[param].name}{list(offsets)} is a neighbour that the same step updates",
                where=graph.where,
                remedy="read neighbours on the swept axis only, or before it; or make the other axis ordered too",
            )
        crossed |= free
    # A free axis along which no stored field is read may be outside the swept ones, which keeps the memory order.
    outer = [a for a in range(graph.ndim) if directions[a] or (a not in crossed and a < swept[-1])]
    inner = [a for a in range(graph.ndim) if a not in outer]
    axes = (*outer, *inner)
    if axes[-1] != graph.ndim - 1 and any(r.kind == "sum" and is_float(r.value.dtype) for r in graph.reductions):
        raise KernelError(
            f"{graph.name!r} sums floats along the innermost axis, but sweeps along it with the other axes inside",
            where=graph.where,
            remedy="sum in a separate kernel, after the sweep",
        )
    together = LINES if not inner and graph.ndim > 1 and not directions[axes[-2]] else 1
    return Schedule(axes, tuple(d or 1 for d in directions), parallel=bool(inner), together=together)


def _accesses_of_written(graph: KernelGraph) -> Iterator[tuple[int, Offsets, Offsets]]:
    """Yield (parameter, strides, offsets) of all stores, and of all reads of fields that the kernel also stores."""
    for node in graph.nodes():
        if node.op == "read":
            param, strides, offsets = cast(tuple[int, Offsets, Offsets], node.data)
            if param in graph.written:
                yield param, strides, offsets
    for store in graph.stores:
        yield store.param, store.strides, store.offsets


def _refuse_in_place_neighbours(graph: KernelGraph) -> None:
    stored = {store.param: store.strides for store in graph.stores}
    for param, strides, offsets in _accesses_of_written(graph):
        own = strides == stored[param] and all(0 <= o < s for o, s in zip(offsets, strides, strict=True))
        if not own and not _never_stored(graph, param, strides, offsets):
            raise KernelError(
                f"{graph.name!r} stores {graph.params[param].name!r} and reads its neighbour {list(offsets)}, "
                "which may be updated already",
                where=graph.where,
                remedy='store into another field, or give order="red-black", order={"x": +1} or order="lexicographic"',
            )
    if graph.locals and any(param in stored for param in _read_by_locals(graph)):
        raise KernelError(
            f"{graph.name!r} stores a field that one of its locals reads",
            where=graph.where,
            remedy="store into another field: locals are computed for neighbours too",
        )


def _never_stored(graph: KernelGraph, param: int, strides: Offsets, offsets: Offsets) -> bool:
    """Return True if a read only finds cells between the stored ones, with another remainder modulo the stride."""
    stores = [store for store in graph.stores if store.param == param]
    return all(
        store.strides == strides and any((o - t) % s for o, t, s in zip(offsets, store.offsets, strides, strict=True))
        for store in stores
    )


def _read_by_locals(graph: KernelGraph) -> Iterator[int]:
    for node in topological(graph.locals):
        if node.op == "read":
            yield cast(tuple[int, Offsets, Offsets], node.data)[0]

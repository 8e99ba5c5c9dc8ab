"""In which order a kernel's cells are visited, and which orders are allowed at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from minga.errors import KernelError
from minga.lang.graph import KernelGraph, topological
from minga.lang.types import is_float, itemsize

Offsets = tuple[int, ...]
LINES: Final = 4
"""Independent lines of a sweep done together: they hide latency, and few lines are left over."""
STREAMED: Final = 200
"""Most operations of a kernel that may store past the caches."""
Access = tuple[int, Offsets, Offsets]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The loops of a kernel.

    axes        iteration axes from the outermost loop to the innermost
    directions  +1 or -1 of each iteration axis (by axis number)
    parallel    the innermost loop's cells do not touch each other's data, so that it may be vectorised
    step        2 where the innermost loop visits one colour of a red-black kernel, else 1
    together    lines (neighbours along the axis before the innermost) that do not depend on each other and are done at
                the same time, where each line must be done cell by cell
    """

    axes: tuple[int, ...]
    directions: tuple[int, ...]
    parallel: bool
    step: int = 1
    together: int = 1


def schedule(graph: KernelGraph) -> Schedule:
    """The loops that give `graph`'s order its meaning; KernelError if cells would read half-updated values."""
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
    """Whether it is harmless to compute a cell twice in a row.

    No parameter that is stored may be read, nor share its array with one that is: parameters can share one where all
    reads are of the cell itself.
    """
    if graph.order is not None:
        return False
    accesses = [cast(Access, node.data) for node in graph.nodes() if node.op == "read"]
    elsewhere = {param for param, strides, offsets in accesses if any(offsets) or any(s != 1 for s in strides)}
    return {param for param, _, _ in accesses} <= elsewhere - graph.written


def may_stream(graph: KernelGraph, plan: Schedule) -> bool:
    """Whether stores may go past the caches: what they replace is not read, so its lines need not be fetched before.

    The stored fields must have elements of one size, without strides along the rows. Memory does not bound kernels of
    many operations; they are spared the longer compilation.
    """
    read = {cast(Access, node.data)[0] for node in graph.nodes() if node.op == "read"}
    sizes = {itemsize(store.value.dtype) for store in graph.stores}
    rows = plan.parallel and plan.step == 1 and plan.axes[-1] == graph.ndim - 1
    plain = all(store.strides[-1] == 1 for store in graph.stores)
    small = len(graph.nodes()) <= STREAMED and not iterates(graph)
    alike = len(sizes) == 1 and not graph.locals and not read & graph.written
    return rows and plain and small and alike and not is_number(graph)


def iterates(graph: KernelGraph) -> bool:
    """Whether cells have loops of their own."""
    return any(node.op == "iterate" for node in graph.nodes())


def is_number(graph: KernelGraph) -> bool:
    """Whether a kernel of one axis makes numbers of scalars alone: registers are, one cell at a time.

    They are spared the compilation of loops for many cells.
    """
    return graph.ndim == 1 and all(node.op not in ("read", "local", "index") for node in graph.nodes())


def _sweep(graph: KernelGraph, directions: tuple[int, ...]) -> Schedule:
    """Swept axes outside, in their directions; free axes inside, unless lines along the sweep are independent."""
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
    # A free axis across which nothing written is read may stand outside the swept ones: memory order is kept.
    outer = [a for a in range(graph.ndim) if directions[a] or (a not in crossed and a < swept[-1])]
    inner = [a for a in range(graph.ndim) if a not in outer]
    axes = (*outer, *inner)
    if axes[-1] != graph.ndim - 1 and any(r.kind == "sum" and is_float(r.value.dtype) for r in graph.reductions):
        raise KernelError(
            f"{graph.name!r} sums floats along the innermost axis, but sweeps along it with the other axes inside",
            where=graph.where,
            remedy="sum in a kernel of its own, after the sweep",
        )
    together = LINES if not inner and graph.ndim > 1 and not directions[axes[-2]] else 1
    return Schedule(axes, tuple(d or 1 for d in directions), parallel=bool(inner), together=together)


def _accesses_of_written(graph: KernelGraph) -> Iterator[tuple[int, Offsets, Offsets]]:
    """(parameter, strides, offsets) of all reads of fields that the kernel also stores, and of the stores."""
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
                remedy='store into another field, or say order="red-black", order={"x": +1} or order="lexicographic"',
            )
    if graph.locals and any(param in stored for param in _read_by_locals(graph)):
        raise KernelError(
            f"{graph.name!r} stores a field that one of its locals reads",
            where=graph.where,
            remedy="store into another field: locals are computed for neighbours too",
        )


def _never_stored(graph: KernelGraph, param: int, strides: Offsets, offsets: Offsets) -> bool:
    """Whether a read finds only cells between those that are stored: of another remainder modulo the stride."""
    stores = [store for store in graph.stores if store.param == param]
    return all(
        store.strides == strides and any((o - t) % s for o, t, s in zip(offsets, store.offsets, strides, strict=True))
        for store in stores
    )


def _read_by_locals(graph: KernelGraph) -> Iterator[int]:
    for node in topological(graph.locals):
        if node.op == "read":
            yield cast(tuple[int, Offsets, Offsets], node.data)[0]

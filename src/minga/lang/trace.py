"""The recording of a kernel while its function runs: parameters, stores, locals, and their assembly to a graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from minga.errors import KernelError
from minga.lang.expr import Node, author_error
from minga.lang.graph import KernelGraph, Order, Param, Reduction, Scalar, Store, topological
from minga.lang.types import DType


@dataclass(frozen=True, slots=True)
class Metric:
    """Shape of the space in which a kernel is traced: what decides which numbers the engine has to supply.

    Attributes
    ----------
    geometry
        Coordinates of the grid, as `Grid.geometry`.
    uniform
        Whether the cells along each axis of iteration have one width; empty: all have.
    across
        Whether an end of each axis is r = 0 or a pole, beyond which lie cells at other angles; empty: none is.
    """

    geometry: str = "cartesian"
    uniform: tuple[bool, ...] = ()
    across: tuple[bool, ...] = ()


CARTESIAN: Final = Metric()


@dataclass(slots=True)
class Trace:
    """The recording of one kernel while its function runs.

    Attributes
    ----------
    ndim, axis_names
        Number and names of the iteration axes.
    ordered
        True for kernels with an order of updates.
    stream
        Random stream of the kernel.
    params, scalars, stores, locals
        The parts of the graph recorded so far.
    coordinates
        Numbers of the parameters that hold coordinates, by name.
    draws
        Random words drawn so far, by pair, and the number of draws ("count").
    place
        The index (u4, one per axis) that random numbers are drawn for; if empty, it is the cell's index.
    tangents
        The tangents that mg.derivative keeps.
    centres
        For each field parameter and each axis that it has: 0 if its points are cells, 1 if they are faces.
    antiperiodic
        For each field parameter the axes of iteration at whose ends its values change their sign.
    metric
        Shape of the grid.
    supplied
        Whether the engine supplies numbers of the grid; it does not in boundary conditions.
    closed
        The ends through which no flux of the operators that are being traced goes, by axis: "l", "h" or "lh" for the
        low end, the high one and both.
    """

    ndim: int
    axis_names: tuple[str, ...]
    ordered: bool
    stream: int
    params: list[Param] = field(default_factory=list)
    scalars: dict[str, Scalar] = field(default_factory=dict)
    stores: dict[tuple[int, tuple[int, ...], tuple[int, ...]], Node] = field(default_factory=dict)
    locals: list[Node] = field(default_factory=list)
    coordinates: dict[str, int] = field(default_factory=dict)
    draws: dict[object, object] = field(default_factory=dict)
    place: list[Node] = field(default_factory=list)
    tangents: dict[object, object] = field(default_factory=dict)
    centres: dict[int, tuple[int, ...]] = field(default_factory=dict)
    antiperiodic: dict[int, tuple[int, ...]] = field(default_factory=dict)
    metric: Metric = CARTESIAN
    supplied: bool = True
    closed: dict[int, str] = field(default_factory=dict)

    def scalar(self, name: str, dtype: DType, *, weak: bool = False) -> Node:
        """Return the value of a scalar parameter; names with @ are supplied by the engine."""
        self.scalars.setdefault(name, Scalar(name, dtype))
        return Node("scalar", dtype, data=name, weak=weak)

    def axis(self, axis: int | str) -> int:
        """Return the number of an axis given by number or name."""
        if isinstance(axis, str):
            if axis not in self.axis_names:
                raise author_error(f"no axis {axis!r}", f"the axes are {', '.join(map(repr, self.axis_names))}")
            return self.axis_names.index(axis)
        if not -self.ndim <= axis < self.ndim:
            raise author_error(f"no axis {axis} in {self.ndim} dimensions", f"use 0 .. {self.ndim - 1} or a name")
        return axis % self.ndim

    def coordinate(self, axis: int) -> Node:
        """Return the position of the cell's point along an axis, read from a one-axis field of the engine."""
        return self.table(f"@coordinate{axis}", axis)

    def table(self, name: str, axis: int) -> Node:
        """Return the cell's value of a one-axis field that the engine supplies, named as in `minga.space.metric`."""
        if name not in self.coordinates:
            self.coordinates[name] = len(self.params)
            self.params.append(Param(name, "f8", (axis,)))
        return Node("read", "f8", data=(self.coordinates[name], (1,), (0,)))


_trace: ContextVar[Trace | None] = ContextVar("minga_trace", default=None)


def maybe_trace() -> Trace | None:
    """Return the kernel being traced, or None outside kernels."""
    return _trace.get()


def current_trace(what: str) -> Trace:
    """Return the kernel being traced; raise an author error if there is none."""
    trace = _trace.get()
    if trace is None:
        raise author_error(f"{what} outside a kernel", "use it inside a function decorated with @mg.kernel")
    return trace


def assemble(
    name: str,
    trace: Trace,
    stores: tuple[Store, ...],
    reductions: tuple[Reduction, ...] = (),
    locals_: tuple[Node, ...] = (),
    order: Order | None = None,
    where: str = "",
) -> KernelGraph:
    """Assemble a graph from a trace; registers that the expressions refer to become scalar parameters."""
    roots = (*locals_, *(s.value for s in stores), *(r.value for r in reductions))
    for node in topological(roots):
        if node.op == "state":
            raise KernelError(
                f"kernel {name!r}: a value inside mg.iterate is used outside of it",
                where=where,
                remedy="return it from the body as part of the state: x, rounds = mg.iterate(...)",
            )
        if node.op == "scalar":
            trace.scalars.setdefault(str(node.data), Scalar(str(node.data), node.dtype))
    scalars = tuple(trace.scalars.values())
    return KernelGraph(name, trace.ndim, tuple(trace.params), scalars, stores, reductions, locals_, order, where)


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Make `trace` the current recording, to which fields and functions of the kernel language write."""
    token = _trace.set(trace)
    try:
        yield trace
    finally:
        _trace.reset(token)

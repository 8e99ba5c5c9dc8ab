"""`@kernel`: a small Python function of fields, run once with symbols to learn what it does to a cell."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import FrozenInstanceError, dataclass, field
from pathlib import Path
from typing import Literal

from minga.errors import KernelError, MingaError
from minga.lang.expr import Node, as_node, author_error, cast
from minga.lang.graph import (
    Interner,
    KernelGraph,
    Order,
    Param,
    Reduction,
    ReductionKind,
    Scalar,
    Store,
    topological,
)
from minga.lang.types import DType, as_dtype, is_float, is_signed


@dataclass(frozen=True, slots=True)
class FieldType:
    """What a kernel needs to know of a field argument: cell type and which iteration axes it has."""

    dtype: DType
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A scalar argument: its type, and whether it is a Python number (weak) or a register (strong)."""

    dtype: DType
    weak: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """The types a kernel is traced for. Fields may be given as lists."""

    ndim: int
    fields: tuple[FieldType | tuple[FieldType, ...], ...]
    scalars: tuple[tuple[str, ScalarType], ...] = ()
    axis_names: tuple[str, ...] = ()


@dataclass(slots=True)
class Trace:
    """The recording of one kernel while its function runs."""

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

    def scalar(self, name: str, dtype: DType, *, weak: bool = False) -> Node:
        """A scalar parameter's value; names with @ come from the engine."""
        self.scalars.setdefault(name, Scalar(name, dtype))
        return Node("scalar", dtype, data=name, weak=weak)

    def axis(self, axis: int | str) -> int:
        """The number of an axis given by number or name."""
        if isinstance(axis, str):
            if axis not in self.axis_names:
                raise author_error(f"no axis {axis!r}", f"the axes are {', '.join(map(repr, self.axis_names))}")
            return self.axis_names.index(axis)
        if not -self.ndim <= axis < self.ndim:
            raise author_error(f"no axis {axis} in {self.ndim} dimensions", f"use 0 .. {self.ndim - 1} or a name")
        return axis % self.ndim

    def coordinate(self, axis: int) -> Node:
        """The position of the cell's point along an axis, read from a one-axis field that the engine supplies."""
        name = f"@coordinate{axis}"
        if name not in self.coordinates:
            self.coordinates[name] = len(self.params)
            self.params.append(Param(name, "f8", (axis,)))
        return Node("read", "f8", data=(self.coordinates[name], (1,), (0,)))


_trace: ContextVar[Trace | None] = ContextVar("minga_trace", default=None)


def current_trace(what: str) -> Trace:
    """The kernel being traced; an author error if there is none."""
    trace = _trace.get()
    if trace is None:
        raise author_error(f"{what} outside a kernel", "use it inside a function decorated with @mg.kernel")
    return trace


@dataclass(frozen=True, slots=True)
class CellReader:
    """A field inside a kernel: `u[di, dj]` reads a neighbour, `u[0, 0] = value` records a store."""

    name: str
    parameter: int
    dtype: DType
    axes: tuple[int, ...]
    strides: tuple[int, ...]

    def strided(self, *strides: int) -> CellReader:
        """The same field at `stride * index + offset`: how grids of different resolution meet (one stride for all axes, or one each)."""
        each = strides * len(self.axes) if len(strides) == 1 else strides
        if len(each) != len(self.axes) or any(not isinstance(s, int) or s < 1 for s in each):
            raise author_error(
                f"{self.name}.strided{strides}: expected one positive integer, or {len(self.axes)} of them",
                f"e.g. {self.name}.strided(2)",
            )
        return CellReader(self.name, self.parameter, self.dtype, self.axes, tuple(each))

    def _offsets(self, key: object) -> tuple[int, ...]:
        given = key if isinstance(key, tuple) else (key,)
        count = len(self.axes)
        if len(given) != count:
            raise author_error(
                f"{self.name}[{', '.join(map(str, given))}] has {len(given)} offsets; {self.name!r} has {count} axes",
                f"write {self.name}[{', '.join(['0'] * count)}] for the cell itself",
            )
        for item in given:
            if isinstance(item, Node):
                raise author_error(
                    f"{self.name}: an offset depends on a cell's value",
                    "offsets are constants; choose between neighbours with mg.where",
                )
            if isinstance(item, slice):
                raise author_error(f"{self.name}: slices are not offsets", "a kernel describes one cell: use integers")
            if isinstance(item, bool) or not hasattr(item, "__index__"):
                raise author_error(f"{self.name}: offset {item!r} is not an integer", "offsets count cells: -1, 0, 1, ...")
        return tuple(item.__index__() for item in given)  # type: ignore[attr-defined]

    def __getitem__(self, key: object) -> Node:
        offsets = self._offsets(key)
        trace = current_trace(f"{self.name}[...]")
        stored = trace.stores.get((self.parameter, self.strides, offsets))
        if trace.ordered and stored is not None:
            return stored
        return Node("read", self.dtype, data=(self.parameter, self.strides, offsets))

    def __setitem__(self, key: object, value: object) -> None:
        offsets = self._offsets(key)
        trace = current_trace(f"{self.name}[...] = ...")
        for offset, stride in zip(offsets, self.strides, strict=True):
            if not 0 <= offset < stride:
                raise author_error(
                    f"{self.name}[{', '.join(map(str, offsets))}] = ... stores into a neighbour",
                    "a kernel stores its own cell (offset 0): turn the scatter into a gather by reading neighbours",
                )
        if len(self.axes) != trace.ndim:
            raise author_error(
                f"{self.name!r} lacks axes of the iteration, so many cells would store the same value",
                "store a field with all axes, or use a reduction",
            )
        node = as_node(value)
        if is_float(node.dtype) and not is_float(self.dtype) and not node.weak:
            raise author_error(
                f"{self.name} is {self.dtype}, the value is {node.dtype}", f"write mg.cast(value, {self.dtype!r})"
            )
        if self.dtype != "bool" and node.dtype == "bool" and is_float(self.dtype):
            node = cast(node, "u1")
        trace.stores[self.parameter, self.strides, offsets] = cast(node, self.dtype)

    def __call__(self, *_: object) -> None:
        raise author_error(f"{self.name}(...) calls a field", f"read a cell with square brackets: {self.name}[0, ...]")

    def _no_arithmetic(self, *_: object) -> Node:
        raise author_error(
            f"field {self.name!r} stands without an offset",
            f"read a cell of it: {self.name}[{', '.join(['0'] * len(self.axes))}]",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_arithmetic
    __neg__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __and__ = __or__ = __invert__ = _no_arithmetic  # type: ignore[assignment]
    __pow__ = __mod__ = __floordiv__ = __rpow__ = __rmod__ = __rfloordiv__ = __rand__ = __ror__ = _no_arithmetic

    def __iter__(self) -> object:
        raise author_error(f"field {self.name!r} cannot be iterated", "loop over constant offsets")


@dataclass(frozen=True, slots=True)
class Local:
    """A named intermediate that may be read at offsets."""

    number: int
    dtype: DType
    ndim: int
    definition: Node

    @property
    def node(self) -> Node:
        """Used without offsets, the local is its value at the cell itself."""
        return self[(0,) * self.ndim]

    def __getitem__(self, key: object) -> Node:
        reader = CellReader(f"local {self.number}", -1, self.dtype, tuple(range(self.ndim)), (1,) * self.ndim)
        offsets = reader._offsets(key)
        return Node("local", self.dtype, (), (self.number, offsets))


def local(value: object) -> Local:
    """Name an intermediate so that it can be read at offsets: `g = mg.local(u[0,1] - u[0,-1]); g[1,0] - g[-1,0]`.

    It is computed once a cell (once more at tile edges) and widens the halo by itself.
    """
    trace = current_trace("mg.local")
    if trace.ordered:
        raise author_error("mg.local in an ordered kernel", "write the expression out: its value depends on the order")
    node = as_node(value)
    node = cast(node, node.dtype)
    trace.locals.append(node)
    return Local(len(trace.locals) - 1, node.dtype, trace.ndim, node)


@dataclass(frozen=True, slots=True)
class Reduced:
    """What a reduction call returns inside a kernel; the kernel returns it to its caller."""

    kind: ReductionKind
    value: Node

    def _not_a_value(self, *_: object) -> Node:
        raise author_error(
            f"the result of a reduction ({self.kind}) is known only after all cells are done",
            "return it from the kernel and use the register in a later operation",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _not_a_value
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = __bool__ = _not_a_value  # type: ignore[assignment]


def reduction_dtype(kind: ReductionKind, dtype: DType) -> DType:
    """The type of a reduction's register."""
    if kind in ("argmax", "argmin", "count"):
        return "i8"
    if kind == "sum":
        return "f8" if is_float(dtype) else "i8" if is_signed(dtype) else "u8"
    return dtype


class Kernel:
    """A point function. Called by `Program.apply`; traced once for each combination of argument types."""

    def __init__(
        self,
        function: Callable[..., object],
        *,
        order: Mapping[str | int, int] | Literal["lexicographic", "red-black"] | None = None,
        across: Literal["exact", "block"] = "exact",
        name: str | None = None,
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", "kernel")
        self.order = order
        self.across = across
        self._graphs: dict[Signature, KernelGraph] = {}
        code = getattr(function, "__code__", None)
        self.where = f"{code.co_filename}:{code.co_firstlineno}" if code else "?"
        self.fields, self.scalars = _parameters(function, self.where)
        self.defaults: dict[str, object] = dict(getattr(function, "__kwdefaults__", None) or {})
        if across not in ("exact", "block"):
            raise KernelError(
                f'across={across!r}: expected "exact" or "block"', where=self.where, remedy='leave it out for "exact"'
            )

    def __call__(self, *_: object, **__: object) -> None:
        raise KernelError(
            f"kernel {self.name!r} was called like a function",
            where=self.where,
            remedy=f"record it in a Program: P.apply({self.name}, {', '.join(self.fields)})",
        )

    def __repr__(self) -> str:
        scalars = f", *, {', '.join(self.scalars)}" if self.scalars else ""
        return f"<kernel {self.name}({', '.join(self.fields)}{scalars})>"

    def graph(self, signature: Signature) -> KernelGraph:
        """The traced graph for these argument types."""
        graph = self._graphs.get(signature)
        if graph is None:
            graph = self._graphs[signature] = trace_kernel(self, signature)
        return graph


def kernel(
    function: Callable[..., object] | None = None,
    *,
    order: Mapping[str | int, int] | Literal["lexicographic", "red-black"] | None = None,
    across: Literal["exact", "block"] = "exact",
) -> Kernel | Callable[[Callable[..., object]], Kernel]:
    """Make a kernel of a function of fields (positional parameters) and scalars (keyword-only parameters).

    order   None: all cells at once, reads see old values. {"x": +1}: sweep along x, in place.
            "lexicographic": every axis ascending, in place. "red-black": even cells, then odd cells, in place.
    across  of ordered kernels: "exact" has the bits of one process; "block" lets each block use old halos.
    """
    if function is None:
        return lambda f: Kernel(f, order=order, across=across)
    return Kernel(function, order=order, across=across)


def _parameters(function: Callable[..., object], where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    fields, scalars = [], []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise KernelError(
                f"kernel {getattr(function, '__name__', '?')!r} takes *{parameter.name}",
                where=where,
                remedy="name each field; a parameter may also be given a list of fields",
            )
        (scalars if parameter.kind is parameter.KEYWORD_ONLY else fields).append(parameter.name)
    if not fields:
        raise KernelError(
            f"kernel {getattr(function, '__name__', '?')!r} has no fields",
            where=where,
            remedy="positional parameters are fields, keyword-only parameters (after *) are scalars",
        )
    return tuple(fields), tuple(scalars)


def _order(kernel: Kernel, ndim: int, axis_names: tuple[str, ...]) -> Order | None:
    order = kernel.order
    if order is None:
        return None
    if order == "red-black":
        return Order("red-black", (0,) * ndim, kernel.across)
    if order == "lexicographic":
        return Order("lexicographic", (1,) * ndim, kernel.across)
    if not isinstance(order, Mapping):
        raise KernelError(
            f"order={order!r}",
            where=kernel.where,
            remedy='use {"x": +1}, "lexicographic" or "red-black"',
        )
    directions = [0] * ndim
    trace = Trace(ndim, axis_names, True, 0)
    for axis, direction in order.items():
        if direction not in (1, -1):
            raise KernelError(f"order: direction {direction!r} of axis {axis!r}", where=kernel.where, remedy="use +1 or -1")
        directions[trace.axis(axis)] = direction
    return Order("sweep", tuple(directions), kernel.across)


def _stream(name: str) -> int:
    """The random stream of a kernel: FNV-1a of its name, so that two kernels of a step draw different numbers."""
    value = 0x811C9DC5
    for byte in name.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def trace_kernel(kernel: Kernel, signature: Signature) -> KernelGraph:
    """Run the kernel's function once with symbols and collect what it does."""
    if len(signature.fields) != len(kernel.fields):
        raise KernelError(
            f"kernel {kernel.name!r} takes {len(kernel.fields)} fields ({', '.join(kernel.fields)}), "
            f"found {len(signature.fields)}",
            where=kernel.where,
            remedy="pass one field (or list of fields) for each positional parameter",
        )
    axis_names = signature.axis_names or tuple("wzyx"[-signature.ndim :])
    order = _order(kernel, signature.ndim, axis_names)
    trace = Trace(signature.ndim, axis_names, order is not None, _stream(kernel.name))

    def reader(name: str, kind: FieldType) -> CellReader:
        trace.params.append(Param(name, kind.dtype, kind.axes))
        return CellReader(name, len(trace.params) - 1, kind.dtype, kind.axes, (1,) * len(kind.axes))

    arguments: list[CellReader | list[CellReader]] = []
    for name, kind in zip(kernel.fields, signature.fields, strict=True):
        if isinstance(kind, FieldType):
            arguments.append(reader(name, kind))
        else:
            arguments.append([reader(f"{name}[{i}]", item) for i, item in enumerate(kind)])
    scalars = {name: trace.scalar(name, kind.dtype, weak=kind.weak) for name, kind in signature.scalars}
    try:
        with tracing(trace):
            result = kernel.function(*arguments, **scalars)
    except MingaError:
        raise
    except Exception as error:
        raise _mistake(kernel, error) from error
    return _finish(kernel, trace, order, result)


def _mistake(kernel: Kernel, error: Exception) -> KernelError:
    """An ordinary Python error in the author's function, placed at the author's line."""
    where, here = kernel.where, str(Path(__file__).parent)
    for frame in traceback.extract_tb(error.__traceback__):
        if not frame.filename.startswith(here):
            where = f"{frame.filename}:{frame.lineno}"
    remedy = "the function runs once, with symbols for fields and scalars; check this line"
    if isinstance(error, NameError):
        remedy = "declare the name: a field is a positional parameter, a scalar a keyword-only one (after *)"
    elif isinstance(error, FrozenInstanceError | AttributeError):
        remedy = "fields have no attributes to use or set: read and store cells, u[0, 0]"
    return KernelError(f"kernel {kernel.name!r}: {type(error).__name__}: {error}", where=where, remedy=remedy)


def _finish(kernel: Kernel, trace: Trace, order: Order | None, result: object) -> KernelGraph:
    share = Interner()
    reductions = tuple(
        Reduction(name, item.kind, share(item.value), reduction_dtype(item.kind, item.value.dtype))
        for name, item in _reductions(kernel, result)
    )
    if not trace.stores and not reductions:
        raise KernelError(
            f"kernel {kernel.name!r} neither stores nor returns anything",
            where=kernel.where,
            remedy="assign to a cell (new[0, 0] = ...) or return a reduction (return mg.max(...))",
        )
    stores = tuple(Store(p, strides, offsets, share(value)) for (p, strides, offsets), value in trace.stores.items())
    for param in {store.param for store in stores}:
        if len({store.strides for store in stores if store.param == param}) > 1:
            raise KernelError(
                f"{trace.params[param].name!r} is stored with two different strides", where=kernel.where,
                remedy="use one stride for all stores of a field",
            )  # fmt: skip
    graph = assemble(kernel.name, trace, stores, reductions, tuple(share(n) for n in trace.locals), order, kernel.where)
    check_graph(graph)
    return graph


def assemble(
    name: str,
    trace: Trace,
    stores: tuple[Store, ...],
    reductions: tuple[Reduction, ...] = (),
    locals_: tuple[Node, ...] = (),
    order: Order | None = None,
    where: str = "",
) -> KernelGraph:
    """A graph of what a trace collected; registers that the expressions captured become scalar parameters."""
    roots = (*locals_, *(s.value for s in stores), *(r.value for r in reductions))
    for node in topological(roots):
        if node.op == "scalar":
            trace.scalars.setdefault(str(node.data), Scalar(str(node.data), node.dtype))
    scalars = tuple(trace.scalars.values())
    return KernelGraph(name, trace.ndim, tuple(trace.params), scalars, stores, reductions, locals_, order, where)


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Make `trace` the recording that fields and functions of the kernel language write to."""
    token = _trace.set(trace)
    try:
        yield trace
    finally:
        _trace.reset(token)


def check_graph(graph: KernelGraph) -> None:
    """What a traced kernel must satisfy as a whole."""
    order = graph.order
    if order is not None and order.kind == "red-black":
        for node in graph.nodes():
            if node.op == "read" and node.data[0] in graph.written:  # type: ignore[index]
                _, strides, offsets = node.data  # type: ignore[misc]
                if any(offsets) and sum(offsets) % 2 == 0:
                    raise KernelError(
                        f"red-black: {graph.params[node.data[0]].name}{list(offsets)} is a cell of the same colour",  # type: ignore[index]
                        where=graph.where,
                        remedy="cells of one colour must not read each other: drop the diagonal reads or use an ordered sweep",
                    )


def _reductions(kernel: Kernel, result: object) -> Sequence[tuple[str, Reduced]]:
    if result is None:
        return ()
    if isinstance(result, Reduced):
        return (("value", result),)
    if isinstance(result, Mapping) and all(isinstance(item, Reduced) for item in result.values()):
        return [(str(name), item) for name, item in result.items()]
    raise KernelError(
        f"kernel {kernel.name!r} returns {type(result).__name__}",
        where=kernel.where,
        remedy='return a reduction, or a dict of them: return {"residual": mg.max(abs(d))}; store cells by assignment',
    )


def infer_signature(ndim: int, fields: Sequence[tuple[object, Sequence[int]]]) -> Signature:
    """A signature for ordinary fields given as (dtype, axes): a convenience for inspecting kernels."""
    return Signature(ndim, tuple(FieldType(as_dtype(dtype), tuple(axes)) for dtype, axes in fields))

"""Kernels: small Python functions of fields, which are run once with symbols to record what they do to a cell."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from minga.errors import KernelError, MingaError, suggest
from minga.lang.antiperiodic import sign_changes
from minga.lang.captured import captured
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node
from minga.lang.graph import Interner, KernelGraph, Order, Param, Reduction, ReductionKind, Store, topological
from minga.lang.random_guard import forbid_foreign_random
from minga.lang.replacements import replacement_for
from minga.lang.trace import CARTESIAN, Metric, Trace, assemble, tracing
from minga.lang.types import DType, as_dtype, is_float, is_signed
from minga.markup import block, described, details

_ROOT = str(Path(__file__).parents[1] / "__init__.py")
_MOST_NAMED = 20
"""Maximum number of attributes that an error lists."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a field argument: its cell type and the iteration axes that it has.

    Attributes
    ----------
    dtype, axes
        Cell type, and the iteration axes of the field.
    centre
        For each of its axes 1 if its points are faces; empty: cells along all.
    antiperiodic
        Axes of iteration at whose ends its values change their sign.
    """

    dtype: DType
    axes: tuple[int, ...]
    centre: tuple[int, ...] = ()
    antiperiodic: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScalarType:
    """The type of a scalar argument, and whether it is a Python number (weak) or a register (strong)."""

    dtype: DType
    weak: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """The argument types that a kernel is traced for. A field argument may be a list of fields."""

    ndim: int
    fields: tuple[FieldType | tuple[FieldType, ...], ...]
    scalars: tuple[tuple[str, ScalarType], ...] = ()
    axis_names: tuple[str, ...] = ()
    metric: Metric = CARTESIAN


def reduction_dtype(kind: ReductionKind, dtype: DType) -> DType:
    """Return the type of a reduction's register."""
    if kind in ("argmax", "argmin", "count"):
        return "i8"
    if kind == "sum":
        return "f8" if is_float(dtype) else "i8" if is_signed(dtype) else "u8"
    return dtype


class Kernel:
    """A point function, applied by `Program.apply` and traced once for each combination of argument types.

    Parameters
    ----------
    function
        The author's function. Positional parameters are fields, keyword-only parameters are scalars.
    order
        Order of an in-place update: directions (+1 or -1) by axis, "lexicographic", "boundary-first" or "red-black";
        None for kernels without an order.
    across
        "exact" if the order holds across blocks too; "block" if it holds within each block only.
    name
        Name of the kernel; by default, the function's name.
    """

    def __init__(
        self,
        function: Callable[..., object],
        *,
        order: Mapping[str | int, int] | Literal["lexicographic", "boundary-first", "red-black"] | None = None,
        across: Literal["exact", "block"] = "exact",
        name: str | None = None,
    ) -> None:
        self.function = function
        self.name: str = name or str(getattr(function, "__name__", "kernel"))
        self.order = order
        self.across = across
        self._graphs: dict[tuple[Signature, object], KernelGraph] = {}
        code = getattr(function, "__code__", None)
        self.where = f"{code.co_filename}:{code.co_firstlineno}" if code else "?"
        self.fields, self.scalars = _parameters(function, self.where)
        self.defaults: dict[str, object] = dict(getattr(function, "__kwdefaults__", None) or {})
        if across not in ("exact", "block"):
            raise KernelError(
                f'across={across!r}: expected "exact" or "block"', where=self.where, remedy='leave it out for "exact"'
            )

    def __call__(self, *_: object, **__: object) -> None:
        """Raise an error, since kernels are applied by a Program."""
        raise KernelError(
            f"kernel {self.name!r} was called like a function",
            where=self.where,
            remedy=f"record it in a Program: P.apply({self.name}, {', '.join(self.fields)})",
        )

    def __repr__(self) -> str:
        scalars = f", *, {', '.join(self.scalars)}" if self.scalars else ""
        return f"<kernel {self.name}({', '.join(self.fields)}{scalars})>"

    def _repr_html_(self) -> str:
        facts = {"fields": ", ".join(self.fields), "scalars": ", ".join(self.scalars), "order": self.order or ""}
        try:
            written = details("source", inspect.cleandoc("\n" + inspect.getsource(self.function)))
        except (OSError, TypeError):  # made by a program, or by a cell that is gone
            written = ""
        return block(f"Kernel {self.name}", described(facts), written)

    def graph(self, signature: Signature) -> KernelGraph:
        """Return the traced graph for these argument types and the present values that the function captures.

        Parameters
        ----------
        signature
            Types of the arguments.

        Returns
        -------
        KernelGraph
            The graph.
        """
        key = signature, captured(self.function)
        graph = self._graphs.get(key)
        if graph is None:
            graph = self._graphs[key] = trace_kernel(self, signature)
        return graph


def _parameters(function: Callable[..., object], where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    fields: list[str] = []
    scalars: list[str] = []
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
    if order == "boundary-first":
        if kernel.across != "block":
            raise KernelError(
                f'kernel {kernel.name!r}: order="boundary-first" depends on how the grid is cut',
                where=kernel.where,
                remedy='say so with across="block", or use order="lexicographic"',
            )
        return Order("boundary-first", (1,) * ndim, kernel.across)
    if not isinstance(order, Mapping):
        raise KernelError(
            f"order={order!r}",
            where=kernel.where,
            remedy='use {"x": +1}, "lexicographic", "boundary-first" or "red-black"',
        )
    directions = [0] * ndim
    trace = Trace(ndim, axis_names, True, 0)
    for axis, direction in order.items():
        if direction not in (1, -1):
            raise KernelError(
                f"order: direction {direction!r} of axis {axis!r}", where=kernel.where, remedy="use +1 or -1"
            )
        directions[trace.axis(axis)] = direction
    return Order("sweep", tuple(directions), kernel.across)


def _stream(name: str) -> int:
    """Return the random stream of a kernel: FNV-1a of its name, so that kernels of a step draw different numbers."""
    value = 0x811C9DC5
    for byte in name.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def trace_kernel(kernel: Kernel, signature: Signature) -> KernelGraph:
    """Run the kernel's function once with symbols and record what it does as a graph."""
    if len(signature.fields) != len(kernel.fields):
        raise KernelError(
            f"kernel {kernel.name!r} takes {len(kernel.fields)} fields ({', '.join(kernel.fields)}), "
            f"found {len(signature.fields)}",
            where=kernel.where,
            remedy="pass one field (or list of fields) for each positional parameter",
        )
    axis_names = signature.axis_names or tuple("wzyx"[-signature.ndim :])
    order = _order(kernel, signature.ndim, axis_names)
    trace = Trace(signature.ndim, axis_names, order is not None, _stream(kernel.name), metric=signature.metric)

    def reader(name: str, kind: FieldType) -> CellReader:
        trace.params.append(Param(name, kind.dtype, kind.axes))
        trace.centres[len(trace.params) - 1] = kind.centre
        trace.antiperiodic[len(trace.params) - 1] = kind.antiperiodic
        return CellReader(name, len(trace.params) - 1, kind.dtype, kind.axes, (1,) * len(kind.axes))

    arguments: list[CellReader | list[CellReader]] = []
    for name, kind in zip(kernel.fields, signature.fields, strict=True):
        if isinstance(kind, FieldType):
            arguments.append(reader(name, kind))
        else:
            arguments.append([reader(f"{name}[{i}]", item) for i, item in enumerate(kind)])
    scalars = {name: trace.scalar(name, kind.dtype, weak=kind.weak) for name, kind in signature.scalars}
    try:
        with tracing(trace), forbid_foreign_random(kernel.function, kernel.where):
            result = kernel.function(*arguments, **scalars)
    except MingaError:
        raise
    except Exception as error:
        raise _mistake(kernel, error) from error
    return _finish(kernel, trace, order, result)


def _mistake(kernel: Kernel, error: Exception) -> KernelError:
    """Convert an ordinary Python error in the author's function to a KernelError at the author's line."""
    where, here = kernel.where, str(Path(__file__).parent)
    message = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    for frame in frames:
        if not frame.filename.startswith((here, "<", _ROOT)):
            where = f"{frame.filename}:{frame.lineno}"
    remedy = "the function runs once, with symbols for fields and scalars; check this line"
    if isinstance(error, NameError):
        remedy = "declare the name: a field is a positional parameter, a scalar a keyword-only one (after *)"
    elif frames[-1].name == "__setattr__":  # the type of error depends on the version of Python
        message, remedy = "an attribute is assigned", "store into a cell of a field instead: u[0, 0] = ..."
    elif isinstance(error, AttributeError):
        remedy = _attribute_remedy(error)
    elif isinstance(error, TypeError) and "'Node' object" in str(error):
        remedy = "neither a scalar (declared after *) nor a cell's value has cells: declare fields before *"
    return KernelError(f"kernel {kernel.name!r}: {message}", where=where, remedy=remedy)


def _attribute_remedy(error: AttributeError) -> str:
    if isinstance(error.obj, CellReader):
        return "fields have no attributes to use: read and store cells, u[0, 0]"
    if getattr(error.obj, "__name__", None) in ("minga", "minga.api"):
        return replacement_for(error.name or "")
    known = [name for name in dir(error.obj) if not name.startswith("_")]
    close = suggest(error.name or "", known)
    if close:
        return f"did you mean {close!r}?"
    owner = getattr(error.obj, "__name__", type(error.obj).__name__)
    return f"{owner} has {', '.join(known)}" if 0 < len(known) <= _MOST_NAMED else f"use what {owner} has"


def _finish(kernel: Kernel, trace: Trace, order: Order | None, result: object) -> KernelGraph:
    shared, signed = Interner(), sign_changes(trace)

    def share(node: Node) -> Node:
        return shared(signed(node))

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


def check_graph(graph: KernelGraph) -> None:
    """Raise KernelError if a traced kernel as a whole is invalid."""
    if graph.order is not None and graph.order.kind == "red-black":
        _check_colours(graph)
    if graph.order is not None and graph.order.kind == "boundary-first":
        _check_whole_runs(graph)
    _check_positions(graph)


def _check_whole_runs(graph: KernelGraph) -> None:
    for reduction in graph.reductions:
        if reduction.kind == "sum" and is_float(reduction.value.dtype):
            raise KernelError(
                f"boundary-first: {reduction.name!r} sums floats, in runs of cells that this order would cut",
                where=graph.where,
                remedy="sum in a separate kernel, without an order",
            )


def _check_colours(graph: KernelGraph) -> None:
    for node in graph.nodes():
        if node.op == "read" and node.data[0] in graph.written:
            _, _, offsets = node.data
            if any(offsets) and sum(offsets) % 2 == 0:
                raise KernelError(
                    f"red-black: {graph.params[node.data[0]].name}{list(offsets)} is a cell of the same colour",
                    where=graph.where,
                    remedy="cells of one colour must not read each other: drop diagonal reads or sweep in order",
                )


def _check_positions(graph: KernelGraph) -> None:
    """Raise KernelError if a local that depends on an index is read at a neighbour.

    The local would be computed there, and beyond a periodic end the index is not the true one.
    """
    depends: list[bool] = []
    for local_ in graph.locals:
        nodes = list(topological([local_]))
        depends.append(any(n.op == "index" or (n.op == "local" and depends[n.data[0]]) for n in nodes))
    for node in graph.nodes():
        if node.op == "local" and any(node.data[1]) and depends[node.data[0]]:
            raise KernelError(
                f"kernel {graph.name!r}: a local that depends on mg.index or mg.random is read at {list(node.data[1])}",
                where=graph.where,
                remedy="store it in a field by a separate kernel, and read that field at neighbours",
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
    """Return a signature for ordinary fields given as (dtype, axes): a convenience for inspecting kernels."""
    return Signature(ndim, tuple(FieldType(as_dtype(dtype), tuple(axes)) for dtype, axes in fields))

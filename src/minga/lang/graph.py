"""The graph of a traced kernel: reads, operations and stores of one cell, for printers and the engine to inspect."""

from __future__ import annotations

import functools
import hashlib
import marshal
from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Final, Literal

from minga.lang.expr import Node
from minga.lang.types import DType, is_float

ReductionKind = Literal["max", "min", "argmax", "argmin", "count", "sum"]

RUN: Final = 64
"""Cells of the innermost axis that are summed in floating point, as one run, before runs are added exactly."""


@dataclass(frozen=True, slots=True)
class Param:
    """A field parameter. `axes` are the iteration axes that the field has (all of them for an ordinary field)."""

    name: str
    dtype: DType
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar parameter, stored as `dtype` in an 8-byte slot of memory. Names with @ are supplied by the engine."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """A store of `value` (of the parameter's dtype) into `param` at index `strides * i + offsets`."""

    param: int
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    value: Node


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A reduction of a value over all cells of the region to one number.

    max, min        in the type of the value; NaN wins and -0 < +0; over no cell, the type's lowest (max) or highest
                    (min) value
    argmax, argmin  i8: the smallest linear global index (row-major) that has the extreme value; -1 over no cell
    count           i8: the number of cells where a bool holds
    sum             f8 for floats (runs of 64 cells, then exact), i8 for signed integers, u8 for unsigned ones and bools
    """

    name: str
    kind: ReductionKind
    value: Node
    dtype: DType


@dataclass(frozen=True, slots=True)
class Order:
    """The order of an in-place update.

    sweep           along the axes with +1 or -1 in `directions`; the other axes are free
    lexicographic   cell after cell, with the last axis fastest
    boundary-first  first the cells at a block's borders with other blocks, then those inside, both in lexicographic
                    order
    red-black       first the even cells, then the odd ones
    """

    kind: Literal["sweep", "lexicographic", "boundary-first", "red-black"]
    directions: tuple[int, ...]
    across: Literal["exact", "block"] = "exact"


@dataclass(frozen=True, slots=True, eq=False)
class KernelGraph:
    """Everything that a kernel does to one cell. Nodes are shared: equal subexpressions are one object."""

    name: str
    ndim: int
    params: tuple[Param, ...]
    scalars: tuple[Scalar, ...]
    stores: tuple[Store, ...]
    reductions: tuple[Reduction, ...] = ()
    locals: tuple[Node, ...] = ()
    order: Order | None = None
    where: str = ""

    @property
    def roots(self) -> tuple[Node, ...]:
        """The nodes that must be computed: locals first (in order of definition), then stores, then reductions."""
        return (*self.locals, *(s.value for s in self.stores), *(r.value for r in self.reductions))

    @property
    def written(self) -> frozenset[int]:
        """Numbers of the parameters that the kernel stores into."""
        return frozenset(store.param for store in self.stores)

    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes, arguments before users."""
        return _nodes(self)

    def digest(self) -> str:
        """Return the SHA-256 of the graph's meaning (the author's file and line do not count)."""
        return _digest(self)

    def code_digest(self) -> str:
        """Return the SHA-256 of everything but names, so that kernels that differ only in names share machine code."""
        return _code_digest(self)


@functools.lru_cache(maxsize=1024)
def _nodes(graph: KernelGraph) -> tuple[Node, ...]:
    return tuple(topological(graph.roots))


@functools.lru_cache(maxsize=1024)
def _digest(graph: KernelGraph) -> str:
    return hashlib.sha256(dump(graph).encode()).hexdigest()


@functools.lru_cache(maxsize=1024)
def _code_digest(graph: KernelGraph) -> str:
    """Return the SHA-256 of what `dump(graph, names=False)` shows, column by column: the text of large graphs is slow.

    The numbers of arguments determine the graph, as in the text; `marshal` in version 2 depends on values only.
    """
    nodes = graph.nodes()
    number = dict(zip(nodes, range(len(nodes)), strict=True))
    ops, args = list(map(attrgetter("op"), nodes)), list(map(attrgetter("args"), nodes))
    found = hashlib.sha256("\n".join([*_head(graph, names=False), *_tail(graph, number, names=False)]).encode())
    found.update(" ".join(ops).encode())
    found.update(" ".join(map(attrgetter("dtype"), nodes)).encode())
    found.update(array("q", map(len, args)))
    found.update(array("q", map(number.__getitem__, chain.from_iterable(args))))
    found.update(_plain(_without_names(graph, ops)))
    return found.hexdigest()


def _without_names(graph: KernelGraph, ops: Sequence[str]) -> list[object]:
    """Return the additional data of all nodes, with positions of scalars instead of their names."""
    data: list[object] = list(map(attrgetter("data"), graph.nodes()))
    place = {scalar.name: i for i, scalar in enumerate(graph.scalars)}
    return [place[str(own)] if op == "scalar" else own for op, own in zip(ops, data, strict=True)] if place else data


def _plain(data: list[object]) -> bytes:
    """Return bytes that depend on values only; tables and such are not known to `marshal` and have a text."""
    try:
        return marshal.dumps(data, 2)
    except ValueError:
        return repr(data).encode()


def topological(roots: Iterable[Node], known: Container[int] = frozenset()) -> Iterator[Node]:
    """Yield every node that is reachable from `roots` once, arguments first.

    The traversal is iterative, since the graphs of unrolled kernels are deep. Nodes whose ids are in `known` are left
    out, together with all that is only reachable through them.
    """
    seen: set[int] = set()
    for root in roots:
        if id(root) in seen or id(root) in known:
            continue
        seen.add(id(root))
        stack = [(root, iter(root.args))]
        while stack:
            node, args = stack[-1]
            for arg in args:
                key = id(arg)
                if key in seen or key in known:
                    continue
                seen.add(key)
                if arg.args:
                    stack.append((arg, iter(arg.args)))
                    break
                yield arg
            else:
                stack.pop()
                yield node


class Interner:
    """Sharing of equal nodes (common subexpressions). Nothing is re-associated: that would change the bits."""

    def __init__(self) -> None:
        self._table: dict[tuple[object, ...], Node] = {}
        self._memo: dict[int, Node] = {}
        self._keep: list[Node] = []

    def __call__(self, root: Node) -> Node:
        """Return the shared, strong equivalent of `root`."""
        if id(root) in self._memo:
            return self._memo[id(root)]
        for node in topological([root], self._memo):
            args = tuple(self._memo[id(arg)] for arg in node.args)
            key = (node.op, node.dtype, tuple(id(arg) for arg in args), _const_key(node))
            shared = self._table.get(key)
            if shared is None:
                of = node.of and (node.of[0], *(self(part) for part in node.of[1:]))
                shared = Node(node.op, node.dtype, args, node.data, of=of)
                self._table[key] = shared
            self._memo[id(node)] = shared
            self._keep.append(node)
        return self._memo[id(root)]


def _const_key(node: Node) -> object:
    # In Python 0.0 == -0.0 == 0 and True == 1, and NaN differs from itself, so spellings are compared instead.
    return (type(node.data).__name__, repr(node.data)) if node.op == "const" else node.data


def spell(node: Node) -> str:
    """Return the node's own part of the canonical text; floats as hexadecimal, so that no digit is lost."""
    if node.op == "const":
        return float(node.data).hex() if is_float(node.dtype) else repr(node.data)
    return "" if node.data is None else repr(node.data)


def dump(graph: KernelGraph, *, names: bool = True) -> str:
    """Return the canonical text of a graph; graphs of equal text have equal meaning.

    There is one line per node, `%number = op dtype arguments data`. Without `names`, the names of the kernel, its
    fields, scalars and reductions are replaced by their positions.
    """
    number = {node: i for i, node in enumerate(graph.nodes())}
    place = {scalar.name: i for i, scalar in enumerate(graph.scalars)}
    lines = _head(graph, names)
    for node in graph.nodes():
        args = " ".join(f"%{number[arg]}" for arg in node.args)
        own = spell(node) if names or node.op != "scalar" else str(place[str(node.data)])
        lines.append(f"%{number[node]} = {node.op} {node.dtype} {args} {own}".rstrip())
    return "\n".join([*lines, *_tail(graph, number, names)]) + "\n"


def _head(graph: KernelGraph, names: bool) -> list[str]:
    """Return the lines before those of the nodes."""
    fields = enumerate(graph.params)
    lines = [f"kernel {_called(graph.name, 0, names)} ndim={graph.ndim} order={graph.order}"]
    lines += [f"field {_called(p.name, i, names)} {p.dtype} axes={p.axes}" for i, p in fields]
    return lines + [f"scalar {_called(s.name, i, names)} {s.dtype}" for i, s in enumerate(graph.scalars)]


def _tail(graph: KernelGraph, number: Mapping[Node, int], names: bool) -> list[str]:
    """Return the lines behind those of the nodes, given the numbers of the nodes."""
    lines = [f"local {i} = %{number[node]}" for i, node in enumerate(graph.locals)]
    lines += [f"store {s.param} {s.strides} {s.offsets} = %{number[s.value]}" for s in graph.stores]
    return lines + [
        f"reduce {_called(r.name, i, names)} {r.kind} {r.dtype} = %{number[r.value]}"
        for i, r in enumerate(graph.reductions)
    ]


def _called(name: str, position: int, names: bool) -> str:
    return name if names else str(position)

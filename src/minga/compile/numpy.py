"""The oracle: kernels evaluated by NumPy, operation by operation, on whole boxes.

It is slow, but short and independent of LLVM; every other printer is tested against it, bit for bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from minga.compile.elementwise import apply, repeated
from minga.compile.exact import Words, add_exactly, combine, empty_accumulator, sort_keys
from minga.lang.expr import Node
from minga.lang.graph import RUN, KernelGraph, Order, Reduction, Store, topological

Array = NDArray[Any]
Index = tuple[int, ...]


class BoxLike(Protocol):
    """Half-open integer box: anything with `lo` and `hi`."""

    @property
    def lo(self) -> Index:
        """First index along each axis."""

    @property
    def hi(self) -> Index:
        """Index after the last one along each axis."""


@dataclass(frozen=True, slots=True)
class BoundArray:
    """A field's array; `array[0, ...]` is the cell with index `origin`, along the axes that the field has."""

    array: Array
    origin: Index

    def at(self, lo: Index, hi: Index, strides: Index, offsets: Index) -> Array:
        """Return a view of the elements `strides * i + offsets` for all i of a non-empty box lo..hi."""
        cut = []
        for k, length in enumerate(self.array.shape):
            first = strides[k] * lo[k] + offsets[k] - self.origin[k]
            last = strides[k] * (hi[k] - 1) + offsets[k] - self.origin[k]
            if first < 0 or last >= length:
                raise IndexError(
                    f"axis {k}: indices {first + self.origin[k]}..{last + self.origin[k]} "
                    f"outside the array's {self.origin[k]}..{self.origin[k] + length - 1}"
                )
            cut.append(slice(first, last + 1, strides[k]))
        return self.array[tuple(cut)]


def evaluate(
    graph: KernelGraph,
    box: BoxLike | tuple[Index, Index],
    arrays: Sequence[BoundArray],
    scalars: Mapping[str, object] | None = None,
    *,
    shift: Index | None = None,
    extent: Index | None = None,
    colour: int = 0,
) -> dict[str, Words]:
    """Apply a kernel to a box, in place.

    Parameters
    ----------
    graph
        The kernel.
    box
        Iteration indices, as a Box or a pair (lo, hi).
    arrays
        One array for each of `graph.params`.
    scalars
        A number for each of `graph.scalars`.
    shift
        Offset from an iteration index to the true global index; 0 by default.
    extent
        Cells of the grid along each axis, for argmax and argmin; by default, the box is the grid.
    colour
        For red-black kernels: 0 or 1, the parity of the sum of true indices of the cells to update.

    Returns
    -------
    dict
        The accumulators of the kernel's reductions, by name (see `minga.compile.exact`).
    """
    lo, hi = (box[0], box[1]) if isinstance(box, tuple) else (box.lo, box.hi)
    call = _Call(graph, tuple(arrays), dict(scalars or {}), shift or (0,) * graph.ndim, extent or tuple(hi))
    if any(high <= low for low, high in zip(lo, hi)):
        return {r.name: empty_accumulator(r.kind) for r in graph.reductions}
    with np.errstate(all="ignore"):
        return _run(call, tuple(lo), tuple(hi), colour)


@dataclass(frozen=True, slots=True)
class _Call:
    """Everything that stays the same during one evaluation."""

    graph: KernelGraph
    arrays: tuple[BoundArray, ...]
    scalars: Mapping[str, object]
    shift: Index
    extent: Index


@dataclass(frozen=True, slots=True)
class _View:
    """The values of nodes on one box.

    `shifted` keeps the views needed by locals at offsets, `states` the final states of loops.
    """

    call: _Call
    lo: Index
    hi: Index
    values: dict[int, Array] = field(default_factory=dict)
    shifted: dict[Index, _View] = field(default_factory=dict)
    states: dict[int, list[Array]] = field(default_factory=dict)

    @property
    def shape(self) -> Index:
        """Number of cells of the box along each axis."""
        return tuple(high - low for low, high in zip(self.lo, self.hi))

    def value(self, root: Node) -> Array:
        """Return the value of a node, broadcastable to the box."""
        for node in topological([root], self.values):
            self.values[id(node)] = self._compute(node)
        return self.values[id(root)]

    def _compute(self, node: Node) -> Array:
        data: Any = node.data
        match node.op:
            case "const":
                return self._constant(data, node)
            case "scalar":
                return self._constant(self.call.scalars[data], node)
            case "read":
                return self._read(*data)
            case "index":
                return self._index(data)
            case "local":
                number, offsets = data
                return self._at(offsets).value(self.call.graph.locals[number])
            case "iterate":
                rounds, self.states[id(node)] = repeated(data, [self.values[id(arg)] for arg in node.args])
                return rounds
            case "iterated":
                return self.states[id(node.args[0])][int(data)]
            case _:
                return apply(node, [self.values[id(arg)] for arg in node.args])

    def _constant(self, value: object, node: Node) -> Array:
        return np.asarray(value).astype(node.dtype).reshape((1,) * len(self.lo))

    def _read(self, param: int, strides: Index, offsets: Index) -> Array:
        axes = self.call.graph.params[param].axes
        lo, hi = tuple(self.lo[a] for a in axes), tuple(self.hi[a] for a in axes)
        cells = self.call.arrays[param].at(lo, hi, strides, offsets)
        return cells[tuple(slice(None) if a in axes else np.newaxis for a in range(len(self.lo)))]

    def _index(self, axis: int) -> Array:
        true = np.arange(self.lo[axis], self.hi[axis], dtype=np.int64) + self.call.shift[axis]
        return true.reshape([-1 if a == axis else 1 for a in range(len(self.lo))])

    def _at(self, offsets: Index) -> _View:
        if not any(offsets):
            return self
        view = self.shifted.get(offsets)
        if view is None:
            lo = tuple(low + o for low, o in zip(self.lo, offsets))
            hi = tuple(high + o for high, o in zip(self.hi, offsets))
            view = self.shifted[offsets] = _View(self.call, lo, hi)
        return view


def _run(call: _Call, lo: Index, hi: Index, colour: int) -> dict[str, Words]:
    graph = call.graph
    whole = _View(call, lo, hi)
    chosen = np.ones(whole.shape, bool)
    if graph.order is not None and graph.order.kind == "red-black":
        parity = sum((whole._index(axis) for axis in range(graph.ndim)), np.zeros(whole.shape, np.int64)) & 1
        chosen = parity == colour
    reduced = {r.name: np.empty(whole.shape, r.value.dtype) for r in graph.reductions}
    for view in _parts(whole, graph.order):
        place = tuple(slice(a - low, b - low) for a, b, low in zip(view.lo, view.hi, lo))
        for r in graph.reductions:
            reduced[r.name][place] = view.value(r.value)
        # All values are computed (and copied, since a bare read is a view) before the first store.
        new = [(store, view.value(store.value).copy()) for store in graph.stores]
        for store, value in new:
            _assign(view, store, value, chosen[place])
    return {r.name: _reduce(whole, r, reduced[r.name], chosen) for r in graph.reductions}


def _parts(whole: _View, order: Order | None) -> Iterator[_View]:
    """Yield the boxes that are updated at once, in order; each one reads the values that earlier ones stored."""
    if order is None or order.kind == "red-black":
        yield whole
        return
    ranges: list[list[tuple[int, int]]] = []
    for low, high, direction in zip(whole.lo, whole.hi, order.directions):
        cells = [(i, i + 1) for i in range(low, high)][::direction] if direction else [(low, high)]
        ranges.append(cells)
    for part in itertools.product(*ranges):
        yield _View(whole.call, tuple(a for a, _ in part), tuple(b for _, b in part))


def _assign(view: _View, store: Store, value: Array, chosen: NDArray[np.bool_]) -> None:
    cells = view.call.arrays[store.param].at(view.lo, view.hi, store.strides, store.offsets)
    cells[chosen] = np.broadcast_to(value, view.shape)[chosen]


# Reductions ----------------------------------------------------------------------------------------------------------
_LANES: Final = 8
_SUM_TREE: Final = (4, 2, 1)


def _reduce(view: _View, reduction: Reduction, values: Array, chosen: NDArray[np.bool_]) -> Words:
    words = empty_accumulator(reduction.kind)
    match reduction.kind:
        case "max" | "min":
            keys = sort_keys(values[chosen], minimum=reduction.kind == "min")
            words[0] = keys.max(initial=words[0])
        case "argmax" | "argmin":
            keys = sort_keys(values[chosen], minimum=reduction.kind == "argmin")
            if keys.size:
                best = empty_accumulator(reduction.kind)
                best[0] = keys.max()
                best[1] = _linear_index(view)[chosen][keys == best[0]].min()
                words = combine(reduction.kind, words, best)
        case "count":
            words[0] = np.count_nonzero(values[chosen])
        case "sum" if values.dtype.kind == "f":
            add_exactly(words, run_sums(np.where(chosen, values, 0.0), view.lo[-1] + view.call.shift[-1]))
        case "sum":
            words[0] = values[chosen].astype(np.int64).sum(dtype=np.int64)
    return words


def run_sums(values: NDArray[np.float64], first: int) -> NDArray[np.float64]:
    """Return the sums over runs of 64 cells, which begin at multiples of 64 of the true innermost index.

    `first` is the true index of values[..., 0]. Lane j adds the run's cells j, j + 8, ..., j + 56 in this order; then
    the lanes are added as ((0+4)+(2+6)) + ((1+5)+(3+7)).
    """
    before = first % RUN
    after = -(before + values.shape[-1]) % RUN
    runs = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(before, after)])
    runs = runs.reshape(*values.shape[:-1], -1, RUN // _LANES, _LANES)
    lanes = np.zeros((*runs.shape[:-2], _LANES))
    for turn in range(RUN // _LANES):
        lanes = lanes + runs[..., turn, :]
    for half in _SUM_TREE:
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


def _linear_index(view: _View) -> NDArray[np.int64]:
    extent = view.call.extent
    linear = np.zeros(view.shape, np.int64)
    for axis in range(len(extent)):
        linear = linear + view._index(axis) * prod(extent[axis + 1 :])
    return linear

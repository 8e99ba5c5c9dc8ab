"""What a kernel may call on cells besides operators: choice, extremes, position, reductions."""

from __future__ import annotations

from typing import overload

from minga.lang.cell import Reduced
from minga.lang.expr import Node, as_node, author_error, cast, const, extreme, square_root, strong
from minga.lang.expr import where as where
from minga.lang.table import lookup as lookup
from minga.lang.trace import current_trace
from minga.lang.types import as_dtype, is_float


@overload
def max(value: object, /) -> Reduced: ...
@overload
def max(value: object, other: object, /, *more: object) -> Node: ...
def max(value: object, /, *others: object) -> Node | Reduced:
    """Of several values: the larger one, cell by cell. Of one: the largest over all cells, to be returned."""
    return extreme("max", (value, *others)) if others else _reduce("max", value)


@overload
def min(value: object, /) -> Reduced: ...
@overload
def min(value: object, other: object, /, *more: object) -> Node: ...
def min(value: object, /, *others: object) -> Node | Reduced:
    """Of several values: the smaller one, cell by cell. Of one: the smallest over all cells, to be returned."""
    return extreme("min", (value, *others)) if others else _reduce("min", value)


def argmax(value: object) -> Reduced:
    """Reduction: linear global index (row-major) of the first cell with the largest value."""
    return _reduce("argmax", value)


def argmin(value: object) -> Reduced:
    """Reduction: linear global index (row-major) of the first cell with the smallest value."""
    return _reduce("argmin", value)


def count(condition: object) -> Reduced:
    """Reduction: the number of cells where the condition holds."""
    current_trace("mg.count")
    node = as_node(condition)
    return Reduced("count", cast(node, "bool"))


def sum(value: object) -> Reduced:
    """Reduction: the sum over all cells. Floats: 64-cell runs in f8, then exactly, so that no layout changes a bit."""
    current_trace("mg.sum")
    node = as_node(value)
    target = "f8" if is_float(node.dtype) else node.dtype
    return Reduced("sum", cast(node, target))


def _reduce(kind: str, value: object) -> Reduced:
    current_trace(f"mg.{kind}")
    node = as_node(value)
    return Reduced(kind, cast(node, node.dtype))  # type: ignore[arg-type]


def abs(value: object) -> Node:
    """Absolute value."""
    return as_node(value).__abs__()


def sqrt(value: object) -> Node:
    """Correctly rounded square root; integers become f8."""
    return square_root(value)


def popcount(value: object) -> Node:
    """How many bits of an integer are one (of a negative number: of its two's complement), in the integer's type."""
    node = as_node(value)
    if is_float(node.dtype):
        raise author_error(f"mg.popcount needs an integer, found {node.dtype}", "floats have no bits to count")
    return node if node.dtype == "bool" else Node("popcount", node.dtype, (strong(node),))


def index(axis: int | str, dtype: object = "i8") -> Node:
    """The cell's global index along an axis (0-based; in a periodic image: that of the cell it is an image of)."""
    trace = current_trace("mg.index")
    return cast(Node("index", "i8", data=trace.axis(axis)), as_dtype(dtype))


def coordinate(axis: int | str) -> Node:
    """The position of the cell's point along an axis, f8, in the grid's units."""
    trace = current_trace("mg.coordinate")
    return trace.coordinate(trace.axis(axis))


def flush(value: object) -> Node:
    """`value` with numbers below the smallest normal number replaced by zero (denormals are slow on some hardware)."""
    node = as_node(value)
    if not is_float(node.dtype):
        raise author_error(f"mg.flush needs a float, found {node.dtype}", "integers have no denormals")
    smallest = 2.0**-1022 if node.dtype == "f8" else 2.0**-126
    return where(node.__abs__() < const(smallest), node * 0.0, node)

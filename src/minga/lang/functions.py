"""Functions that a kernel may call on cells besides operators: choice, extremes, position, reductions."""

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
    """Return the largest of several values cell by cell or, for a single value, the maximum over all cells.

    Parameters
    ----------
    value
        The first value, or the only one.
    *others
        Further values.

    Returns
    -------
    Node or Reduced
        With several values, the largest of them in each cell. With one value, a reduction, which the kernel must
        return. NaN propagates and -0 < +0.
    """
    return extreme("max", (value, *others)) if others else _reduce("max", value)


@overload
def min(value: object, /) -> Reduced: ...
@overload
def min(value: object, other: object, /, *more: object) -> Node: ...
def min(value: object, /, *others: object) -> Node | Reduced:
    """Return the smallest of several values cell by cell or, for a single value, the minimum over all cells.

    Parameters
    ----------
    value
        The first value, or the only one.
    *others
        Further values.

    Returns
    -------
    Node or Reduced
        With several values, the smallest of them in each cell. With one value, a reduction, which the kernel must
        return. NaN propagates and -0 < +0.
    """
    return extreme("min", (value, *others)) if others else _reduce("min", value)


def argmax(value: object) -> Reduced:
    """Reduce to the linear global index (row-major, i8) of the first cell with the largest value.

    The kernel must return the reduction; its value is -1 over no cell.

    Parameters
    ----------
    value
        A value of each cell.

    Returns
    -------
    Reduced
        The index, to be returned from the kernel.
    """
    return _reduce("argmax", value)


def argmin(value: object) -> Reduced:
    """Reduce to the linear global index (row-major, i8) of the first cell with the smallest value.

    The kernel must return the reduction; its value is -1 over no cell.

    Parameters
    ----------
    value
        A value of each cell.

    Returns
    -------
    Reduced
        The index, to be returned from the kernel.
    """
    return _reduce("argmin", value)


def count(condition: object) -> Reduced:
    """Reduce to the number of cells (i8) where the condition holds; the kernel must return the reduction.

    Parameters
    ----------
    condition
        A condition of each cell.

    Returns
    -------
    Reduced
        The number, to be returned from the kernel.
    """
    current_trace("mg.count")
    node = as_node(condition)
    return Reduced("count", cast(node, "bool"))


def sum(value: object) -> Reduced:
    """Reduce to the sum over all cells; the kernel must return the reduction.

    Floats are added in f8 within runs of 64 cells, and the sums of the runs are added exactly, so that no layout
    changes a bit of the result. Signed integers are summed as i8, unsigned ones and bools as u8.

    Parameters
    ----------
    value
        A value of each cell.

    Returns
    -------
    Reduced
        The sum, to be returned from the kernel.
    """
    current_trace("mg.sum")
    node = as_node(value)
    target = "f8" if is_float(node.dtype) else node.dtype
    return Reduced("sum", cast(node, target))


def _reduce(kind: str, value: object) -> Reduced:
    current_trace(f"mg.{kind}")
    node = as_node(value)
    return Reduced(kind, cast(node, node.dtype))  # type: ignore[arg-type]


def abs(value: object) -> Node:
    """Return the absolute value.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The absolute value.
    """
    return as_node(value).__abs__()


def sqrt(value: object) -> Node:
    """Return the correctly rounded square root; integers become f8.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The square root.
    """
    return square_root(value)


def popcount(value: object) -> Node:
    """Count the one bits of an integer (of the two's complement for a negative number).

    Parameters
    ----------
    value
        An integer or a bool.

    Returns
    -------
    Node
        The count, in the type of `value`.

    Raises
    ------
    KernelError
        If `value` is a float.
    """
    return _of_bits("popcount", value)


def bitreverse(value: object) -> Node:
    """Reverse the order of an integer's bits: the lowest becomes the highest.

    Parameters
    ----------
    value
        An integer or a bool.

    Returns
    -------
    Node
        The number with all bits of its type in reverse order, in the type of `value`; a bool is left unchanged.

    Raises
    ------
    KernelError
        If `value` is a float.
    """
    return _of_bits("bitreverse", value)


def _of_bits(op: str, value: object) -> Node:
    """Return an operation on the bits of an integer, which leaves a bool as it is."""
    node = as_node(value)
    if is_float(node.dtype):
        raise author_error(
            f"mg.{op} needs an integer, found {node.dtype}", "convert the float with mg.cast, for example to u8"
        )
    return node if node.dtype == "bool" else Node(op, node.dtype, (strong(node),))


def index(axis: int | str, dtype: object = "i8") -> Node:
    """Return the cell's global index along an axis.

    Parameters
    ----------
    axis
        Number or name of the axis.
    dtype
        Cell type of the result.

    Returns
    -------
    Node
        The index, counted from 0; in a periodic image, the index of the cell that it is an image of.
    """
    trace = current_trace("mg.index")
    return cast(Node("index", "i8", data=trace.axis(axis)), as_dtype(dtype))


def coordinate(axis: int | str) -> Node:
    """Return the position (f8) of the cell's point along an axis, given by number or name, in the grid's units.

    Parameters
    ----------
    axis
        Name or number of the axis.

    Returns
    -------
    Node
        The coordinate.
    """
    trace = current_trace("mg.coordinate")
    return trace.coordinate(trace.axis(axis))


def flush(value: object) -> Node:
    """Replace numbers below the smallest normal number by zero (denormals are slow on some hardware).

    Parameters
    ----------
    value
        A float.

    Returns
    -------
    Node
        The value, or 0.

    Raises
    ------
    KernelError
        If `value` is not a float.
    """
    node = as_node(value)
    if not is_float(node.dtype):
        raise author_error(f"mg.flush needs a float, found {node.dtype}", "integers have no denormals")
    smallest = 2.0**-1022 if node.dtype == "f8" else 2.0**-126
    return where(node.__abs__() < const(smallest), node * 0.0, node)

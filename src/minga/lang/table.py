"""Lookup tables: constant arrays that kernels index."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.lang.expr import Node, as_node, author_error, binary, cast, const, strong
from minga.lang.types import DType, as_dtype, integer_range, is_float, is_integer

__all__ = ["MOST_ENTRIES", "Table", "lookup"]

MOST_ENTRIES = 1 << 24


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """A table of constants, as the bytes of a little-endian array. Tables of equal type and content are equal."""

    dtype: DType
    content: bytes

    @property
    def values(self) -> NDArray[Any]:
        """The entries, read-only."""
        return np.frombuffer(self.content, np.dtype(self.dtype).newbyteorder("<")).astype(self.dtype, copy=False)

    def __len__(self) -> int:
        return len(self.content) // np.dtype(self.dtype).itemsize

    def __repr__(self) -> str:
        return f"table[{len(self)}] {hashlib.sha256(self.content).hexdigest()}"


def lookup(table: Sequence[bool | int | float] | NDArray[Any], index: object) -> Node:
    """Look up an entry of a constant table.

    Parameters
    ----------
    table
        A sequence of numbers or a one-dimensional array, known when the kernel is traced. Python integers are stored in
        the narrowest type that holds them all, other Python numbers as f8.
    index
        An integer or a bool. Indices beyond the ends give the first or the last entry.

    Returns
    -------
    Node
        The entry, in the type of the table.

    Raises
    ------
    KernelError
        If the index is a float, or the table is not one-dimensional, is empty or has more than 2**24 entries.
    """
    chosen = _table(table)
    node = as_node(index)
    if not is_integer(node.dtype) and node.dtype != "bool":
        raise author_error(f"mg.lookup: the index is {node.dtype}, not an integer", 'convert it with mg.cast(x, "i4")')
    node = strong(cast(node, "u1") if node.dtype == "bool" else node)
    low, high = integer_range(node.dtype)
    if low < 0:
        node = binary("max", node, const(0, node.dtype))
    if high >= len(chosen):
        node = binary("min", node, const(len(chosen) - 1, node.dtype))
    if chosen.dtype != "bool":
        return Node("lookup", chosen.dtype, (node,), chosen)
    # Fetching bytes is four times as fast as converting them to bits one by one.
    return cast(Node("lookup", "u1", (node,), Table("u1", chosen.content)), "bool")


def _table(given: object) -> Table:
    try:
        array = np.asarray(given)
        if isinstance(given, np.ndarray):
            dtype = as_dtype(array.dtype)
        else:
            dtype = "f8" if array.dtype.kind == "f" else "bool" if array.dtype.kind == "b" else _narrowest(array)
    except (ValueError, TypeError, OverflowError) as error:
        raise author_error(f"mg.lookup: {error}", "give the table as a list of numbers or a NumPy array") from error
    if array.ndim != 1 or not 0 < array.size <= MOST_ENTRIES:
        raise author_error(
            f"mg.lookup: a table has one dimension and 1 to {MOST_ENTRIES} entries, found the shape {array.shape}",
            "number the entries along one axis: table.ravel()",
        )
    return Table(dtype, array.astype(np.dtype(dtype).newbyteorder("<")).tobytes())


def _narrowest(array: NDArray[Any]) -> DType:
    if array.dtype.kind not in "iu" or not array.size:
        raise ValueError(f"{array.dtype} is not a type of numbers" if array.size else "the table is empty")
    kinds: tuple[DType, ...] = ("u1", "i2", "i4", "i8", "u8")
    least, most = int(array.min()), int(array.max())
    return next(kind for kind in kinds if integer_range(kind)[0] <= least and most <= integer_range(kind)[1])


def extremes(table: Table, first: int, last: int) -> tuple[int, int]:
    """Return the smallest and largest entry of an integer table between two indices, both inclusive."""
    assert not is_float(table.dtype)
    part = table.values[max(0, first) : max(0, last) + 1]
    part = part if part.size else table.values[-1:]
    return int(part.min()), int(part.max())

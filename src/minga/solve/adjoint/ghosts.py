"""Ghost cells as linear functions of cells inside: the coefficients of a field's boundary conditions.

The adjoint of a step folds what would be added to ghost cells back to the cells that they are made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from minga.errors import ProgramError
from minga.lang.expr import Node, const
from minga.lang.graph import Interner
from minga.lang.reverse import pulled_back
from minga.space.boundary import SIDES, Side, homogeneous, trace_fill
from minga.space.field import Field

__all__ = ["Face", "faces_of"]

_ONE: Final = const(1.0, "f8")


@dataclass(frozen=True, slots=True)
class Face:
    """Ghost cells beyond one end of an axis.

    Attributes
    ----------
    axis, side
        The end.
    coefficients
        For each layer of ghost cells, from 1 on, the coefficients of the cells inside, counted from 0 at the end.
    """

    axis: int
    side: Side
    coefficients: Mapping[int, Mapping[int, float]]

    @property
    def depth(self) -> int:
        """Number of cells inside on which ghost cells depend."""
        return 1 + max(cell for layer in self.coefficients.values() for cell in layer)


def faces_of(item: Field, reach: Mapping[tuple[int, Side], int]) -> list[Face]:
    """Return the ends beyond which ghost cells of a field depend on cells inside.

    Parameters
    ----------
    item
        The field.
    reach
        Number of layers of ghost cells that are read, by axis and side.

    Returns
    -------
    list of Face
        One entry for each end of an axis that is not periodic and has a condition other than given values.

    Raises
    ------
    ProgramError
        If ghost cells do not depend on cells of the field linearly, or with coefficients that vary.
    """
    if not any(reach.values()):
        return []
    linear = Field(
        item.name, item.grid, item.dtype, on=item.on, boundary=homogeneous(item),
        centre=tuple(axis for axis, bit in enumerate(item.centre) if bit),
    )  # fmt: skip
    found = []
    for axis in range(item.grid.ndim):
        for side in SIDES:
            layers = {
                layer: _coefficients(linear, axis, side, layer)
                for layer in range(1, reach.get((axis, side), 0) + 1)
                if not item.periodic[axis]
            }
            layers = {layer: cells for layer, cells in layers.items() if cells}
            if layers:
                found.append(Face(axis, side, layers))
    return found


def _coefficients(item: Field, axis: int, side: Side, layer: int) -> dict[int, float]:
    """Return the coefficients of the cells inside that make a ghost cell."""
    fill = trace_fill(item, axis, side, layer)
    if fill is None:
        raise ProgramError(
            f"{item.name!r} is read beyond the {side} end of {item.grid.axes[axis]}, where it has no condition",
            remedy="declare a boundary condition",
        )
    own = {number for number, operand in enumerate(fill.operands) if operand is item and number}
    (store,) = fill.graph.stores
    weights = pulled_back([(store.value, _ONE)], lambda node: node.op == "read" and node.data[0] in own, Interner())
    found: dict[int, float] = {}
    for read, weight in weights:
        (term,) = weight
        node, factor = term
        if not _constant(node):
            raise ProgramError(
                f"the condition of {item.name!r} at the {side} end of {item.grid.axes[axis]} has coefficients that vary",
                remedy="the adjoint supports conditions with constant coefficients",
            )
        offset = abs(read.data[2][axis]) - layer
        found[offset] = found.get(offset, 0.0) + factor
    return {cell: factor for cell, factor in found.items() if factor}


def _constant(node: Node) -> bool:
    return node.op == "const" and float(node.data) == 1.0

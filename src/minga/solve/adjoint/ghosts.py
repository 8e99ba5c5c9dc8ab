"""Ghost cells as functions of cells inside: the derivatives of a field's boundary conditions.

The adjoint of a step folds what would be added to ghost cells back to the cells that they are made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from minga.errors import ProgramError
from minga.lang.expr import Node, const
from minga.lang.graph import Interner, topological
from minga.lang.reverse import pulled_back, weighted_sum
from minga.space.boundary import SIDES, Boundary, Condition, Edge, Side, trace_fill
from minga.space.field import Field

__all__ = ["Face", "beyond", "faces_of", "linearised"]


@dataclass(frozen=True, slots=True)
class Face:
    """Ghost cells beyond one end of an axis.

    Attributes
    ----------
    axis, side
        The end.
    slopes
        For each layer of ghost cells, from 1 on, its derivatives by the cells inside, counted from 0 at the end:
        expressions of the ghost cell, whose reads are those of the field itself.
    """

    axis: int
    side: Side
    slopes: Mapping[int, Mapping[int, Node]]

    @property
    def depth(self) -> int:
        """Number of cells inside on which ghost cells depend."""
        return 1 + max(cell for layer in self.slopes.values() for cell in layer)


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
        If a condition has no derivative here.
    """
    found = []
    for axis in range(item.grid.ndim):
        for side in SIDES:
            layers = {
                layer: _slopes(item, axis, side, layer)
                for layer in range(1, reach.get((axis, side), 0) + 1)
                if not item.periodic[axis]
            }
            layers = {layer: cells for layer, cells in layers.items() if cells}
            if layers:
                found.append(Face(axis, side, layers))
    return found


def _slopes(item: Field, axis: int, side: Side, layer: int) -> dict[int, Node]:
    """Return the derivatives of a ghost cell by the cells inside; none without a condition, where nothing is read."""
    fill = trace_fill(item, axis, side, layer)
    place = f"at the {side} end of {item.grid.axes[axis]}"
    if fill is None:
        return {}
    own = {number for number, operand in enumerate(fill.operands) if operand is item and number}
    (store,) = fill.graph.stores
    share = Interner()
    weights = pulled_back(
        [(store.value, const(1.0, item.dtype))], lambda node: node.op == "read" and node.data[0] in own, share
    )
    found: dict[int, Node] = {}
    for read, weight in weights:
        terms = list(weight)
        if all(node.op == "const" for node, _ in terms):
            slope: Node | None = const(sum(float(node.data) * factor for node, factor in terms), item.dtype)
        else:
            slope = weighted_sum(terms)
        assert slope is not None
        leaves = [node for node in topological([slope]) if node.op in ("read", "scalar", "index")]
        if any(node.op != "read" or node.data[0] not in own for node in leaves):
            raise ProgramError(
                f"the adjoint of {item.name!r}: the derivative of its condition {place} varies from place to place",
                remedy="use a condition whose coefficients are numbers",
            )
        cell = abs(read.data[2][axis]) - layer
        found[cell] = slope if cell not in found else found[cell] + slope  # a condition may read a cell in two ways
    return found


def beyond(item: Field, layers: int) -> tuple[set[str], set[Field]]:
    """Return what some layers of ghost cells depend on besides their field: keys of registers, and other fields."""
    registers: set[str] = set()
    others: set[Field] = set()
    for axis in range(item.grid.ndim):
        for side in SIDES:
            for layer in range(1, layers + 1):
                fill = None if item.replicated or item.periodic[axis] else trace_fill(item, axis, side, layer)
                if fill is None:
                    break
                registers |= {str(scalar.name) for scalar in fill.graph.scalars}
                others |= {each for each in fill.operands if isinstance(each, Field) and each is not item}
    return registers, others


def linearised(item: Field) -> Boundary:
    """Return the conditions of differences between fields that obey those of a field, to first order.

    Parameters
    ----------
    item
        The field.

    Returns
    -------
    Boundary
        Conditions by which ghost cells are linear in the cells inside.

    Raises
    ------
    ProgramError
        When ghost cells are computed, if a condition is not linear in the cells inside.
    """

    def linear(condition: Condition | None, axis: int, side: Side) -> Condition | None:
        known = None if condition is None else condition.linear()
        if condition is None or known is not None:
            return known

        def value(edge: Edge) -> object:
            terms = []
            for cell, slope in _slopes(item, axis, side, edge.layer).items():
                if slope.op != "const":
                    raise ProgramError(
                        f"the tangent of {item.name!r}: its condition {condition} at the {side} end of "
                        f"{item.grid.axes[axis]} is not linear in the cells inside",
                        remedy="use a condition whose ghost cells are sums of cells times numbers",
                    )
                terms.append(float(slope.data) * edge[cell])
            return sum(terms, 0.0)

        return Condition(f"linearised {condition}", value, homogeneous=True)

    return Boundary(
        tuple(
            (linear(low, axis, "low"), linear(high, axis, "high"))
            for axis, (low, high) in enumerate(item.boundary.sides)
        )
    )

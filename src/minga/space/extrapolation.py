"""Condition of what is given inside and needed beyond the walls, such as a coefficient on a face of the wall."""

from __future__ import annotations

from minga.lang.expr import Node, where
from minga.lang.functions import max as largest
from minga.lang.functions import min as smallest
from minga.lang.signed import signed_sum
from minga.lang.weights import fornberg
from minga.space.boundary import Condition, Edge

__all__ = ["extrapolated"]


def extrapolated(order: int = 2) -> Condition:
    """Return the condition that values go on beyond the wall as they do inside it.

    Of order 2 it is the straight line with the smaller of two slopes beside the wall, and with none if these have
    different signs; the mean of a ghost cell and its mirror image has no sign that the cells beside the wall do not
    have. A jump near the wall therefore neither overshoots nor makes a coefficient negative. Higher orders continue
    the polynomial through as many cells.

    Parameters
    ----------
    order
        Order of accuracy, even. Fewer cells are read where there are fewer.

    Returns
    -------
    Condition
        The condition.
    """
    return Condition(f"extrapolated({order})", lambda edge: _line(edge) if order == 2 else _polynomial(edge, order))


def _polynomial(edge: Edge, order: int) -> Node:
    inside = range(min(order, _cells(edge)))
    ghost, *points = edge.distances([-edge.layer, *inside])
    weights = fornberg([point - ghost for point in points], 0)
    return signed_sum([(weight, edge[n]) for weight, n in zip(weights, inside, strict=True)])


def _line(edge: Edge) -> Node:
    count = min(3, _cells(edge))
    ghost, *points = edge.distances([-edge.layer, *range(count)])
    if count == 1:
        return edge[0]
    away = points[0] - ghost
    steps = [(edge[n + 1] - edge[n]) * float(away / (points[n + 1] - points[n])) for n in range(count - 1)]
    near, far = steps[0], steps[-1]
    rising, falling = (near > 0.0) & (far > 0.0), (near < 0.0) & (far < 0.0)
    step = where(rising, smallest(near, far), where(falling, largest(near, far), 0.0))
    return _of_one_sign(edge[0] - step, edge, count)


def _of_one_sign(value: Node, edge: Edge, count: int) -> Node:
    """Return a ghost value whose mean with the mirror image has no other sign than that and the first cell have."""
    first, mirrored = edge[0], edge[min(edge.layer, count) - 1]
    low = (value < 0.0) & (first >= 0.0) & (mirrored >= 0.0)
    high = (value > 0.0) & (first <= 0.0) & (mirrored <= 0.0)
    return where(low, largest(value, -mirrored), where(high, smallest(value, -mirrored), value))


def _cells(edge: Edge) -> int:
    """Return the number of the field's points along the normal."""
    return edge.target.points.shape[edge.axis]

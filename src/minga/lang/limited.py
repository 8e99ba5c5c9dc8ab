"""Values on faces by limited schemes: van Leer's and the fifth-order WENO of Jiang and Shu.

Each function takes averages over cells in the order in which the flow passes them and returns the value on a face
ahead of the cell in the middle. Where cells have several widths, weights come from tables along the axis
(`minga.space.metric`), which `table` looks up by kind and numbers.

Sources: B. van Leer, J. Comput. Phys. 14 (1974) 361, 32 (1979) 101; on unequal cells A. Mignone, J. Comput. Phys. 270
(2014) 784, eq. 37. G.-S. Jiang, C.-W. Shu, J. Comput. Phys. 126 (1996) 202; on unequal cells the same candidates,
ideal weights and integrals of the squared derivatives, for the parabolas through unequal averages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from minga.lang.expr import Node, where

__all__ = ["van_leer", "van_leer_unequal", "weno5", "weno5_unequal"]

Table = Callable[..., Node]
_CURVED: Final = 13.0 / 12.0
_SMALL: Final = 1e-6


def van_leer(behind: Node, here: Node, ahead: Node) -> Node:
    """Return the value on the face ahead of a cell, with van Leer's harmonic slope."""
    a, b = here - behind, ahead - here
    product = a * b
    return here + where(product > 0.0, product / (a + b), 0.0)


def van_leer_unequal(values: dict[int, Node], offsets: Sequence[int], table: Table) -> Node:
    """Return the same between cells of several widths; `offsets` are those of the cells behind, here and ahead."""
    behind, here, ahead = offsets
    a = (values[here] - values[behind]) * table("per_reach", here, behind - here)
    b = (values[ahead] - values[here]) * table("per_reach", here, ahead - here)
    back, fore = table("reach", here, behind - here), table("reach", here, ahead - here)
    product = a * b
    slope = product * (fore * a + back * b) / (a * a + (back + fore - 2.0) * product + b * b)
    return values[here] + where(product > 0.0, slope, 0.0)


def weno5(a: Node, b: Node, c: Node, e: Node, f: Node) -> Node:
    """Return the value on the face between c and e, by Jiang and Shu's fifth-order scheme."""
    candidates = ((2.0 * a - 7.0 * b) + 11.0 * c, (5.0 * c - b) + 2.0 * e, (2.0 * c + 5.0 * e) - f)
    bends = (a - 2.0 * b + c, b - 2.0 * c + e, c - 2.0 * e + f)
    tilts = ((a - 4.0 * b) + 3.0 * c, b - e, (3.0 * c - 4.0 * e) + f)
    roughness = [_CURVED * (bend * bend) + 0.25 * (tilt * tilt) for bend, tilt in zip(bends, tilts, strict=True)]
    value, total = _blend(candidates, roughness, (0.1, 0.6, 0.3))
    return value / (total * 6.0)


def weno5_unequal(values: dict[int, Node], offsets: Sequence[int], table: Table) -> Node:
    """Return the same between cells of several widths; `offsets` are those of five cells, as the flow passes them."""
    here, low, high = offsets[2], min(offsets), max(offsets)
    candidates, roughness, ideals = [], [], []
    for first in range(3):
        cells = sorted(offsets[first : first + 3])
        span = cells[0], cells[-1] + 1
        around = [k for k in cells if k != here]
        differences = {k: values[k] - values[here] for k in around}
        candidates.append(values[here] + _total(differences[k] * table("average", *span, k) for k in around))
        bend = _total(differences[k] * table("bend", *span, here, k) for k in around)
        tilt = _total(differences[k] * table("tilt", *span, here, k) for k in around)
        roughness.append(_CURVED * (bend * bend) + tilt * tilt)
        ideals.append(table("ideal", low, high + 1, cells[0]))
    value, total = _blend(candidates, roughness, ideals)
    return value / total


def _blend(candidates: Sequence[Node], roughness: Sequence[Node], ideals: Sequence[Node | float]) -> tuple[Node, Node]:
    """Return the sum of candidates times their weights, and the sum of the weights."""
    weights = [ideal / (each * each) for ideal, each in zip(ideals, [_SMALL + each for each in roughness], strict=True)]
    return _total(w * each for w, each in zip(weights, candidates, strict=True)), _total(weights)


def _total(terms: Iterable[Node]) -> Node:
    first, *others = terms
    for term in others:
        first = first + term
    return first

"""Solutions of linear systems that do not depend on the round-off of the factors that found them.

Factors come from LAPACK, from SuperLU, and through both from a BLAS that sums in another order on every processor.
Their round-off is removed by refinement: residuals are computed as if in twice the precision, by sums and products
whose rounding errors are kept (T. Ogita, S. M. Rump, S. Oishi, SIAM J. Sci. Comput. 26, 2005), and the solution is the
unevaluated sum of two numbers (J. Demmel et al., ACM Trans. Math. Softw. 32, 2006); both in three times the precision
where that is not enough. Corrections shrink until none of the numbers could be rounded otherwise. What is returned is
then the exact solution of the given system, rounded once, so that any factors that are good enough give the same bits.

Factors are good enough if corrections shrink. Some systems have a few solutions of their homogeneous equations but for
round-off, such as the level of each region that hardly anything connects with the rest. Along these, factors have few
digits or none, while they have ten elsewhere. The last corrections are therefore combined such that as little as
possible would be left for the next one (D. G. Anderson, J. ACM 12, 1965), which removes as many of these directions.

Where corrections do not shrink, for condition numbers near 1e16, the solution is refined until its backward error is
round-off, entry by entry (R. D. Skeel, Math. Comput. 35, 1980), and its last bits depend on the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Term", "refined"]

Floats = NDArray[np.float64]
Solve = Callable[[Floats], Floats]
"""Function of a right side that returns about the solution; arrays of shape (k, rows, columns) both."""

STEPS: Final = 20
"""Largest number of corrections."""
DOUBLE_STEPS: Final = 3
"""Number of corrections in twice the precision, before those in three times the precision."""
PATIENCE: Final = 6
"""Number of corrections from which on each has to be half of the one before."""
PLAIN_STEPS: Final = 6
"""Largest number of corrections in the same precision."""
MEMORY: Final = 4
"""Number of earlier corrections that are combined with the last one."""
DEPENDENT: Final = 1e-12
"""Relative singular value below which corrections are combinations of one another."""
MARGIN: Final = 2.0**10
"""Factor between a correction and what is taken as the largest error that is left."""
FLOOR: Final = 2.0**-98
"""Relative correction below which nothing is left to settle: a number half-way between two is rounded as it is."""
CANCELLED: Final = 2.0**-40
"""Fraction of the rounding error of the first solution below which a number needs three times the precision."""
NOTHING: Final = 2.0**-98
"""The same fraction below which a number is 0: three times the precision leave noise of 2^-107."""
_SPLITTER: Final = 2.0**27 + 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Entries of a matrix that couple an equation in some cells with an unknown in as many others.

    equation, unknown  numbers
    inside             cells of the equation
    there              cells of the unknown
    values             the entries, of the shape of both
    """

    equation: int
    unknown: int
    inside: tuple[slice, ...]
    there: tuple[slice, ...]
    values: Floats

    @property
    def row(self) -> tuple[int | slice, ...]:
        """Index of the equations in arrays of shape (k, rows, columns)."""
        return (self.equation, *self.inside)

    @property
    def column(self) -> tuple[int | slice, ...]:
        """Index of the unknowns."""
        return (self.unknown, *self.there)


def refined(terms: Sequence[Term], right: Floats, solve: Solve) -> Floats:
    """Return the exact solution of a system, rounded once.

    Parameters
    ----------
    terms
        The entries of the matrix; what lies in the same place is added.
    right
        The right side, of shape (k, rows, columns).
    solve
        What solves the system for a right side, with any round-off.

    Returns
    -------
    ndarray
        The solution, of the shape of `right`; NaN if `solve` finds none.
    """
    system = _System(terms, right)
    with np.errstate(all="ignore"):
        found = solve(right)
        if not np.isfinite(found).all():
            return np.full_like(right, np.nan)
        settled = _settled(system, found, solve)
        return _plainly(system, found, solve) if settled is None else settled


def _settled(system: _System, x: Floats, solve: Solve) -> Floats | None:
    """Return the rounded solution; None if corrections do not become small enough."""
    parts = [x, np.zeros_like(x)]
    error, before = 2.0**-53 * system.sizes(x), np.inf
    combined = _Combined()
    for step in range(STEPS):
        if step == DOUBLE_STEPS:
            parts.append(np.zeros_like(x))
        plain = solve(system.missing(parts))
        if not np.isfinite(plain).all():
            return None
        change = combined.of(plain)
        parts = _added(parts, change)
        size = np.maximum(np.abs(change), np.abs(plain))
        error = error if step else np.maximum(error, size)
        unsure = ~_sure(parts, size)
        if step < DOUBLE_STEPS:
            unsure |= (np.abs(parts[0]) <= CANCELLED * error) & (error > 0.0)
        else:
            parts[0] = np.where(np.abs(parts[0]) <= NOTHING * error, 0.0, parts[0])
            unsure &= parts[0] != 0.0
        if not unsure.any():
            return parts[0] + 0.0  # no zero has a sign
        left = float((size / np.where(error > 0.0, error, 1.0))[unsure].max())
        if step >= PATIENCE and left > 0.5 * before:
            return None
        before = left
    return None


class _Combined:
    """The last corrections of a solution, and how the next one follows from them."""

    def __init__(self) -> None:
        self.weights: Floats | None = None
        self.plain: Floats | None = None
        self.change: Floats | None = None
        self.pairs: list[tuple[Floats, Floats]] = []

    def of(self, plain: Floats) -> Floats:
        """Return the change to make where the solution of what is missing is `plain`."""
        found = plain
        if self.plain is None or self.change is None or self.weights is None:
            size = np.abs(plain)
            self.weights = 1.0 / np.where(size > 0.0, size, 1.0)
        else:
            # How a change of the solution changed what was left to correct.
            self.pairs = [*self.pairs[1 - MEMORY :], (self.change, plain - self.plain)]
            columns = np.stack([(self.weights * left).ravel() for _, left in self.pairs], axis=1)
            lengths = np.abs(columns).max(axis=0)
            lengths[lengths == 0.0] = 1.0
            columns /= lengths
            shares = np.linalg.lstsq(columns, (self.weights * plain).ravel(), rcond=DEPENDENT)[0] / lengths
            for share, (change, left) in zip(shares.tolist(), self.pairs, strict=True):
                found = found - share * (change + left)
        self.plain, self.change = plain, found
        return found


def _sure(parts: Sequence[Floats], size: Floats) -> NDArray[np.bool_]:
    """Return which sums keep the first part as their rounded value, given the size of the last correction."""
    high, low, bound = parts[0], _whole(parts[1:]), MARGIN * size
    stays = (high + (low + bound) == high) & (high + (low - bound) == high)
    found: NDArray[np.bool_] = stays | (size <= FLOOR * np.abs(high))
    return found


def _plainly(system: _System, x: Floats, solve: Solve) -> Floats:
    """Return a solution refined while that helps: until its backward error, entry by entry, is round-off."""
    best, error = x, np.inf
    for _ in range(PLAIN_STEPS + 1):
        left = system.missing([x])
        scale = system.sizes(x)
        new = float((np.abs(left) / np.where(scale > 0.0, scale, 1.0)).max(initial=0.0))
        if not new < error:
            return best
        best, done = x, new <= np.finfo(np.float64).eps or new > 0.5 * error
        error = new
        if done:
            return best
        x = x + solve(left)
    return best


class _System:
    """A matrix, with its entries split into halves whose products are exact, and a right side."""

    def __init__(self, terms: Sequence[Term], right: Floats) -> None:
        self.right = right
        self.terms = [(term, *_halves(term.values)) for term in terms]

    def missing(self, parts: Sequence[Floats]) -> Floats:
        """Return the right side minus the matrix times a sum of parts, with as many times the digits; at least two."""
        total = [self.right.copy(), *(np.zeros_like(self.right) for _ in parts[1:] or parts)]
        halves = [_halves(part) for part in parts]
        for term, first, last in self.terms:
            here, there = term.row, term.column
            for part, (above, below) in zip(parts, halves, strict=True):
                product = term.values * part[there]
                _add(total, here, -product)
                _add(total[1:], here, -_product_error(product, (first, last), (above[there], below[there])))
        _settle(total)  # they may cancel
        return _whole(total)

    def sizes(self, x: Floats) -> Floats:
        """Return the absolute matrix times the absolute solution, plus the absolute right side."""
        total = np.abs(self.right)
        for term, _, _ in self.terms:
            total[term.row] += np.abs(term.values * x[term.column])
        return total


def _add(total: list[Floats], here: tuple[int | slice, ...], value: Floats) -> None:
    """Add a value to the sum of several arrays, there."""
    for part in total[:-1]:
        part[here], value = _sum(part[here], value)
    total[-1][here] += value


def _added(parts: Sequence[Floats], change: Floats) -> list[Floats]:
    """Return a sum of several arrays plus another one, the first of them rounded to nearest."""
    found = []
    for part in parts:
        total, change = _sum(part, change)
        found.append(total)
    _settle(found)
    return found


def _settle(parts: list[Floats]) -> None:
    """Let the first of several arrays be their rounded sum, the next one that of the rest, and so on."""
    for _ in parts[1:]:
        for k in range(len(parts) - 2, -1, -1):
            parts[k], parts[k + 1] = _sum(parts[k], parts[k + 1])


def _whole(parts: Sequence[Floats]) -> Floats:
    """Return the sum of several arrays, the last ones first."""
    total = parts[-1]
    for part in parts[-2::-1]:
        total = part + total
    return total


def _sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return a sum and its rounding error (D. E. Knuth)."""
    total = a + b
    moved = total - a
    return total, (a - (total - moved)) + (b - moved)


def _halves(value: Floats) -> tuple[Floats, Floats]:
    """Return a number as the sum of two of 26 digits (G. W. Veltkamp)."""
    scaled = _SPLITTER * value
    high = scaled - (scaled - value)
    return high, value - high


def _product_error(product: Floats, a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> Floats:
    """Return the rounding error of a product of two split numbers (T. J. Dekker)."""
    return ((a[0] * b[0] - product) + a[0] * b[1] + a[1] * b[0]) + a[1] * b[1]

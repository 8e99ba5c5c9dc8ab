"""Gauss-Newton: each iteration solves the linearised problem by conjugate gradients, and searches along the result.

With r the data minus the traces, J the derivative of the traces by the medium and D the units of the variables, a
change D x of the medium makes |r - J D x|^2 + w |x|^2 small, where w is the damping times |J D g|^2 / |g|^2 for the
gradient g. A fixed number of conjugate gradients solves the normal equations; sums are taken in order, so that every
number of ranks and every library has the same bits. Cells at a bound which the gradient would have them cross do not
change. The change is halved until the misfit falls by a sufficient part of what the gradient says, for the change that
remains within the bounds.

Source: J. Nocedal, S. J. Wright, Numerical Optimization, 2nd ed., Springer 2006, chapters 3, 5 and 10.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from minga.models.waves.inversion_search import Search, Values, summed, total
from minga.models.waves.medium import Floats

__all__ = ["gauss_newton"]

HALVINGS: Final = 8
"""Most halvings of a step."""
ENOUGH: Final = 1e-4
"""Part of the decrease along the slope with which a step is accepted."""
SOLVED: Final = 1e-12
"""Squared residual of the normal equations, relative to its first one, below which they count as solved."""


def gauss_newton(search: Search) -> str:
    """Search by Gauss-Newton; return the reason of the end.

    Parameters
    ----------
    search
        The search.

    Returns
    -------
    str
        The reason.
    """
    if search.left <= 0:
        return "all iterations were done before"
    search.precondition()
    values: dict[str, Floats] = {name: search.within(name, each) for name, each in search.values.items()}
    while search.left > 0:
        misfit, slopes = summed(search.ask("gradient", values), search.inversion.wrt)
        search.evaluations += 1
        if not search.misfits:
            search.misfits.append(misfit)
        change = _solved(search, values, slopes)
        if not any(part.any() for part in change.values()):
            return "the gradient is 0"
        found = _along(search, values, change, misfit, slopes)
        if found is None:
            return "the misfit falls no further along the change"
        values, misfit = found
        search.iterated(values, misfit)
    return "all iterations are done"


def _solved(search: Search, values: Values, slopes: Values) -> dict[str, Floats]:
    """Return the change of the medium that solves the linearised problem."""
    inversion = search.inversion
    unit = search.joined({name: search.scale(name) * _free(search, name, values, slopes) for name in inversion.wrt})
    first = -unit * search.joined(slopes)
    rest, direction, x = first, first, np.zeros(len(unit))
    size = start = total(rest * rest)
    damping = 0.0
    for number in range(inversion.inner):
        if size <= SOLVED * start:
            break
        parts = search.ask("normal", (values, direction * unit))
        curvature = sum((square for _, square in parts), 0.0)
        if number == 0:
            damping = inversion.damping * curvature / size
        step = size / (curvature + damping * total(direction * direction))
        x = x + step * direction
        products = [product for product, _ in parts]
        rest = rest - step * (sum(products[1:], products[0]) * unit + damping * direction)
        size, before = total(rest * rest), size
        direction = rest + (size / before) * direction
    return search.split(x * unit)


def _free(search: Search, name: str, values: Values, slopes: Values) -> Floats:
    """Return 0 in cells at a bound where the misfit falls outwards, and 1 in others."""
    low, high = search.inversion.bounds.get(name, (-np.inf, np.inf))
    held = ((values[name] <= low) & (slopes[name] > 0)) | ((values[name] >= high) & (slopes[name] < 0))
    return np.where(held, 0.0, 1.0)


def _along(
    search: Search, values: Values, change: Values, misfit: float, slopes: Values
) -> tuple[dict[str, Floats], float] | None:
    """Return the medium after a step along a change, and its misfit; None if it does not fall."""
    share = 1.0
    for _ in range(HALVINGS):
        tried = {name: search.within(name, values[name] + share * change[name]) for name in values}
        expected = sum(total(slopes[name] * (tried[name] - values[name])) for name in values)
        found = sum(search.ask("misfit", tried), 0.0)
        if found < misfit and found <= misfit + ENOUGH * min(expected, 0.0):
            return tried, found
        share *= 0.5
    return None

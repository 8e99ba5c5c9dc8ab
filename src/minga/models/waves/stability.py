"""Stability limits of the time step, and the sampling of waves by the grid.

With H1 -> -k1 and H2 -> -k2 the equations of a homogeneous medium have the frequencies omega^2 = eigenvalues of

    [[vpx2 k2 + vsz2 k1, (vpz2 - vsz2) k1], [(vpn2 - vsz2) k2, vpz2 k1 + vsz2 k2]]

and leapfrog is stable if dt * omega <= 2 for all waves on the grid (`minga.models.waves.symbols` has their k1 and k2).
With coefficients frozen cell by cell, this is taken as the limit for heterogeneous media; where the density varies, see
`minga.models.waves.density`.

If an eigenvalue is negative or complex, waves grow at any time step: see `grows`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.models.waves.density import largest_sum, reach_of
from minga.models.waves.domain import Domain
from minga.models.waves.medium import HEAVIEST, LIGHTEST, Floats, Sampler, sampled_boxes
from minga.models.waves.symbols import Corners, corners
from minga.space.box import Box

__all__ = [
    "LIMITS",
    "Extremes",
    "Sampling",
    "check_sigma",
    "extremes_of",
    "frequencies2",
    "grows",
    "largest_frequency2",
    "limit_ratio",
    "phase_velocities",
    "sampling",
]


LIMITS: Final = {2: 1.0, 4: math.sqrt(3.0)}
"""Largest stable time step by order in time, relative to that of second order: dt2 omega2 is at most 4 or 12."""
_DAMPED: Final = math.sqrt(1.5)
"""The same for fourth order with matched layers or attenuation: dt2 omega2 is at most 6."""
_ROUNDING = 1e-9
"""Tolerance of inequalities: epsilon and delta are rounded numbers."""
_ABOVE = 1.0 + 1e-12
"""Factor of bounds that are interpolated, which must not be below what they bound by a rounding."""
_TOGETHER = 1 << 14
"""Number of cells evaluated exactly at a time, such that intermediate results fit in a cache."""


def frequencies2(k1: Any, k2: Any, vp: Any, epsilon: Any, delta: Any, sigma: float) -> tuple[Any, Any]:
    """Return omega^2 of P and SV waves in units of vp^2 k; waves with negative values grow. NumPy arrays or numbers."""
    vpz2 = np.square(vp)
    vpx2, vpn2 = vpz2 * (1 + 2 * np.asarray(epsilon)), vpz2 * (1 + 2 * np.asarray(delta))
    vsz2 = vpz2 * np.abs(np.asarray(epsilon) - delta) / sigma
    a, b, c, d = vpx2 * k2 + vsz2 * k1, (vpz2 - vsz2) * k1, (vpn2 - vsz2) * k2, vpz2 * k1 + vsz2 * k2
    mean, root = (a + d) / 2, np.sqrt(np.maximum(np.square((a - d) / 2) + b * c, 0.0))
    return mean + root, mean - root


def grows(epsilon: Any, delta: Any, sigma: float) -> Any:
    """Return whether a homogeneous medium has growing waves: a negative or complex omega^2.

    The result follows from the determinant and the discriminant of the matrix above, for all non-negative k1 and k2.
    Media with epsilon >= delta >= 0 are stable if vsz <= vpz; those with epsilon < delta need a sigma that is neither
    small nor above 1 + delta + sqrt(1 + 2 epsilon), which is about 2.
    """
    x, n = 1 + 2 * np.asarray(epsilon, np.float64), 1 + 2 * np.asarray(delta, np.float64)
    s = np.abs(x - n) / (2 * sigma)
    rest, along, mixed = x - s, 1 - s, n - s
    complex_ = along * (2 * mixed - rest) < -np.abs(along * rest) - _ROUNDING
    negative = x - n + s * (1 + n) < -2 * s * np.sqrt(x) - _ROUNDING
    return complex_ | negative


def largest_frequency2(ends: Corners, epsilon: Any, delta: Any, sigma: float) -> Any:
    """Return the largest omega^2 / vpz2 of waves on a grid, or an upper bound, for each epsilon and delta.

    With s = vsz2 / vpz2 above neither 1 nor 1 + 2 delta, and delta not above epsilon, all real k1 and k2 have real
    frequencies, so the largest one is convex in them (L. Garding, 1959) and is found at a corner of the region of k1
    and k2. With a larger delta it is bounded by the row sums of the matrix, whose entries are positive, after
    multiplying its second column and dividing its second row by some t; otherwise by the trace.
    """
    x, n = 1 + 2 * np.asarray(epsilon, np.float64), 1 + 2 * np.asarray(delta, np.float64)
    s = np.abs(x - n) / (2 * sigma)
    k1, k2 = (part.reshape(-1, *(1 for _ in x.shape)) for part in np.array(ends).T)
    convex = frequencies2(k1, k2, 1.0, epsilon, delta, sigma)[0].max(axis=0)
    trace = ((x + s) * k2 + (1 + s) * k1).max(axis=0)
    balanced = np.where((n > x) & (x > s), (n - s) / np.where(x > s, x - s, 1.0), 1.0)
    rows = trace
    for t in (1.0, np.sqrt(balanced), balanced):
        first, second = x * k2 + (s + t * (1 - s)) * k1, ((n - s) / t + s) * k2 + k1
        rows = np.minimum(rows, np.maximum(first, second).max(axis=0))
    return np.where((s <= 1) & (s <= n), np.where(n <= x, convex, rows), trace)


def _largest(ends: Corners, epsilon: Floats, delta: Floats, sigma: float, factor: Any) -> float:
    """Return the largest `largest_frequency2` times a factor; exact evaluation only where a quick bound requires it."""
    k1, k2 = np.array(ends).T
    across = 1 + 2 * np.maximum(epsilon, delta)
    steps = np.linspace(0, float(across.max()), 33)
    rows = np.interp(across, steps, (k1 + steps[:, None] * k2).max(axis=1))  # upper bounds: these are convex in steps
    s = np.abs(epsilon - delta) / sigma
    bound = np.where(s <= np.minimum(1.0, 1 + 2 * delta), rows * _ABOVE, math.inf) * factor
    first = np.unravel_index(int(np.argmax(bound)), bound.shape)
    factors = np.broadcast_to(factor, bound.shape)
    found = float(largest_frequency2(ends, epsilon[first], delta[first], sigma) * factors[first])
    near = np.flatnonzero(bound > found)
    for some in np.split(near, range(_TOGETHER, len(near), _TOGETHER)):
        if len(some):
            closely = largest_frequency2(ends, epsilon.flat[some], delta.flat[some], sigma) * factors.flat[some]
            found = max(found, float(closely.max()))
    return found


def phase_velocities(angle: Any, vp: float, epsilon: float, delta: float, sigma: float) -> tuple[Any, Any]:
    """Return the phase velocities of P and SV at an angle between the wave vector and the symmetry axis, m/s."""
    p2, s2 = frequencies2(np.square(portable.cos(angle)), np.square(portable.sin(angle)), vp, epsilon, delta, sigma)
    return np.sqrt(p2), np.sqrt(np.maximum(s2, 0.0))


@dataclass(frozen=True, slots=True)
class Extremes:
    """Results of an inspection of the whole medium.

    Attributes
    ----------
    dt_limit
        Largest stable time step, s.
    slowest_p
        Smallest P velocity, m/s.
    fastest_p
        Largest P velocity, m/s.
    largest_vp
        Largest P velocity along the axis, m/s.
    slowest_sv
        Smallest SV velocity along the axis where there are SV waves, m/s; None if there are none.
    delta_above
        Whether delta exceeds epsilon somewhere.
    """

    dt_limit: float
    slowest_p: float
    fastest_p: float
    largest_vp: float
    slowest_sv: float | None
    delta_above: bool = False


@dataclass(frozen=True, slots=True)
class Sampling:
    """Grid points per shortest wavelength, at the peak frequency of the sources and at the highest frequency."""

    p_peak: float
    p_highest: float
    sv_peak: float | None
    sv_highest: float | None


def sampling(extremes: Extremes, spacing: Sequence[float], peak: float, highest: float) -> Sampling:
    """Return the points per wavelength of P and SV; frequencies in Hz."""
    widest = max(spacing)

    def points(velocity: float | None, frequency: float) -> Any:
        return None if velocity is None else velocity / (frequency * widest)

    slow, shear = extremes.slowest_p, extremes.slowest_sv
    return Sampling(points(slow, peak), points(slow, highest), points(shear, peak), points(shear, highest))


def check_sigma(sigma: float) -> None:
    """Raise CaseError for a sigma that is not a positive number (infinity is allowed)."""
    if isinstance(sigma, bool) or not isinstance(sigma, int | float) or not sigma > 0:
        raise CaseError(
            f"sigma is {sigma!r}",
            key="fletcher.sigma",
            remedy="give a positive number: 0.75, or inf for a medium without SV waves",
        )


def extremes_of(
    sampler: Sampler,
    spacing: Sequence[float],
    order: int,
    sigma: float,
    *,
    divergence: bool = False,
    scrambled: bool = False,
    sample: bool = False,
    domain: Domain | None = None,
) -> Extremes:
    """Inspect every cell of a medium or, with `sample`, a number of cells that does not grow with the grid.

    Parameters
    ----------
    sampler
        Values of the medium.
    spacing
        Distances between cells, m.
    order
        Order of the differences in space.
    sigma
        Parameter of the shear term; infinity: no shear term.
    divergence
        Whether H1 is composed of first derivatives alone, which do not see the shortest wave (tilted axes).
    scrambled
        Whether each velocity may occur together with any epsilon and delta, as in random layers.
    sample
        Whether to inspect a sample only.
    domain
        Cells of the model, which a density that varies needs.

    Raises
    ------
    CaseError
        If a velocity or a density is not positive and finite, if 1 + 2 epsilon or 1 + 2 delta is not positive, or if
        epsilon, delta and sigma let waves grow without limit (`grows`).
    """
    medium = sampler.medium
    ends = corners(order, tuple(spacing), medium.isotropic or medium.vertical, divergence)
    largest2, slow, fast, shear, top, above = 0.0, math.inf, 0.0, math.inf, 0.0, False
    least = 4 * reach_of(order) if medium.has_density else 1
    boxes = (_first_cell(sampler.shape),) if medium.uniform else sampled_boxes(sampler.shape, sample, least)
    for box in boxes:
        inside = box.shift(sampler.layers)
        vp, epsilon, delta, theta, phi = (
            sampler.values(name, inside) for name in ("vp", "epsilon", "delta", "theta", "phi")
        )
        _check(box, vp, epsilon, delta, sigma)
        for name, value in (("theta", theta), ("phi", phi)):
            _refuse(box, name, value, ~np.isfinite(value), "an angle", "give angles in radians")
        _check_density(box, sampler.values("rho", inside))
        if medium.has_density:
            assert domain is not None
            found2 = largest_sum(sampler, domain, box, order, scrambled=scrambled)
        else:
            found2 = _largest(ends, epsilon, delta, sigma, 1.0 if scrambled else np.square(vp))
        largest2 = max(largest2, found2)
        across = vp * np.sqrt(1 + 2 * epsilon)
        top = max(top, float(vp.max()))
        above |= bool((delta > epsilon).any())
        slow, fast = min(slow, float(np.minimum(vp, across).min())), max(fast, float(np.maximum(vp, across).max()))
        vsz = vp * np.sqrt(np.abs(epsilon - delta) / sigma)
        if (vsz > 0).any():
            shear = min(shear, float(vsz[vsz > 0].min()))
    largest2 *= top * top if scrambled else 1.0
    return Extremes(2 / math.sqrt(largest2), slow, fast, top, None if math.isinf(shear) else shear, above)


def _check_density(box: Box, rho: Floats) -> None:
    bad = ~((rho >= LIGHTEST) & (rho <= HEAVIEST))
    _refuse(box, "rho", rho, bad, "a density", f"densities are {LIGHTEST:g} to {HEAVIEST:g} kg/m3")


def _first_cell(shape: Sequence[int]) -> Box:
    return Box((0,) * len(shape), (1,) * len(shape))


def limit_ratio(time_order: int, *, damped: bool) -> float:
    """Return the largest stable time step relative to that of second order.

    A step of fourth order turns a wave of the exact frequency omega by an angle a with 2 - 2 cos(a) = x - x2 / 12,
    where x = dt2 omega2. Where x is above 6, the angle falls as the wavelength shortens: group and phase velocity are
    opposite, and layers and attenuation, which weaken other waves, let these grow.

    Parameters
    ----------
    time_order
        Order of the steps in time: 2 or 4.
    damped
        Whether there are matched layers or attenuation.

    Returns
    -------
    float
        The ratio.
    """
    return _DAMPED if time_order == 4 and damped else LIMITS[time_order]


def _check(box: Box, vp: Floats, epsilon: Floats, delta: Floats, sigma: float) -> None:
    _refuse(box, "vp", vp, ~(np.isfinite(vp) & (vp > 0)), "a velocity", "velocities are positive numbers, in m/s")
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        bad = ~(np.isfinite(value) & (value > -0.5))
        _refuse(box, name, value, bad, "a Thomsen parameter", "it is finite and larger than -0.5")
    bad = grows(epsilon, delta, sigma)
    if bad.any():
        at, cell = _first(box, bad)
        e, d = float(epsilon[at]), float(delta[at])
        said = "infinite" if math.isinf(sigma) else f"{sigma:g}"
        raise CaseError(
            f"epsilon is {e:g} and delta {d:g} at cell {cell}: with sigma {said} waves grow there without limit"
            + (", as delta is larger than epsilon" if d > e else ""),
            key="fletcher.sigma",
            remedy=f"give a sigma {_calm(e, d)}, or other parameters",
        )


def _calm(epsilon: float, delta: float) -> str:
    """Return a range of sigma with which a medium is stable, in words; smaller values may be stable as well."""
    least = abs(epsilon - delta) / min(1.0, 1 + 2 * epsilon, 1 + 2 * delta)
    above = math.ceil(100 * least) / 100
    if epsilon >= delta:
        return f"of {above:g} or more"
    return f"between {above:g} and {math.floor(100 * (1 + delta + math.sqrt(1 + 2 * epsilon))) / 100:g}"


def _refuse(box: Box, name: str, values: Floats, bad: NDArray[np.bool_], what: str, remedy: str) -> None:
    if bad.any():
        at, cell = _first(box, bad)
        raise CaseError(
            f"{name} is {float(values[at]):g} at cell {cell}: not {what}",
            key=f"fletcher.medium.{name}",
            remedy=remedy,
        )


def _first(box: Box, bad: NDArray[np.bool_]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the indices of the first marked cell, in the box and in the grid."""
    at = tuple(map(int, np.unravel_index(int(np.argmax(bad)), bad.shape)))
    return at, tuple(index + low for index, low in zip(at, box.lo, strict=True))

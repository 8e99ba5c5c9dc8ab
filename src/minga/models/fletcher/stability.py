"""Which time steps are stable, and how finely a grid samples the waves.

With H1 -> -k1 and H2 -> -k2 the equations of a homogeneous medium have the frequencies omega^2 = eigenvalues of

    [[vpx2 k2 + vsz2 k1, (vpz2 - vsz2) k1], [(vpn2 - vsz2) k2, vpz2 k1 + vsz2 k2]]

and leapfrog is stable while dt * omega <= 2 for all waves on the grid. The largest is that of the wave which alternates
from cell to cell along all axes, where first derivatives vanish: k1 = sum of n_a^2 s / h_a^2 and k1 + k2 = sum of
s / h_a^2, with s from `minga.models.fletcher.stencils.nyquist`. With the coefficients frozen cell by cell this is taken
as the limit of media that vary, which holds in practice; no proof is known where the axis turns quickly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.fletcher.medium import Floats, Sampler, axis_vector, slabs
from minga.models.fletcher.stencils import nyquist
from minga.space.box import Box

__all__ = [
    "Extremes",
    "Sampling",
    "check_sigma",
    "check_step",
    "frequencies2",
    "phase_velocities",
    "sampling",
    "survey",
]


def frequencies2(k1: Any, k2: Any, vp: Any, epsilon: Any, delta: Any, sigma: float) -> tuple[Any, Any]:
    """omega^2 of P and of SV, in the units of vp^2 k; negative ones grow. NumPy arrays or numbers."""
    vpz2 = np.square(vp)
    vpx2, vpn2 = vpz2 * (1 + 2 * np.asarray(epsilon)), vpz2 * (1 + 2 * np.asarray(delta))
    vsz2 = vpz2 * np.abs(np.asarray(epsilon) - delta) / sigma
    a, b, c, d = vpx2 * k2 + vsz2 * k1, (vpz2 - vsz2) * k1, (vpn2 - vsz2) * k2, vpz2 * k1 + vsz2 * k2
    mean, root = (a + d) / 2, np.sqrt(np.maximum(((a - d) / 2) ** 2 + b * c, 0.0))
    return mean + root, mean - root


def phase_velocities(angle: Any, vp: float, epsilon: float, delta: float, sigma: float) -> tuple[Any, Any]:
    """Phase velocities of P and SV at an angle between the wave vector and the axis of symmetry, m/s."""
    p2, s2 = frequencies2(np.cos(angle) ** 2, np.sin(angle) ** 2, vp, epsilon, delta, sigma)
    return np.sqrt(p2), np.sqrt(np.maximum(s2, 0.0))


@dataclass(frozen=True, slots=True)
class Extremes:
    """What a look at the whole medium found.

    dt_limit     the largest stable time step, s
    slowest_p    least P velocity, m/s
    fastest_p    largest P velocity, m/s
    largest_vp   largest P velocity along the axis, m/s
    slowest_sv   least SV velocity along the axis where there are SV waves, m/s; None where there are none
    delta_above  whether delta is above epsilon somewhere
    """

    dt_limit: float
    slowest_p: float
    fastest_p: float
    largest_vp: float
    slowest_sv: float | None
    delta_above: bool = False


@dataclass(frozen=True, slots=True)
class Sampling:
    """Grid points in the shortest wave length: at the peak frequency of the sources, and at the highest."""

    p_peak: float
    p_highest: float
    sv_peak: float | None
    sv_highest: float | None


def sampling(extremes: Extremes, spacing: Sequence[float], peak: float, highest: float) -> Sampling:
    """Points per wave length of P and SV. Frequencies in Hz."""
    widest = max(spacing)

    def points(velocity: float | None, frequency: float) -> Any:
        return None if velocity is None else velocity / (frequency * widest)

    slow, shear = extremes.slowest_p, extremes.slowest_sv
    return Sampling(points(slow, peak), points(slow, highest), points(shear, peak), points(shear, highest))


def check_sigma(sigma: float) -> None:
    """CaseError for a sigma that is no positive number (infinity is one)."""
    if isinstance(sigma, bool) or not isinstance(sigma, int | float) or not sigma > 0:
        raise CaseError(
            f"sigma is {sigma!r}",
            key="fletcher.sigma",
            remedy="give a positive number: 0.75, or inf for a medium without SV waves",
        )


def survey(
    sampler: Sampler,
    spacing: Sequence[float],
    order: int,
    sigma: float,
    *,
    divergence: bool = False,
    scrambled: bool = False,
) -> Extremes:
    """Look at every cell of a medium.

    divergence  whether H1 is made of first derivatives alone, which do not see the shortest wave
    scrambled   whether each velocity may stand beside any epsilon and delta, as in random layers

    Raises CaseError where a velocity is not positive and finite, where 1 + 2 epsilon or 1 + 2 delta is not positive,
    and where sigma is infinite and epsilon < delta: such waves grow without limit.
    """
    seen = nyquist(order) / np.square(np.asarray(spacing, np.float64))
    largest2, unit2, slow, fast, shear, top, above = 0.0, 0.0, math.inf, 0.0, math.inf, 0.0, False
    for box in slabs(sampler.shape) if not _uniform(sampler) else (Box((0,) * 3, (1,) * 3),):
        inside = box.shift(sampler.layers)
        vp, epsilon, delta, theta, phi = (
            sampler.values(name, inside) for name in ("vp", "epsilon", "delta", "theta", "phi")
        )
        _check(box, vp, epsilon, delta, sigma)
        n = axis_vector(theta, phi)
        for name, value in (("theta", theta), ("phi", phi)):
            _refuse(box, name, value, ~np.isfinite(value), "an angle", "give angles in radians")
        along = 0.0 if divergence else sum(s * np.square(a) for s, a in zip(seen, n, strict=True))
        by_vp2 = frequencies2(along, seen.sum() - along, 1.0, epsilon, delta, sigma)[0]
        # With a negative parameter the largest may be that of another wave: no P wave is faster than this.
        bound = (1 + 2 * np.maximum(0, np.maximum(epsilon, delta))) * seen.sum()
        by_vp2 = np.where(np.minimum(epsilon, delta) < 0, np.maximum(bound, by_vp2), by_vp2)
        largest2, unit2 = max(largest2, float((by_vp2 * vp**2).max())), max(unit2, float(by_vp2.max()))
        across = vp * np.sqrt(1 + 2 * epsilon)
        top = max(top, float(vp.max()))
        above |= bool((delta > epsilon).any())
        slow, fast = min(slow, float(np.minimum(vp, across).min())), max(fast, float(np.maximum(vp, across).max()))
        vsz = vp * np.sqrt(np.abs(epsilon - delta) / sigma)
        if (vsz > 0).any():
            shear = min(shear, float(vsz[vsz > 0].min()))
    largest2 = unit2 * top**2 if scrambled else largest2
    return Extremes(2 / math.sqrt(largest2), slow, fast, top, None if math.isinf(shear) else shear, above)


def check_step(dt: float, limit: float) -> None:
    """CaseError for a time step that is not positive, or above the limit."""
    if isinstance(dt, bool) or not isinstance(dt, int | float) or not (dt > 0 and math.isfinite(dt)):
        raise CaseError(f"the time step is {dt!r}", key="fletcher.dt", remedy="give a positive number of seconds")
    if dt > limit:
        raise CaseError(
            f"the time step of {dt:.4g} s is above the limit of stability, {limit:.4g} s",
            key="fletcher.dt",
            remedy=f"use dt = {_below(limit):.3g} or less, or cells that are larger",
        )


def _below(limit: float) -> float:
    """About nine tenths of a limit, with two digits."""
    unit = 10.0 ** (math.floor(math.log10(0.9 * limit)) - 1)
    return math.floor(0.9 * limit / unit) * unit


def _uniform(sampler: Sampler) -> bool:
    return all(sampler.number(name) is not None for name in ("vp", "epsilon", "delta", "theta", "phi"))


def _check(box: Box, vp: Floats, epsilon: Floats, delta: Floats, sigma: float) -> None:
    _refuse(box, "vp", vp, ~(np.isfinite(vp) & (vp > 0)), "a velocity", "velocities are positive numbers, in m/s")
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        bad = ~(np.isfinite(value) & (value > -0.5))
        _refuse(box, name, value, bad, "a parameter of Thomsen's", "it is finite and larger than -0.5")
    if math.isinf(sigma):
        _refuse(
            box, "delta", delta, epsilon < delta, "larger than epsilon there",
            "without SV waves (sigma infinite) such a medium makes waves grow without limit: give sigma = 0.75",
        )  # fmt: skip


def _refuse(box: Box, name: str, values: Floats, bad: NDArray[np.bool_], what: str, remedy: str) -> None:
    if bad.any():
        at = np.unravel_index(int(np.argmax(bad)), bad.shape)
        cell = tuple(int(i) + lo for i, lo in zip(at, box.lo, strict=True))
        raise CaseError(
            f"{name} is {float(values[at]):g} at cell {cell}: not {what}"
            if not what.startswith("larger")
            else f"{name} is {float(values[at]):g} at cell {cell}: {what}",
            key=f"fletcher.medium.{name}",
            remedy=remedy,
        )

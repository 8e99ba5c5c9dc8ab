"""Attenuation with nearly constant Q: a generalised standard linear solid.

With the right side w of the equations for the relaxed modulus (that of frequency 0), and L mechanisms with the
relaxation times t_l and one strength tau,

    p_tt = (1 + L tau) w - sum of r_l,        r_l,t = (tau w - r_l) / t_l

which is the modulus M(f) = M_relaxed (1 + tau sum of i f / (f_l + i f)) with f_l = 1 / (2 pi t_l), and 1 / Q the ratio
of its imaginary and its real part. Sources are within w, so that p solves lap p + (2 pi f)^2 rho / M(f) p = -s. The
memory variables r_l lie half a step between the waves; a step is of second order, or of fourth order
(`minga.models.waves.attenuation_fourth`). A uniform Q applies to all moduli of an anisotropic medium alike.

Source: J. O. Blanch, J. O. A. Robertsson, W. W. Symes, "Modeling of a constant Q: methodology and algorithm for an
efficient and optimally inexpensive viscoelastic technique", Geophysics 60(1), 1995; here tau is the best fit of 1 / Q
in the sense of least squares, not its first approximation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from minga.compile import portable
from minga.errors import CaseError
from minga.lang.expr import flushed
from minga.lang.kernel import Kernel
from minga.models.waves.domain import Domain
from minga.models.waves.medium import Floats, Quantity, Sampler, slabs
from minga.space.boundary import fixed
from minga.space.box import Box
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["Attenuation", "Relaxation", "relaxation_kernel", "relaxation_of", "unrelaxed_ratio"]

_SAMPLES: Final = 65
"""Frequencies of a band at which 1 / Q is fitted, equally spaced in their logarithm."""
_ITERATIONS: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Attenuation:
    """Attenuation of waves.

    Parameters
    ----------
    q
        Quality factor, of elastic waves that of P waves: a number, an array of the shape of the model, or a function of
        a Box.
    band
        Lowest and highest frequency, Hz, between which Q is nearly constant.
    reference
        Frequency, Hz, at which waves have the phase velocity that the medium gives; None: the geometric mean of the
        band.
    frequencies
        Frequencies of the mechanisms, Hz; None: two near the ends of the band, which keep a Q of 50 within 4 % in a
        band of a decade.
    qs
        Quality factor of the S waves of elastic waves; None: that of P waves. Other waves have none.
    """

    q: Quantity
    band: tuple[float, float] = (5.0, 50.0)
    reference: float | None = None
    frequencies: Sequence[float] | None = None
    qs: Quantity | None = None

    def __post_init__(self) -> None:
        low, high = self.band
        given = [low, high, *self.mechanisms, self.at]
        if not (all(math.isfinite(f) and f > 0 for f in given) and low < high):
            raise CaseError(
                f"attenuation has the band {self.band}, the mechanisms {self.mechanisms} and the reference {self.at}",
                key="fletcher.attenuation",
                remedy="give positive frequencies in Hz, the lower end of the band first",
            )

    @property
    def mechanisms(self) -> tuple[float, ...]:
        """Frequencies of the mechanisms, Hz."""
        low, high = self.band
        return (1.172 * low, 0.977 * high) if self.frequencies is None else tuple(map(float, self.frequencies))

    @property
    def at(self) -> float:
        """Frequency at which the medium's velocities hold, Hz."""
        low, high = self.band
        return math.sqrt(low * high) if self.reference is None else float(self.reference)

    @property
    def shear(self) -> Quantity:
        """Quality factor of S waves."""
        return self.q if self.qs is None else self.qs

    @property
    def said(self) -> dict[str, object]:
        """Its parameters, for the description of a model; a Q that varies is named so."""
        qs = {} if self.qs is None else {"qs": _in_words(self.qs)}
        return {
            "q": _in_words(self.q),
            **qs,
            "band": list(self.band),
            "reference": self.at,
            "frequencies": list(self.mechanisms),
        }

    def checked(self, q: Floats) -> Floats:
        """Return values of Q; raise CaseError if one of them is not positive.

        Parameters
        ----------
        q
            The values.

        Returns
        -------
        ndarray
            The values, f8.
        """
        least = float(np.min(q, initial=math.inf))
        if not least >= 2.0:  # not a number, too
            raise CaseError(
                f"the least Q is {least:g}", key="fletcher.attenuation.q", remedy="give 2 or more; rocks have 10 to 300"
            )
        return q

    def strength(self, q: Floats) -> Floats:
        """Return tau, the strength of each mechanism, by least squares of 1 / Q over the band.

        Parameters
        ----------
        q
            Quality factors.

        Returns
        -------
        ndarray
            Strengths of the same shape, f8.
        """
        parts = self._parts()
        wanted = 1.0 / np.asarray(q, np.float64)
        tau = np.zeros_like(wanted)
        for _ in range(_ITERATIONS):  # Gauss-Newton for 1 / Q = tau b / (1 + tau a)
            slope, rest = np.zeros_like(tau), np.zeros_like(tau)
            for a, b in parts:
                whole = 1.0 + tau * a
                derivative = b / (whole * whole)
                slope = slope + derivative * derivative
                rest = rest + derivative * (wanted - tau * b / whole)
            tau = tau + rest / slope
        return np.asarray(tau)

    def slopes(self, tau: Floats, q: Floats) -> tuple[Floats, Floats]:
        """Return the derivatives of tau and of `relaxed` by 1 / Q.

        Parameters
        ----------
        tau
            Strengths of the mechanisms, those of q.
        q
            Quality factors.

        Returns
        -------
        tuple of ndarray
            The derivatives, f8 of the same shape.
        """
        wanted = 1.0 / np.asarray(q, np.float64)
        above, below = np.zeros_like(wanted), np.zeros_like(wanted)
        for a, b in self._parts():  # tau makes the sum of g' (1 / Q - g) zero, with g = tau b / (1 + tau a)
            whole = 1.0 + tau * a
            first, second = b / (whole * whole), -2.0 * a * b / (whole * whole * whole)
            above = above + first
            below = below + first * first - second * (wanted - tau * b / whole)
        a, b = self._sums(self.at)
        real, imaginary = 1.0 + tau * a, tau * b
        size = np.sqrt(real * real + imaginary * imaginary)
        change = (real * a + imaginary * b) / size
        slope = ((change + a) * size - 2.0 * (size + real) * change) / (2.0 * size * size * size)
        return above / below, slope * above / below

    def _parts(self) -> list[tuple[float, float]]:
        """Return the sums of the mechanisms at frequencies of the band."""
        low, high = self.band
        steps = np.linspace(0.0, 1.0, _SAMPLES)
        return [self._sums(float(f)) for f in low * portable.exp(steps * portable.log(high / low))]

    def quality(self, tau: Floats, frequency: float) -> Floats:
        """Return Q at a frequency.

        Parameters
        ----------
        tau
            Strengths of the mechanisms.
        frequency
            The frequency, Hz.

        Returns
        -------
        ndarray
            Quality factors of the same shape.
        """
        a, b = self._sums(frequency)
        return (1.0 + tau * a) / (tau * b)

    def relaxed(self, tau: Floats) -> Floats:
        """Return the squared relaxed velocity divided by that of the reference frequency.

        Parameters
        ----------
        tau
            Strengths of the mechanisms.

        Returns
        -------
        ndarray
            Ratios below 1, of the same shape.
        """
        a, b = self._sums(self.at)
        real, imaginary = 1.0 + tau * a, tau * b
        size = np.sqrt(real * real + imaginary * imaginary)
        return np.asarray((size + real) / (2.0 * size * size))  # the square of Re(1 / sqrt(M))

    def _sums(self, frequency: float) -> tuple[float, float]:
        """Return the real and the imaginary part of the sum of i f / (f_l + i f)."""
        ratios = [frequency / f for f in self.mechanisms]
        return sum(x * x / (1.0 + x * x) for x in ratios), sum(x / (1.0 + x * x) for x in ratios)

    def halves(self, dt: float) -> tuple[float, ...]:
        """Return dt / (2 t_l) of each mechanism.

        Parameters
        ----------
        dt
            Seconds of a step.

        Returns
        -------
        tuple of float
            One number for each mechanism.
        """
        return tuple(math.pi * f * dt for f in self.mechanisms)


def _in_words(q: Quantity) -> object:
    """Return a quality factor, or that it varies."""
    return "varies" if callable(q) or np.ndim(q) else float(q)


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """Attenuation of a model on its grid.

    Parameters
    ----------
    attenuation
        The attenuation.
    sampler
        Values of Q on the grid.
    uniform
        The strength of the mechanisms; None if it varies.
    fastest
        Largest ratio of the squared unrelaxed velocity, that of the highest frequencies, to the one of the medium.
    """

    attenuation: Attenuation
    sampler: Sampler
    uniform: float | None
    fastest: float

    def strength(self, box: Box) -> Floats:
        """Return tau on a box of the grid.

        Parameters
        ----------
        box
            The box.

        Returns
        -------
        ndarray
            Strengths, f8 of the box's shape.
        """
        return self.attenuation.strength(self.attenuation.checked(self.sampler.values("q", box)))

    def relaxed(self, box: Box) -> Floats:
        """Return the squared relaxed velocity divided by that of the medium, on a box of the grid.

        Parameters
        ----------
        box
            The box.

        Returns
        -------
        ndarray
            Ratios, f8 of the box's shape.
        """
        return self.attenuation.relaxed(self.strength(box))

    def fields(
        self, names: Sequence[str], grid: Grid, dtype: str, time_order: int
    ) -> tuple[tuple[Field, ...], Field | None]:
        """Return the memories of some waves, those of one wave after the other, and the field of tau if it varies.

        Steps of fourth order in time have three times as many (`minga.models.waves.attenuation_fourth`): first all that
        the increments relax, then both of the corrections.

        Parameters
        ----------
        names
            Names of the waves.
        grid
            The grid.
        dtype
            "f4" or "f8".
        time_order
            Order of the steps in time: 2 or 4.

        Returns
        -------
        tuple
            The memories, and the strength or None.
        """
        count = len(self.attenuation.mechanisms)
        memories = tuple(
            Field(f"{name}_{kind}_{k}", grid, dtype, boundary=fixed(0.0), description=f"relaxation {k} of {name}")
            for kind in ("memory", "correction_memory", "correction_second_memory")[: time_order - 1]
            for name in names
            for k in range(count)
        )
        if self.uniform is not None:
            return memories, None
        return memories, Field("tau", grid, dtype, boundary=fixed(0.0), description="strength of the relaxation")


def relaxation_of(attenuation: Attenuation, domain: Domain) -> Relaxation:
    """Return the attenuation of a model on its grid; raise CaseError for invalid values of Q."""
    if attenuation.qs is not None:
        raise CaseError(
            "qs is the Q of S waves, which these waves do not have",
            key="fletcher.attenuation.qs",
            remedy="leave it out",
        )
    sampler = Sampler(attenuation, domain.shape, domain.low)
    given = attenuation.q
    if not callable(given) and np.shape(given) not in ((), domain.shape):
        raise CaseError(
            f"q is an array of shape {np.shape(given)}; the model has shape {domain.shape}",
            key="fletcher.attenuation.q",
            remedy="give a number, an array of one number a cell, or a function of a Box",
        )
    number = sampler.number("q")
    least = math.inf
    for box in slabs(domain.shape) if number is None else ():
        least = min(least, float(attenuation.checked(sampler.values("q", box.shift(domain.low))).min()))
    tau = attenuation.strength(attenuation.checked(np.array(least if number is None else number)))
    fastest = float(attenuation.relaxed(tau) * (1.0 + len(attenuation.mechanisms) * tau))
    return Relaxation(attenuation, sampler, None if number is None else float(tau), fastest)


def unrelaxed_ratio(relaxation: Relaxation | None) -> float:
    """Return by how much waves of the highest frequencies are faster than the medium says, at most; 1 without any."""
    return 1.0 if relaxation is None else math.sqrt(relaxation.fastest)


def relaxation_kernel(halves: Sequence[float], tau: float | None) -> Kernel:
    """Return the rest of a step: waves, previous waves, increments w, memories of all waves, and tau if it varies.

    `halves` are dt / (2 t_l); the memories are in the order of the waves, and for each of them of the mechanisms.
    """

    def relax(
        waves: Sequence[Any], before: Sequence[Any], increments: Sequence[Any], memories: Sequence[Any], strength: Any
    ) -> None:
        for number, (now, old, increment) in enumerate(zip(waves, before, increments, strict=True)):
            here = (0,) * len(now.axes)
            pulled = strength * increment[here]
            right = increment[here]
            own = memories[number * len(halves) : (number + 1) * len(halves)]
            for half, memory in zip(halves, own, strict=True):
                after = ((1.0 - half) * memory[here] + 2.0 * half * pulled) * (1.0 / (1.0 + half))
                right = right + (pulled - 0.5 * (memory[here] + after))
                memory[here] = flushed(after)
            old[here] = flushed(2.0 * now[here] - old[here] + right)

    def waves_relaxation(waves: Any, before: Any, increments: Any, memories: Any, tau: Any) -> None:
        relax(waves, before, increments, memories, tau[(0,) * len(tau.axes)])

    def waves_relaxation_constant(waves: Any, before: Any, increments: Any, memories: Any) -> None:
        relax(waves, before, increments, memories, tau)

    return Kernel(waves_relaxation if tau is None else waves_relaxation_constant)

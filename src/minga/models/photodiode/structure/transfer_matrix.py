"""Coherent light in a stack of plane films at normal incidence: reflection, transmission, and the power at any depth.

In a film with the index N = n + ik, the field is a forward and a backward wave, E = F exp(i q x) + B exp(-i q x) with
q = 2 pi N/wavelength. At an interface from film a to film b, r = (Na - Nb)/(Na + Nb) and t = 2 Na/(Na + Nb). The ratios
B/F are found from the last interface to the first and the amplitudes F from the first to the last (Rouard's recursion),
so that only decaying exponentials occur. The power that flows at a depth is the real part of the Poynting vector,

    S = [n (|F|^2 - |B|^2) + 2 k Im(B F*)]/n0,

relative to the incident power in a medium with the index n0. It is continuous, and its decrease across any part of a
film is exactly what that part absorbs.

Complex numbers are pairs of real ones, whose products have the same bits on every processor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable

__all__ = ["Film", "Waves", "waves_in"]

Floats = NDArray[np.float64]
Complex = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Film:
    """A plane film with the refractive index n + ik and a thickness in cm."""

    n: float
    k: float
    thickness: float


@dataclass(frozen=True, slots=True, eq=False)
class Waves:
    """Waves in a stack of films; powers are fractions of the incident one.

    Attributes
    ----------
    reflected, transmitted
        Powers that leave the stack towards the light, and beyond its last film.
    films
        The films, from the light's side.
    """

    reflected: float
    transmitted: float
    films: tuple[Film, ...]
    _ambient: float
    _wavelength: float
    _forward: tuple[Complex, ...]  # at the beginning of each film
    _ratios: tuple[Complex, ...]  # backward over forward wave at the end of each film

    @property
    def absorbed(self) -> tuple[float, ...]:
        """Power absorbed in each film."""
        ends = [self.power(j, np.array([0.0, film.thickness])) for j, film in enumerate(self.films)]
        return tuple(float(first - last) for first, last in ends)

    def power(self, film: int, depths: Floats) -> Floats:
        """Return the power that flows at depths (cm) below the beginning of a film."""
        of = self.films[film]
        if of.k == 0.0:
            depths = np.zeros_like(depths)  # the same everywhere, without round-off
        forward = _times(self._forward[film], _phase(of, depths, self._wavelength))
        back = _times(_phase(of, of.thickness - depths, self._wavelength), self._ratios[film])
        whole = _phase(of, of.thickness, self._wavelength)
        backward = _times(back, _times(self._forward[film], whole))
        net = of.n * (_squared(forward) - _squared(backward))
        found: Floats = (net + 2.0 * of.k * (backward[1] * forward[0] - backward[0] * forward[1])) / self._ambient
        return found


def waves_in(ambient: float, films: Sequence[Film], beyond: tuple[float, float], wavelength: float) -> Waves:
    """Return the waves in a stack for light of amplitude 1.

    Parameters
    ----------
    ambient
        Refractive index of the medium from which the light comes, which does not absorb.
    films
        Films from the light's side.
    beyond
        n and k of the medium beyond the last film, which has no end.
    wavelength
        Wavelength in vacuum, nm.
    """
    indices: list[Complex] = [(ambient, 0.0), *((film.n, film.k) for film in films), beyond]
    ratios: list[Complex] = []
    below: Complex = (0.0, 0.0)  # of the waves at the beginning of the part below an interface
    for j in reversed(range(len(films) + 1)):
        r = _over(_less(indices[j], indices[j + 1]), _plus(indices[j], indices[j + 1]))
        at_end = _over(_plus(r, below), _plus((1.0, 0.0), _times(r, below)))
        ratios.insert(0, at_end)
        if j:
            once = _phase(films[j - 1], films[j - 1].thickness, wavelength)
            below = _times(at_end, _times(once, once))
    amplitude: Complex = (1.0, 0.0)  # of the forward wave at the end of the part above an interface
    forward: list[Complex] = []
    for j in range(len(films) + 1):
        # 1 + B/F above an interface is the field there, and so is F (1 + B/F) below it.
        once = _phase(films[j], films[j].thickness, wavelength) if j < len(films) else (1.0, 0.0)
        ratio = _times(ratios[j + 1], _times(once, once)) if j < len(films) else (0.0, 0.0)
        field = _times(amplitude, _plus((1.0, 0.0), ratios[j]))
        start = _over(field, _plus((1.0, 0.0), ratio))
        forward.append(start)
        amplitude = _times(start, once)
    transmitted = beyond[0] * _squared(forward[-1]) / ambient
    return Waves(
        float(_squared(ratios[0])), float(transmitted), tuple(films), ambient, wavelength, tuple(forward[:-1]),
        tuple(ratios[1:]),
    )  # fmt: skip


def _phase(film: Film, distance: Any, wavelength: float) -> Complex:
    """Return exp(i q x)."""
    once = 2.0 * math.pi / (wavelength * 1e-7) * distance
    size = portable.exp(-film.k * once)
    return size * portable.cos(film.n * once), size * portable.sin(film.n * once)


def _plus(a: Complex, b: Complex) -> Complex:
    return a[0] + b[0], a[1] + b[1]


def _less(a: Complex, b: Complex) -> Complex:
    return a[0] - b[0], a[1] - b[1]


def _times(a: Complex, b: Complex) -> Complex:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _over(a: Complex, b: Complex) -> Complex:
    size = _squared(b)
    return (a[0] * b[0] + a[1] * b[1]) / size, (a[1] * b[0] - a[0] * b[1]) / size


def _squared(a: Complex) -> Any:
    return a[0] * a[0] + a[1] * a[1]

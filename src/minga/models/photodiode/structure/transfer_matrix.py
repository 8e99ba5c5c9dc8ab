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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable

__all__ = ["Film", "Waves", "waves_in"]

Floats = NDArray[np.float64]
Complex = tuple[Any, Any]
_ONE: Final[Complex] = (1.0, 0.0)


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
    _forward: Complex  # at the beginning of each film
    _backward: Complex  # at the end of each film

    @property
    def absorbed(self) -> tuple[float, ...]:
        """Power absorbed in each film."""
        numbers, ends = np.arange(len(self.films), dtype=np.int64), _columns(self.films)[2]
        above, below = self.power(np.tile(numbers, 2), np.append(np.zeros(ends.size), ends)).reshape(2, -1)
        return tuple((above - below).tolist())

    def power(self, films: NDArray[np.int64], depths: Floats) -> Floats:
        """Return the power that flows in films (numbers) at depths (cm) below their beginning."""
        n, k, thickness = (column[films] for column in _columns(self.films))
        depths = np.where(k == 0.0, 0.0, depths)  # the same everywhere, without round-off
        parts = _phase(np.stack((n, n)), np.stack((k, k)), np.stack((depths, thickness - depths)), self._wavelength)
        forward = _times((self._forward[0][films], self._forward[1][films]), (parts[0][0], parts[1][0]))
        backward = _times((self._backward[0][films], self._backward[1][films]), (parts[0][1], parts[1][1]))
        net = n * (_squared(forward) - _squared(backward))
        found: Floats = (net + 2.0 * k * (backward[1] * forward[0] - backward[0] * forward[1])) / self._ambient
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
    through: list[Complex] = list(zip(*(part.tolist() for part in _phase(*_columns(films), wavelength))))
    ratios: list[Complex] = []  # backward over forward wave at each interface, above it
    below: Complex = (0.0, 0.0)  # the same at the beginning of the part below an interface
    for j in reversed(range(len(films) + 1)):
        r = _over(_less(indices[j], indices[j + 1]), _plus(indices[j], indices[j + 1]))
        ratios.insert(0, _over(_plus(r, below), _plus(_ONE, _times(r, below))))
        if j:
            below = _times(ratios[0], _times(through[j - 1], through[j - 1]))
    amplitude = _ONE  # of the forward wave above an interface
    forward, backward = [], []
    for j, once in enumerate(through):
        # The field is continuous: F (1 + B/F) is the same above an interface and below it.
        field = _times(amplitude, _plus(_ONE, ratios[j]))
        forward.append(_over(field, _plus(_ONE, _times(ratios[j + 1], _times(once, once)))))
        amplitude = _times(forward[-1], once)
        backward.append(_times(ratios[j + 1], amplitude))
    last = _times(amplitude, _plus(_ONE, ratios[-1]))
    return Waves(
        _squared(ratios[0]), beyond[0] * _squared(last) / ambient, tuple(films), ambient, wavelength, _arrays(forward),
        _arrays(backward),
    )  # fmt: skip


def _columns(films: Sequence[Film]) -> tuple[Floats, Floats, Floats]:
    """Return n, k and the thicknesses of films."""
    n, k, thickness = np.array([(film.n, film.k, film.thickness) for film in films]).reshape(-1, 3).T
    return n, k, thickness


def _arrays(values: Sequence[Complex]) -> Complex:
    real, imaginary = np.array(values, np.float64).reshape(-1, 2).T
    return real, imaginary


# Complex numbers -----------------------------------------------------------------------------------------------------
def _phase(n: Floats, k: Floats, distance: Floats, wavelength: float) -> Complex:
    """Return exp(i q x)."""
    once = 2.0 * math.pi / (wavelength * 1e-7) * distance
    size = portable.exp(-k * once)
    return size * portable.cos(n * once), size * portable.sin(n * once)


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

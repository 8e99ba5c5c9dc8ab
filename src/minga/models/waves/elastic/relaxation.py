"""Relaxation of elastic moduli: those of a step, and what memory variables take up of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minga.errors import CaseError
from minga.models.waves.attenuation import Attenuation
from minga.models.waves.medium import Floats, check_quantity
from minga.space.box import Box

__all__ = ["ElasticRelaxation", "check_attenuation", "refuse_gain"]


@dataclass(frozen=True, slots=True, eq=False)
class ElasticRelaxation:
    """Relaxation of elastic moduli.

    Parameters
    ----------
    attenuation
        The attenuation.
    dt
        Seconds of a step, for the moduli of a step; 0 for unrelaxed moduli, which limit the step.
    """

    attenuation: Attenuation
    dt: float = 0.0

    @property
    def uniform(self) -> bool:
        """True if Q is the same everywhere."""
        return not any(callable(q) or np.ndim(q) for q in (self.attenuation.q, self.attenuation.shear))

    @property
    def several(self) -> bool:
        """True if P and S waves have their own Q."""
        return self.attenuation.qs is not None

    def factor(self, q: Floats) -> Floats:
        """Return the modulus of a step divided by the one of the medium.

        Parameters
        ----------
        q
            Quality factors.
        """
        tau = self.attenuation.strength(self.attenuation.checked(q))
        return self.attenuation.relaxed(tau) * (1.0 + self._share * tau)

    def ratio(self, q: Floats) -> Floats:
        """Return the product of relaxed modulus and tau, divided by the modulus of a step.

        Parameters
        ----------
        q
            Quality factors.
        """
        tau = self.attenuation.strength(self.attenuation.checked(q))
        return tau / (1.0 + self._share * tau)

    @property
    def _share(self) -> float:
        return sum(1.0 / (1.0 + half) for half in self.attenuation.halves(self.dt))


def check_attenuation(attenuation: object, shape: tuple[int, ...]) -> None:
    """Raise CaseError for what is no attenuation, and for quality factors of another shape.

    Parameters
    ----------
    attenuation
        The attenuation.
    shape
        Cells of the model along each axis.
    """
    if not isinstance(attenuation, Attenuation):
        raise CaseError(
            f"attenuation is {attenuation!r}", key="elastic.attenuation", remedy="give Attenuation(q=80.0, qs=40.0)"
        )
    check_quantity(attenuation.q, shape, "elastic.attenuation.q")
    check_quantity(attenuation.shear, shape, "elastic.attenuation.qs")


def refuse_gain(box: Box, vp: Floats, vs: Floats, q: Floats, qs: Floats) -> None:
    """Raise CaseError where changes of volume would gain energy.

    Parameters
    ----------
    box
        The box of the values.
    vp, vs
        Velocities.
    q, qs
        Quality factors of P and S waves.
    """
    most = 0.75 * np.square(vp) * qs
    bad = q * np.square(vs) > (1.0 + 1e-9) * most
    if bad.any():
        at = tuple(map(int, np.unravel_index(int(np.argmax(bad)), bad.shape)))
        cell = tuple(index + low for index, low in zip(at, box.lo, strict=True))
        limit = float((most / np.square(np.maximum(vs, 1e-30)))[at])
        raise CaseError(
            f"q is {float(q[at]):g} and qs is {float(qs[at]):g} at cell {cell}: changes of volume would gain energy",
            key="elastic.attenuation.q",
            remedy=f"give a q of at most 3/4 (vp/vs)2 qs, {limit:.4g} there, or a larger qs",
        )

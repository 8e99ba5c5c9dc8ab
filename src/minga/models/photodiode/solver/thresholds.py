"""Threshold energies of impact ionisation with dead space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError

__all__ = ["LONGEST_SPACE", "MOST_ENERGY", "DeadSpace"]

Floats = NDArray[np.float64]

LONGEST_SPACE: Final = 0.9
"""Largest dead space over the mean free path of local coefficients that a solution may have."""

MOST_ENERGY: Final = 100.0
"""Largest threshold energy, eV."""


@dataclass(frozen=True, slots=True)
class DeadSpace:
    """Threshold energies of impact ionisation.

    Parameters
    ----------
    electrons, holes
        Energy that a carrier has to gain from the field before it can ionise, eV; 0: none.
    local
        Whether the coefficients are those of a local model, whose mean free path 1/alpha includes the dead space;
        otherwise they are those of carriers beyond it.
    """

    electrons: float
    holes: float
    local: bool = True

    def __post_init__(self) -> None:
        for name, value in (("electrons", self.electrons), ("holes", self.holes)):
            if not 0.0 <= value <= MOST_ENERGY:
                raise CaseError(
                    f"a threshold energy of {value:g} eV",
                    key=f"photodiode.dead_space.{name}",
                    remedy=f"give a number of eV from 0 to {MOST_ENERGY:g}",
                )

    def beyond(self, rate: Floats, strength: Floats, threshold: float) -> tuple[Floats, Floats]:
        """Return coefficients beyond the dead space, 1/cm, and the dead space over the local mean free path.

        Parameters
        ----------
        rate
            Given coefficients, 1/cm.
        strength
            Field, V/cm, positive.
        threshold
            Threshold energy of these carriers, eV.

        Returns
        -------
        coefficients
            Those of carriers beyond their dead space.
        longest
            Dead space in mean free paths; 0 if the given coefficients are beyond it.
        """
        if not self.local:
            return rate, np.zeros_like(rate)
        share = rate * threshold / strength
        found: Floats = rate / (1.0 - np.minimum(share, LONGEST_SPACE))
        return found, share

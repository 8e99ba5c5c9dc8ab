"""Threshold energies of impact ionisation with dead space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from minga.errors import CaseError

__all__ = ["MOST_ENERGY", "DeadSpace"]

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

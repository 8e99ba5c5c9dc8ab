"""Rates of change in the space of modes, for integrators that treat a linear part mode by mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minga.engine.program import Program
from minga.solve.fft.modes import Modes, Symbol
from minga.solve.fft.transform import Spectrum
from minga.space.field import Slot

__all__ = ["ModalRates"]

Nonlinear = Callable[[Program, Sequence[Slot], Sequence[Spectrum], Sequence[Spectrum]], None]


@dataclass(frozen=True)
class ModalRates:
    """Rates of change in the space of modes: a linear operator for each unknown, and the rest.

    An unknown is a field, or a pair of fields if the modes are those of complex values.

    Parameters
    ----------
    modes
        The modes.
    linear
        The linear operator of each unknown.
    nonlinear
        ``nonlinear(program, values, spectra, out)`` records the spectra `out` of the rest of the rates for fields with
        given values and spectra, at the time `mg.TIME`.
    """

    modes: Modes
    linear: tuple[Symbol, ...]
    nonlinear: Nonlinear

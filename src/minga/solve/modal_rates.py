"""Rates of change in the space of modes, for integrators that treat a linear part mode by mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minga.engine.program import Program
from minga.lang.expr import Node
from minga.solve.fft.transform import FFT, Spectrum
from minga.space.field import Field, Register, Slot

__all__ = ["ModalOperator", "ModalRates"]

Nonlinear = Callable[[Program, Sequence[Slot], Sequence[Spectrum], Sequence[Spectrum]], None]


@dataclass(frozen=True)
class ModalOperator:
    """A linear operator, as the eigenvalue of each mode.

    Parameters
    ----------
    fields
        What kernels read in order to compute eigenvalues.
    eigenvalue
        Returns the real and the imaginary part in a kernel, from its parameters for `fields`; None for 0.
    real
        Whether all eigenvalues are real.
    """

    fields: tuple[Field, ...]
    eigenvalue: Callable[[Sequence[Any]], tuple[Any, Any]]
    real: bool


@dataclass(frozen=True)
class ModalRates:
    """Rates of change in the space of modes: a linear operator for each unknown, and the rest.

    An unknown is a field, or a pair of fields if the transform is one of complex values.

    Parameters
    ----------
    fft
        The transform.
    linear
        The linear operator of each unknown.
    nonlinear
        ``nonlinear(program, values, spectra, out)`` records the spectra `out` of the rest of the rates for fields with
        given values and spectra, at the time `mg.TIME`.
    keep
        ``keep(program, spectrum)`` records that modes which are not kept become 0; None if all are kept.
    renew
        ``renew(program)`` records the eigenvalues at the start of a step, and returns whether they have changed; None
        if they never change.
    fields
        Workspace that the model has to hold, beside that of the integrator.
    """

    fft: FFT
    linear: tuple[ModalOperator, ...]
    nonlinear: Nonlinear
    keep: Callable[[Program, Spectrum], None] | None = None
    renew: Callable[[Program], Register | Node] | None = None
    fields: tuple[Field, ...] = ()

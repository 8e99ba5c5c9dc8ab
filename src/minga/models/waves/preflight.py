"""Notes on a wave model before a run starts: its stability and its sampling in space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from minga.models.waves.source import Source
from minga.models.waves.stability import Extremes, sampling, two_digits

__all__ = ["notes_of", "step_for"]

SHARE: Final = 0.75
"""Fraction of the stability limit used for dt = "auto": steps in time are of second order, and lose accuracy beyond."""

ENOUGH: Final = 4.0
"""Points per wavelength below which differences of order 8 delay waves visibly."""

FEWEST: Final = 2.0
"""Points per wavelength below which a grid cannot represent a wave."""


def step_for(limit: float) -> float:
    """Return the time step for dt = "auto": a safe fraction of the limit, rounded down to two digits."""
    return two_digits(SHARE * limit)


def notes_of(
    extremes: Extremes, spacing: Sequence[float], dt: float, sources: Sequence[Source]
) -> Iterator[tuple[str, str]]:
    """Yield the notes as pairs of a label and its text."""
    limit = extremes.dt_limit
    yield "time step", f"{dt * 1e3:.4g} ms, {100 * dt / limit:.0f} % of the stability limit ({limit * 1e3:.4g} ms)"
    shear = "" if extremes.slowest_sv is None else f"; SV from {extremes.slowest_sv:.0f}"
    yield "velocities", f"P {extremes.slowest_p:.0f} to {extremes.fastest_p:.0f} m/s{shear}"
    peaks = [source.wavelet.peak for source in sources if source.wavelet.peak]
    if not peaks:
        if not sources:
            yield "sources", "none: all waves stay 0"
        return
    peak = max(peaks)
    found = sampling(extremes, spacing, peak, 3 * peak)
    yield "P waves", _points(found.p_peak, found.p_highest, peak)
    if found.p_peak < FEWEST:
        factor = ENOUGH / found.p_peak
        yield "too coarse", f"for any waves: make the cells or the frequency {factor:.2g} times smaller"
    if found.sv_peak is not None and found.sv_highest is not None:
        yield "SV waves", _points(found.sv_peak, found.sv_highest, peak)


def _points(at_peak: float, highest: float, frequency: float) -> str:
    said = f"{at_peak:.3g} points per wavelength at {frequency:.3g} Hz, {highest:.2g} at {3 * frequency:.3g} Hz"
    return said + (" (coarse: the grid delays them)" if at_peak < ENOUGH else "")

"""Estimates of what sponges return, for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.models.waves.boundary import Pairs, Sponge

if TYPE_CHECKING:
    from minga.models.waves.elastic.sources import ElasticSource
    from minga.models.waves.source import Source

__all__ = ["reflection", "sponge_notes"]

_SHARES: Final = np.arange(0.1, 2.65, 0.1)
"""Frequencies relative to the peak."""
_RICKER: Final = np.square(_SHARES) * np.exp(-np.square(_SHARES))
"""Spectrum of a Ricker wavelet there."""
_SINES: Final = (0.0, 0.5)
"""Directions of the waves: straight at the sponge, and at 30 degrees."""
_WEAK: Final = -20.0
"""Level above which a note says what to do."""


def reflection(
    sponge: Sponge, spacing: float, fastest: float, dt: float, frequency: float, *, staggered: bool = False
) -> float:
    """Return the level of what a sponge returns of Ricker wavelets, in dB of their root mean square.

    In a sponge that damps by g per unit of time, waves of the angular frequency w are those of a medium without a
    sponge at w + i g. Cells are slabs of constant g, and waves are 0 beyond the last one; slabs reflect where g
    changes. Of straight waves and those that come at 30 degrees, the result is that of which more returns.

    Parameters
    ----------
    sponge
        The sponge.
    spacing
        Metres between cells.
    fastest
        The largest velocity, m/s.
    dt
        Seconds of a step.
    frequency
        Peak frequency of the wavelet, Hz.
    staggered
        Whether pressures and velocities are damped; otherwise the pressures of the equation of second order.
    """
    free = 2 * math.pi * frequency * spacing / fastest * _SHARES
    depths = np.arange(1, sponge.cells + 1)
    rates = np.square(sponge.strength_for(spacing, fastest, dt) * depths / sponge.cells) * spacing / (fastest * dt)
    found = [_returned(free, rates, sine, staggered) for sine in _SINES]
    powers = [np.sum(np.square(np.abs(each) * _RICKER)) / np.sum(np.square(_RICKER)) for each in found]
    return 10 * math.log10(max(powers))


def _returned(free: NDArray[Any], rates: NDArray[Any], sine: float, staggered: bool) -> NDArray[Any]:
    """Return what slabs return of waves with a wave number `free`, both in units of a cell."""
    numbers, weights = [], []
    for rate in (0.0, *rates):
        damped = free + 1j * rate
        number = np.sqrt(np.square(damped) - np.square(sine * free))
        numbers.append(number)
        weights.append(number / damped if staggered else number)
    back = -np.exp(3j * numbers[-1])
    for outer in range(len(rates), 0, -1):
        left, right = weights[outer - 1] * (1 + back), weights[outer] * (1 - back)
        back = (left - right) / (left + right)
        if outer > 1:
            back = back * np.exp(2j * numbers[outer - 1])
    return np.asarray(back)


def sponge_notes(
    faces: Pairs,
    spacing: Sequence[float],
    fastest: float,
    dt: float,
    sources: Sequence[Source | ElasticSource],
    *,
    staggered: bool = False,
) -> Iterator[tuple[str, str]]:
    """Yield a note on what sponges return of the longest waves of the sources; none where no frequency is known.

    Parameters
    ----------
    faces
        The boundaries.
    spacing
        Metres between cells, along each axis.
    fastest
        The largest velocity, m/s.
    dt
        Seconds of a step.
    sources
        The sources.
    staggered
        As for `reflection`.
    """
    found = dict.fromkeys(
        (face, h) for pair, h in zip(faces, spacing, strict=True) for face in pair if isinstance(face, Sponge)
    )
    peaks = [source.wavelet.peak for source in sources if source.wavelet.peak]
    if not found or not peaks:
        return
    worst: dict[int, float] = {}
    for face, h in found:
        level = reflection(face, h, fastest, dt, min(peaks), staggered=staggered)
        worst[face.cells] = max(level, worst.get(face.cells, -math.inf))
    said = " and ".join(f"{cells} cells return about {level:.0f} dB" for cells, level in worst.items())
    weak = "; wider sponges return less" if max(worst.values()) > _WEAK else ""
    yield "sponge", f"{said} of waves of {min(peaks):.3g} Hz and {fastest:.0f} m/s{weak}"

"""Inversions from low to high frequencies: shots filtered to a band, and a sequence of inversions.

Data and wavelets pass through the same filter, the zero-phase Butterworth response 1 / (1 + (f / highest)^(2 n)), with
the reciprocal ratio for the lower corner. It begins before what it filters: both are delayed by PERIODS periods of the
lowest corner, so that the traces of the filtered wavelet are the filtered data. The last samples, whose response is not
complete, give way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.errors import CaseError
from minga.models.waves.inversion import Inversion, Progress
from minga.models.waves.inversion_checks import check_run, check_stages, checked_start, is_finite, wrong
from minga.models.waves.inversion_search import Values
from minga.models.waves.medium import Floats
from minga.models.waves.shot import Shot, checked_data
from minga.models.waves.wavelets import Signal, Wavelet

__all__ = ["band_limited", "run_in_bands"]

PERIODS: Final = 3
"""Delay by a filter, in periods of its lowest corner; beyond, its response is below a thousandth."""
ORDER: Final = 4


def band_limited(shot: Shot, dt: float, highest: float, lowest: float = 0.0) -> Shot:
    """Return a shot whose data and wavelets are filtered to a band of frequencies.

    Parameters
    ----------
    shot
        The shot with its data, which are as many samples afterwards.
    dt
        Seconds of a step.
    highest
        Frequency above which amplitudes fall, Hz: there to a half.
    lowest
        Frequency below which they fall, Hz; 0: none.

    Returns
    -------
    Shot
        The filtered shot, later by PERIODS periods of the lowest corner.

    Raises
    ------
    CaseError
        If an argument cannot be, the band is empty, or so low that the data are shorter than the delay.
    """
    if not isinstance(shot, Shot):
        raise wrong("shot", shot, "give a Shot(sources, receivers, data)")
    if not is_finite(dt) or dt <= 0:
        raise wrong("dt", dt, "give the seconds of a step: waves.dt")
    if not (is_finite(lowest) and is_finite(highest) and 0 <= lowest < highest):
        raise CaseError(
            f"the band from {lowest!r} to {highest!r} Hz",
            key="highest",
            remedy="give 0 or more for its lower end, and a larger number for its upper one",
        )
    data, every = checked_data(shot), shot.receivers.every
    lead = math.ceil(PERIODS / ((lowest or highest) * dt * every))
    if lead >= len(data):
        raise CaseError(
            f"data of {len(data) * every * dt:g} s are shorter than {PERIODS} periods of {lowest or highest:g} Hz",
            key="lowest" if lowest else "highest",
            remedy="give a higher frequency, or more samples",
        )
    steps = (len(data) - 1) * every + 1
    sources: list[Any] = [
        replace(
            source,
            wavelet=Wavelet(
                _filtered(_samples(source.wavelet, dt, steps), dt, lead * every, highest, lowest), source.wavelet.peak
            ),
        )
        for source in shot.sources
    ]
    return replace(shot, sources=sources, data=_filtered(data, dt * every, lead, highest, lowest))


def _samples(wavelet: Signal, dt: float, count: int) -> Floats:
    """Return the first values of a wavelet, one for each step."""
    if not isinstance(wavelet, Wavelet):
        return np.asarray(wavelet.at(np.arange(count) * dt), np.float64)
    values = wavelet.values[:count]
    return np.concatenate([values, np.zeros(count - len(values))])


def _filtered(samples: Floats, dt: float, lead: int, highest: float, lowest: float) -> NDArray[np.float64]:
    """Return as many samples, filtered along the first axis and later by `lead`.

    They are rounded to twelve digits of the largest one: libraries differ in further bits.
    """
    around = [(lead, lead), *[(0, 0)] * (samples.ndim - 1)]
    padded = np.pad(samples, around)
    frequencies = np.fft.rfftfreq(len(padded), dt)
    response = 1.0 / (1.0 + (frequencies / highest) ** (2 * ORDER))
    if lowest:
        ratio = (frequencies / lowest) ** (2 * ORDER)
        response = response * ratio / (1.0 + ratio)
    spectrum = np.fft.rfft(padded, axis=0) * response.reshape(-1, *[1] * (samples.ndim - 1))
    found = np.fft.irfft(spectrum, len(padded), axis=0)[: len(samples)]
    unit = math.ldexp(1.0, math.frexp(float(np.abs(found).max(initial=0.0)))[1])
    return np.ascontiguousarray(np.round(found / unit, 12) * unit)


def run_in_bands(
    inversion: Inversion,
    start: Values,
    stages: Sequence[tuple[float, int]],
    *,
    lowest: float = 0.0,
    file: str | Path | None = None,
    callback: Callable[[Progress], None] | None = None,
    comm: Comm | None = None,
) -> list[Progress]:
    """Vary the medium in stages of rising frequencies, each from the result of the one before; collective.

    Parameters
    ----------
    inversion
        The inversion, with the unfiltered shots.
    start
        The initial medium: an array for each quantity.
    stages
        Highest frequency, Hz, and the most iterations of each stage.
    lowest
        Lowest frequency of all stages, Hz; 0: none.
    file
        File of the first stage is this name with "-0" before its suffix, and so on: the sequence resumes in the middle
        of a stage, with the bits of one that was not interrupted.
    callback
        Called on rank 0 with the progress after each iteration.
    comm
        Ranks that share the shots; None: this process alone.

    Returns
    -------
    list of Progress
        The final state of each stage, on all ranks.

    Raises
    ------
    CaseError
        If the stages cannot be, or as for `band_limited` and `Inversion.run`.
    """
    check_stages(stages)
    check_run(0, file, callback)
    ranks: Any = comm or SerialComm()
    path = None if file is None else Path(file)
    found: list[Progress] = []
    values: Values = checked_start(inversion, start)
    for number, (highest, iterations) in enumerate(stages):
        steps = ranks.bcast(inversion.perform("step", values, ranks))
        shots = [band_limited(shot, dt, highest, lowest) for shot, dt in zip(inversion.shots, steps, strict=True)]
        own = None if path is None else path.with_name(f"{path.stem}-{number}{path.suffix}")
        found.append(replace(inversion, shots=shots).run(values, iterations, file=own, callback=callback, comm=comm))
        values = found[-1].values
    return found

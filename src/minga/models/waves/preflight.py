"""Notes on a wave model before a run starts: its stability and its sampling in space."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from minga.models.waves.source import Source
from minga.models.waves.stability import Extremes, sampling
from minga.models.waves.stencils import halfway_weights, second_weights

__all__ = [
    "COARSE",
    "ENOUGH",
    "FEWEST",
    "aliased",
    "dispersion",
    "dispersion_between",
    "dispersion_of",
    "notes_of",
    "sampled_notes",
    "step_note",
    "too_coarse",
    "warnings_of",
]

ENOUGH: Final = 4.0
"""Points per wavelength below which differences of order 8 delay waves visibly."""

FEWEST: Final = 2.0
"""Points per wavelength below which a grid cannot represent a wave."""


COARSE: Final = "too coarse"
ALIASED: Final = "aliased"
"""Labels of notes that are warnings."""


def notes_of(
    extremes: Extremes,
    limit: float,
    spacing: Sequence[float],
    dt: float,
    sources: Sequence[Source],
    divided: str = "",
) -> Iterator[tuple[str, str]]:
    """Yield the notes as pairs of a label and its text; `divided` names times that the step divides."""
    yield step_note(dt, limit, divided)
    shear = "" if extremes.slowest_sv is None else f"; SV from {extremes.slowest_sv:.0f}"
    yield "velocities", f"P {extremes.slowest_p:.0f} to {extremes.fastest_p:.0f} m/s{shear}"
    peaks = [source.wavelet.peak for source in sources if source.wavelet.peak]
    if not peaks:
        if not sources:
            yield "sources", "none: all waves stay 0"
        return
    peak = max(peaks)
    highest = max(source.wavelet.highest for source in sources if source.wavelet.highest)
    found = sampling(extremes, spacing, peak, highest)
    yield "P waves", _points(found.p_peak, found.p_highest, peak, highest)
    if found.p_peak < FEWEST:
        yield COARSE, too_coarse(found.p_peak)
    if found.sv_peak is not None and found.sv_highest is not None:
        yield "SV waves", _points(found.sv_peak, found.sv_highest, peak, highest)


def step_note(dt: float, limit: float, divided: str) -> tuple[str, str]:
    """Return the note on a time step; `divided` names times that it divides, or is empty."""
    whole = f"; it divides {divided}" if divided else ""
    return (
        "time step",
        f"{dt * 1e3:.4g} ms, {100 * dt / limit:.0f} % of the stability limit ({limit * 1e3:.4g} ms){whole}",
    )


def too_coarse(points: float) -> str:
    """Return what to do about a grid with so few points per wavelength that it represents no waves."""
    return (
        f"{points:.2g} points per wavelength are fewer than {FEWEST:g}, so that no waves are computed: make the cells "
        f"or the frequency {ENOUGH / points:.2g} times smaller"
    )


def aliased(peak: float | None, interval: float) -> str:
    """Return what to do about samples at intervals that are too long for the peak frequency of a wavelet, or ""."""
    most = 0.5 / interval
    if not peak or peak <= most:
        return ""
    return (
        f"samples every {interval * 1e3:g} ms hold frequencies up to {most:.4g} Hz, and the wavelet's peak is at "
        f"{peak:.4g} Hz: sample every {1e3 / (6 * peak):.3g} ms or more often, or choose a lower frequency"
    )


def sampled_notes(sources: Sequence[Any], interval: float) -> Iterator[tuple[str, str]]:
    """Yield a note if samples at intervals, s, do not hold all frequencies of the sources."""
    peak = max((source.wavelet.peak or 0.0 for source in sources), default=0.0)
    highest = max((source.wavelet.highest or 0.0 for source in sources), default=0.0)
    if text := aliased(peak, interval):
        yield ALIASED, text
    elif 2 * highest * interval > 1:
        most = f"{0.5 / interval:.4g} Hz"
        yield "aliasing", f"samples hold frequencies up to {most}; a wavelet has a part above, up to {highest:.4g} Hz"


def warnings_of(notes: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the notes that are warnings: results of too coarse a grid, and too few samples, are no waves."""
    said = {COARSE: "the cells are too coarse for waves of this wavelet", ALIASED: "receivers record other waves"}
    return tuple(f"{said[label]}: {text}" for label, text in notes if label in said)


def dispersion_of(
    extremes: Extremes,
    spacing: Sequence[float],
    dt: float,
    sources: Sequence[Source],
    orders: tuple[int, int],
    *,
    staggered: bool = False,
) -> Iterator[tuple[str, str]]:
    """Yield a note on the velocities of waves on the grid, along its coarsest axis; `orders` in space and in time."""
    peak = max((source.wavelet.peak for source in sources if source.wavelet.peak), default=0.0)
    ends = extremes.slowest_p, extremes.fastest_p
    yield from dispersion_between(ends, spacing, dt, peak, orders, "P waves", staggered=staggered)


def dispersion_between(
    velocities: tuple[float, float],
    spacing: Sequence[float],
    dt: float,
    peak: float,
    orders: tuple[int, int],
    waves: str,
    *,
    staggered: bool,
) -> Iterator[tuple[str, str]]:
    """Yield a note on the slowest and the fastest of some `waves` at the peak frequency, if the grid has them."""
    widest = max(spacing)
    if not peak or min(velocities) < FEWEST * peak * widest:
        return
    slow, fast = (
        dispersion(velocity / (peak * widest), velocity * dt / widest, *orders, staggered=staggered)
        for velocity in velocities
    )
    yield "dispersion", f"at {peak:.3g} Hz the slowest {waves} are {_percent(slow)}, the fastest {_percent(fast)}"


def dispersion(points: float, courant: float, order: int, time_order: int, *, staggered: bool = False) -> float:
    """Return the relative error of the phase velocity of plane waves along an axis.

    Parameters
    ----------
    points
        Points per wavelength, at least 2.
    courant
        Velocity times the time step over the distance between cells.
    order
        Order of the differences in space.
    time_order
        Order of the steps in time, 2 or 4.
    staggered
        Whether differences are staggered, as those of a density that varies.
    """
    turn = 2 * math.pi / points
    if staggered:
        slope = 2 * sum(float(w) * math.sin((k + 0.5) * turn) for k, w in enumerate(halfway_weights(order // 2)))
        square = slope * slope
    else:
        middle, *sides = map(float, second_weights(order))
        square = -(middle + 2 * sum(w * math.cos(k * turn) for k, w in enumerate(sides, 1)))
    increment = courant * courant * square
    if time_order == 4:
        increment -= increment * increment / 12
    return 2 * math.asin(math.sqrt(increment) / 2) / (courant * turn) - 1


def _percent(error: float) -> str:
    """Format the relative error of a velocity."""
    if abs(error) < 1e-5:
        return "less than 0.001 % wrong"
    return f"{100 * abs(error):.2g} % too {'fast' if error > 0 else 'slow'}"


def _points(at_peak: float, at_highest: float, peak: float, highest: float) -> str:
    said = f"{at_peak:.3g} points per wavelength at {peak:.3g} Hz, {at_highest:.2g} at {highest:.3g} Hz"
    return said + (" (coarse: the grid delays them)" if at_peak < ENOUGH else "")

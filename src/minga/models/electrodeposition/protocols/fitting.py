"""Agreement of a program with the rest of its case: its end, its cut-off voltage and its reference electrode."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from minga.errors import CaseError
from minga.models.electrodeposition.groups import resolves_charge
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.protocols.segments import Part, Repeat, duration_of, largest_voltage, segments_of
from minga.models.electrodeposition.settings import ElectrodepositionSettings, TimeSettings
from minga.space.grid import Grid

__all__ = ["check_corners", "check_limits", "check_measured", "program_cutoff", "reference_of", "with_end"]

WHOLE: Final = 1e-6
"""Relative difference from a multiple of `every` at which a duration still counts as one."""


def with_end(settings: TimeSettings, protocol: Sequence[Part]) -> TimeSettings:
    """Return the times of a case with the end of its program, where the case has no end of its own.

    If `every` does not divide the duration of the program, the end is that of the interval in which the program ends.
    """
    if settings.end is not None:
        return settings
    duration = duration_of(protocol) if protocol else math.inf
    if math.isinf(duration):
        raise CaseError(
            "only a limit ends the program, which may take any time" if protocol else "'end' is missing",
            key="electrodeposition.time.end",
            remedy='give the longest duration of the run: time = {end = "10 min"}',
        )
    if settings.every is not None:
        # The program ends the run within its last interval.
        duration = max(duration, settings.every * math.ceil(duration / settings.every * (1.0 - WHOLE)))
    return settings.model_copy(update={"end": duration})


def program_cutoff(settings: ElectrodepositionSettings, protocol: Sequence[Part], usual: float) -> float:
    """Return the cut-off voltage of a program, which no given voltage exceeds; `usual` is that of other cases.

    Potentials against a reference electrode are no voltages of the cell, and may exceed it.
    """
    largest = largest_voltage(protocol)
    if settings.cutoff is None:
        return max(usual, 1.5 * largest)
    if settings.reference is None and settings.cutoff < largest:
        raise CaseError(
            f"the program goes to {largest:g} V, beyond the cut-off of {settings.cutoff:g} V",
            key="electrodeposition.cutoff",
            remedy="raise the cut-off, or lower the voltages of the program",
        )
    return settings.cutoff


def reference_of(settings: ElectrodepositionSettings, grid: Grid) -> float | None:
    """Return the distance of the reference electrode from the cathode, m."""
    if settings.reference is None:
        return None
    length = float(grid.widths("y").sum())
    if settings.program is None:
        raise CaseError(
            "a reference electrode is for the voltages of a program",
            key="electrodeposition.reference",
            remedy='leave it out, or write program = [{hold = "-0.1 V", time = "10 s"}]',
        )
    if settings.reference >= length:
        raise CaseError(
            f"the reference electrode, {settings.reference:g} m from the cathode, is not in the cell, which is "
            f"{length:g} m long",
            key="electrodeposition.reference",
            remedy="place it between the electrodes",
        )
    return settings.reference


def check_measured(problem: Problem) -> None:
    """Reject impedances where the current that charges the double layer is not known."""
    if not any(segment.measured for segment in segments_of(problem.protocol)):
        return
    if problem.growth is not None and problem.cathode.capacity:
        raise CaseError(
            "the double layer of the cathode changes with the deposit that grows there, which an impedance of the "
            "program leaves out",
            key="electrodeposition.cathode.capacity",
            remedy="leave out the capacity, the growth, or the impedance",
        )
    if resolves_charge(problem):
        raise CaseError(
            "the cells resolve the double layer, whose charging current an impedance of the program leaves out",
            key="electrodeposition.program",
            remedy="use wider cells, or leave out debye",
        )


def check_corners(problem: Problem, attempts: int) -> None:
    """Reject programs with more corners and points in an observation's interval than time steps are allowed.

    Parameters
    ----------
    problem
        The cell.
    attempts
        Largest number of time steps in an interval, at which a run gives up.

    Raises
    ------
    CaseError
        If the time steps, which end on each corner and on each point of a sine, cannot be enough.
    """
    every = problem.steps.every
    for period, points, whole in _periods(problem.protocol):
        needed = points * min(every, whole) / period
        if needed > attempts:
            raise CaseError(
                f"the program has {points} corners in {period:g} s, {needed:.3g} in each interval of {every:g} s, "
                f"which may have {attempts:,} time steps",
                key="electrodeposition.time.every",
                remedy=f"write an interval of {0.1 * attempts * period / points:.3g} s or less, or replace pulses as "
                "short as these by their mean current",
            )


def _periods(parts: Sequence[Part]) -> Iterator[tuple[float, int, float]]:
    """Yield the period of all that is repeated, its number of corners and how long it lasts, and those of sines.

    Durations are in s. The periods of sines are what is repeated.
    """
    for part in parts:
        if isinstance(part, Repeat):
            yield from _periods(part.of)
            period = duration_of(part.of)
            if part.times > 1 and 0.0 < period < math.inf:
                yield period, sum(1 for _ in segments_of(part.of)), period * part.times
        elif part.frequency and part.points:
            yield 1.0 / part.frequency, part.points, part.duration


def check_limits(problem: Problem) -> None:
    """Reject limits that are passed wherever their segment begins: on the wrong side, or above the bulk."""
    key = "electrodeposition.program"
    against = problem.reference is not None
    bulk = next((s.bulk for s in problem.species if s.name == problem.metal), 0.0)
    for number, segment in enumerate(segments_of(problem.protocol), 1):
        voltage, least = segment.until.get("voltage"), segment.until.get("concentration")
        mean = segment.level + (0.5 * segment.slope * segment.duration if segment.slope else 0.0)
        if voltage is not None and voltage * mean * (-1.0 if against else 1.0) < 0.0:
            driven, side = ("positive", "negative") if mean > 0.0 else ("negative", "positive")
            meant = side if against else driven
            what = "the cathode's potential against the reference" if against else "the voltage"
            raise CaseError(
                f"segment {number} has a {driven} current and the limit {voltage:g} V of {what}, which has the wrong "
                "sign",
                key=key,
                remedy=f"a {driven} current makes it {meant}: write {-voltage:g} V",
            )
        if least is not None and 0.0 < bulk <= least:
            raise CaseError(
                f"segment {number} ends where the lowest concentration of {problem.metal} is {least:g} mol/m3, which "
                f"the bath of {bulk:g} mol/m3 has from the beginning",
                key=key,
                remedy="give a limit below the concentration of the bath",
            )

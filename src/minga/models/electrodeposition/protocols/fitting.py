"""Agreement of a program with the rest of its case: its end, its cut-off voltage and its reference electrode."""

from __future__ import annotations

import math
from collections.abc import Sequence

from minga.errors import CaseError
from minga.models.electrodeposition.groups import resolves_charge
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.protocols.segments import Part, duration_of, largest_voltage, segments_of
from minga.models.electrodeposition.settings import ElectrodepositionSettings, TimeSettings
from minga.space.grid import Grid

__all__ = ["check_measured", "program_cutoff", "reference_of", "with_end"]


def with_end(settings: TimeSettings, protocol: Sequence[Part]) -> TimeSettings:
    """Return the times of a case with the end of its program, where the case has no end of its own."""
    if settings.end is not None:
        return settings
    duration = duration_of(protocol) if protocol else math.inf
    if math.isinf(duration):
        raise CaseError(
            "only a limit ends the program, which may take any time" if protocol else "'end' is missing",
            key="electrodeposition.time.end",
            remedy='give the longest duration of the run: time = {end = "10 min"}',
        )
    return settings.model_copy(update={"end": duration})


def program_cutoff(settings: ElectrodepositionSettings, protocol: Sequence[Part], usual: float) -> float:
    """Return the cut-off voltage of a program, which no given voltage exceeds; `usual` is that of other cases."""
    largest = largest_voltage(protocol)
    if settings.cutoff is None:
        return max(usual, 1.5 * largest)
    if settings.cutoff < largest:
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
    """Reject impedances of cells that resolve the double layer."""
    if any(segment.measured for segment in segments_of(problem.protocol)) and resolves_charge(problem):
        raise CaseError(
            "the cells resolve the double layer, whose charging current an impedance of the program leaves out",
            key="electrodeposition.program",
            remedy="use wider cells, or leave out debye",
        )

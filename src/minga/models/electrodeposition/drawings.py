"""Drawings of a program for pictures and reports: its current and voltage over time, and voltammograms."""

from __future__ import annotations

from collections.abc import Iterator, Set

from minga.engine.drawing import Drawing
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.protocols.segments import segments_of

__all__ = ["drawings_of"]


def drawings_of(problem: Problem, observables: Set[str]) -> tuple[Drawing, ...]:
    """Return the drawings of a cell that a program drives; other cells have none."""
    if not problem.protocol:
        return ()
    return (*_profiles(problem), *_courses(problem, observables))


def _courses(problem: Problem, observables: Set[str]) -> Iterator[Drawing]:
    measured = "cathode_potential" if "cathode_potential" in observables else "voltage"
    if any(s.control == "voltage" and s.slope for s in segments_of(problem.protocol)):
        yield Drawing("Voltammogram", {"current": "current"}, over=measured, unit="A/m2", ordered=True)
    if "Z_re" in observables:
        yield Drawing(
            "Nyquist", {"-Im Z": "Z_im_negative"}, over="Z_re", unit="-Im Z, ohm m2", ordered=True, equal=True
        )
        yield Drawing(
            "Bode",
            {"|Z|": "Z_size"},
            over="f",
            unit="ohm m2",
            logarithmic=True,
            logarithmic_over=True,
            over_name="frequency",
        )
        yield Drawing(
            "Bode, phase", {"phase": "Z_phase"}, over="f", unit="degrees", logarithmic_over=True, over_name="frequency"
        )
    yield Drawing("Current", {"current": "current"}, over="time", unit="A/m2")
    yield Drawing(measured.replace("_", " ").capitalize(), {measured: measured}, over="time", unit="V")


def _profiles(problem: Problem) -> Iterator[Drawing]:
    """Yield the fields of cells with one axis, whose models with drawings have no pictures of their own."""
    if problem.grid.ndim > 1:
        return
    yield Drawing("Concentrations", {s.name: s.name for s in problem.species}, along="y", unit="mol/m3")
    yield Drawing("Potential", {"potential": "potential"}, along="y", unit="V")

"""Physical constants of a case, and the gravity along the axes of its cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from minga.errors import CaseError
from minga.models.electrodeposition.groups import permittivity_for
from minga.models.electrodeposition.problem import Constants, Species
from minga.models.electrodeposition.settings import ElectrodepositionSettings
from minga.space.grid import Grid

__all__ = ["chosen_constants", "gravity_of"]

GAS: float = 8.314462618
"""Gas constant, J/(mol K)."""
GRAVITY: float = 9.81
"""Gravitational acceleration, m/s2."""


def chosen_constants(settings: ElectrodepositionSettings, species: Sequence[Species]) -> Constants:
    """Return the physical constants of a case."""
    chosen = settings.constants
    if settings.scaled and chosen.temperature is not None:
        raise CaseError(
            "a scaled case has no temperature, because RT is 1",
            key="electrodeposition.constants.temperature",
            remedy="leave it out",
        )
    found = Constants(1.0, 1.0, 1.0, 1.0, 1.0) if settings.scaled else Constants()
    if chosen.temperature is not None:
        found = replace(found, thermal=GAS * chosen.temperature)
    for name in ("permittivity", "density", "viscosity"):
        if (value := getattr(chosen, name)) is not None:
            found = replace(found, **{name: value})
    if settings.debye is None:
        if settings.scaled and chosen.permittivity is None:
            raise CaseError(
                "'debye' is missing",
                key="electrodeposition.debye",
                remedy="give the Debye length of the scaled case: debye = 0.05",
            )
        return found
    if chosen.permittivity is not None:
        raise CaseError(
            "both debye and constants.permittivity are given, but each determines the other",
            key="electrodeposition.debye",
            remedy="leave one of them out",
        )
    return replace(found, permittivity=permittivity_for(settings.debye, species, found))


def gravity_of(settings: ElectrodepositionSettings, grid: Grid) -> tuple[tuple[float, ...], bool]:
    """Return the gravity along each axis, in m/s2, and whether the fluid moves."""
    key = "electrodeposition.orientation"
    pull = [0.0] * grid.ndim
    if isinstance(settings.orientation, tuple):
        if len(settings.orientation) != grid.ndim:
            raise CaseError(
                f"orientation has {len(settings.orientation)} numbers, but the axes are {', '.join(grid.axes)}",
                key=key,
                remedy="give the gravity along each axis, in m/s2",
            )
        pull = list(settings.orientation)
    elif settings.orientation == "horizontal":
        if "z" not in grid.axes:
            raise CaseError(
                "gravity points along the gap, but the cell has no gap",
                key=key,
                remedy='give a gap and cells along it, or write orientation = "off"',
            )
        pull[grid.axis("z")] = -GRAVITY
    elif settings.orientation != "off":
        pull[0] = GRAVITY if settings.orientation == "cathode-above" else -GRAVITY
    flow = any(pull) if settings.flow is None else settings.flow
    if flow and grid.ndim == 1:
        raise CaseError(
            "there can be no flow along one axis only",
            key="electrodeposition.flow",
            remedy="give the cell a gap or a width",
        )
    return tuple(pull), flow

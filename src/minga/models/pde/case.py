"""From the case's table [pde] to its Model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from minga.case.boundary import parse_boundary
from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.errors import CaseError, MingaError, shown, suggest
from minga.models.pde.complex_values import part_names
from minga.models.pde.model import pde
from minga.models.pde.settings import PdeSettings
from minga.space.boundary import Condition, antiperiodic, dirichlet, neumann, no_flux, robin
from minga.space.grid import Grid

__all__ = ["make"]

_FORMS: Final = (
    '{dirichlet = v}, {neumann = g}, {robin = [a, b]}, {no_flux = true} or "antiperiodic"; of two sides [low, high]'
)
_WORDS: Final = ("dirichlet", "neumann", "robin", "no_flux")
_KEYS: Final = {"d(": "pde.equations", "initial": "pde.initial", "noise": "pde.noise", "boundary": "pde.boundary",
                "parameter": "pde.parameters", "units": "pde.units", "axis": "pde.axes"}  # fmt: skip


def make(settings: PdeSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [pde] of a case describes."""
    if grid.shape is None:
        raise CaseError("the number of cells along each axis is missing", key="grid.shape", remedy="[256, 256]")
    ends = parse_boundary("zero-gradient" if grid.boundary is None else grid.boundary, len(grid.shape))
    if ends.seam is not None:
        raise CaseError(
            f"a {ends.seam.surface} is for automata", key="grid.boundary", remedy='use "periodic" or conditions'
        )
    try:
        space = Grid(
            grid.shape,
            settings.axes,
            spacing=tuple(settings.spacing) if isinstance(settings.spacing, list) else settings.spacing,
            origin=0.0 if settings.origin is None else tuple(settings.origin),
            periodic=[pair is None for pair in ends.sides],
            shift=dict(enumerate(ends.shift)),
            geometry=settings.geometry,
        )
    except MingaError as error:
        raise CaseError(error.message, key="grid", remedy=error.remedy) from error
    try:
        return pde(
            settings.equations,
            space,
            parameters=settings.parameters,
            initial=settings.initial,
            boundary=_boundary(settings, space, ends.conditions if grid.boundary is not None else {}),
            integrator=settings.integrator,
            dt=settings.dt,
            noise=settings.noise,
            order=settings.order,
            space=settings.space,
            dealias=settings.dealias,
            tolerance=settings.tolerance,
            absolute=settings.absolute,
            unit=settings.unit,
            units=settings.units,
            dtype=settings.dtype,
            seed=settings.seed,
        )
    except CaseError:
        raise
    except MingaError as error:
        key = next((key for start, key in _KEYS.items() if error.message.startswith(start)), "pde")
        raise CaseError(error.message, key=key, remedy=error.remedy) from error


def _boundary(settings: PdeSettings, grid: Grid, ends: Mapping[str | int, object]) -> dict[str, Any]:
    """Return the conditions of each field by axis."""
    unknowns = ["u"] if isinstance(settings.equations, str) else list(settings.equations)
    names = [*unknowns, *(part for name in unknowns if _is_complex(name, settings) for part in part_names(name))]
    by_field = any(key in names for key in settings.boundary)
    result: dict[str, Any] = {}
    for name in (name for name in names if name in unknowns or name in settings.boundary):
        given = settings.boundary.get(name, {}) if by_field else settings.boundary
        if not isinstance(given, Mapping):
            raise CaseError(f"found {given!r}", key=f"pde.boundary.{name}", remedy="give conditions by axis")
        chosen: dict[str | int, Any] = dict(ends)
        for axis, value in given.items():
            if axis not in grid.axes:
                raise CaseError(
                    f"no axis {axis!r}", key="pde.boundary", suggestion=suggest(axis, grid.axes),
                    remedy=f"the axes are {', '.join(grid.axes)}",
                )  # fmt: skip
            chosen[grid.axis(axis)] = _sides(
                value, f"pde.boundary.{name}.{axis}" if by_field else f"pde.boundary.{axis}"
            )
        result[name] = chosen
    unknown = [key for key in settings.boundary if by_field and key not in names]
    if unknown:
        raise CaseError(
            f"no field {unknown[0]!r}", key="pde.boundary", suggestion=suggest(unknown[0], names),
            remedy="give conditions for all fields by axis, or for each field by its name",
        )  # fmt: skip
    return result


def _is_complex(name: str, settings: PdeSettings) -> bool:
    """Return whether an unknown is complex."""
    kind = settings.dtype.get(name, "f8") if isinstance(settings.dtype, dict) else settings.dtype
    return kind.startswith("c")


def _sides(value: object, key: str) -> tuple[Condition, Condition]:
    """Return the conditions at both ends of an axis."""
    pair = value if isinstance(value, list) else [value, value]
    if len(pair) != 2:
        raise CaseError(f"found {shown(value)}", key=key, remedy=f"write {_FORMS}")
    low, high = (_condition(each, key) for each in pair)
    return low, high


def _condition(value: object, key: str) -> Condition:
    """Return one condition."""
    if value == "antiperiodic":
        return antiperiodic()
    if isinstance(value, Mapping) and len(value) == 1:
        ((word, given),) = value.items()
        match word:
            case "no_flux" if given is True:
                return no_flux()
            case "dirichlet":
                return dirichlet(_value(given, key))
            case "neumann":
                return neumann(_value(given, key))
            case "robin" if isinstance(given, list) and len(given) == 2:
                a, b = (_value(each, key) for each in given)
                return robin(a, b)
    if value == "periodic":
        raise CaseError(
            "found 'periodic'", key=key, remedy="grid.boundary says which axes are periodic, for all fields"
        )
    words = [word for word in value if word not in _WORDS] if isinstance(value, Mapping) else []
    close = suggest(words[0], _WORDS) if words else None
    raise CaseError(f"found {shown(value)}", key=key, suggestion=close, remedy=f"write {_FORMS}")


def _value(given: object, key: str) -> float | str:
    """Return a value at a wall: a number or a text."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise CaseError(f"found {shown(given)}", key=key, remedy="give a number, or a text of coordinates and t")
    return given if isinstance(given, str) else float(given)

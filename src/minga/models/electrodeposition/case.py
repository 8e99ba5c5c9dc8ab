"""Conversion of a case's table [electrodeposition] into a checked Problem and its Model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.case.settings import GridSettings, thinning
from minga.engine.model import Model
from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.electrodeposition.composition import species_of
from minga.models.electrodeposition.conditions import check_pair, electrode_of
from minga.models.electrodeposition.contacts import check_attached
from minga.models.electrodeposition.curvature import check_surface_energy
from minga.models.electrodeposition.electrolytes import METALS, SATURATION, metal_of
from minga.models.electrodeposition.fronts import record_fronts
from minga.models.electrodeposition.geometry import check_equal_cells, grid_of, kinds_of
from minga.models.electrodeposition.groups import charge_balance
from minga.models.electrodeposition.preflight import check_cutoff, notes_of
from minga.models.electrodeposition.problem import Electrode, Growth, Problem, Species, Steps
from minga.models.electrodeposition.properties import check_solution, solution_for
from minga.models.electrodeposition.protocols.fitting import (
    check_limits,
    check_measured,
    program_cutoff,
    reference_of,
    with_end,
)
from minga.models.electrodeposition.protocols.reading import parts_of
from minga.models.electrodeposition.protocols.segments import Part, largest_current
from minga.models.electrodeposition.race import check_grain
from minga.models.electrodeposition.reacting import check_reactions
from minga.models.electrodeposition.settings import ElectrodepositionSettings, GrowthSettings, TimeSettings
from minga.models.electrodeposition.solubility import PRODUCTS
from minga.models.electrodeposition.surroundings import chosen_constants, gravity_of
from minga.models.electrodeposition.units import scaled_units, units_of
from minga.space.grid import Grid

__all__ = ["make", "make_to_plan", "options_of", "problem_of"]

CUTOFF: float = 5.0
"""Default cut-off voltage, V: far above what the bath and its electrodes need; in water, other reactions set in at a
fifth of it."""
MOST_PLANNED: int = 1 << 18
"""Number of cells above which a plan is made for a coarser grid: a model has arrays of all its cells."""
SCALED_CUTOFF: float = 200.0
"""Default cut-off voltage of scaled cases, RT/F."""


def make(settings: ElectrodepositionSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [electrodeposition] of a case describes."""
    return _made(settings, grid, directory)


def make_to_plan(settings: ElectrodepositionSettings, grid: GridSettings, directory: Path) -> Model:
    """Make a model that is only planned; one of very many cells stands for them on a coarser grid of the same cell."""
    shape, files = grid.shape, any(solid.file is not None for solid in settings.solids)
    if shape is None or files or math.prod(shape) <= MOST_PLANNED:
        return make(settings, grid, directory)
    factors = thinning(shape, MOST_PLANNED)
    coarse = tuple(-(-cells // factor) for cells, factor in zip(shape, factors, strict=True))
    return _made(settings, GridSettings(shape=coarse), directory, stands_for=shape)


def _made(
    settings: ElectrodepositionSettings,
    grid: GridSettings,
    directory: Path,
    stands_for: tuple[int, ...] | None = None,
) -> Model:
    from minga.models.electrodeposition.model import electrodeposition

    problem = problem_of(settings, grid, directory)
    model = electrodeposition(problem, scheme=settings.scheme, **options_of(settings))
    model = replace(model, **_observed(model, problem, metal_of(problem.species, settings.metal)))
    notes = [*notes_of(problem, scaled=settings.scaled), *model.notes]
    if stands_for is not None:
        cells = f"{_by(problem.grid.shape)} cells, which stand for the {_by(stands_for)} of the case"
        notes.insert(0, ("cells", f"planned and described on {cells}"))
    clock = model.clock
    if settings.scaled and clock is not None:
        clock = replace(clock, unit="1")
    return replace(
        model,
        clock=clock,
        units=scaled_units(model.units) if settings.scaled else model.units,
        notes=tuple(notes),
        steps=problem.steps.count,
        stands_for=stands_for,
    )


def _by(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def _observed(model: Model, problem: Problem, metal: Species) -> dict[str, Any]:
    """Return what observing adds to a model: where the layers at the electrodes end."""
    if metal.bulk <= 0:
        return {}
    observe = Program("observe") if model.observe is None else model.observe
    fronts = record_fronts(observe, problem.grid, model.field("kind"), model.field(metal.name), metal.bulk)
    units = {**model.units, **units_of(fronts, problem.grid.ndim)}
    return {"observe": observe, "observables": {**model.observables, **fronts}, "units": units}


def options_of(settings: ElectrodepositionSettings) -> dict[str, object]:
    """Return the options that a case sets for its scheme.

    Raises
    ------
    CaseError
        If the case has options of another scheme.
    """
    name = settings.scheme.replace("-", "_")
    for other in ("relaxation", "semi_implicit"):
        if other != name and getattr(settings, other) is not None:
            raise CaseError(
                f"[electrodeposition.{other}] in a case whose scheme is {settings.scheme!r}",
                key=f"electrodeposition.{other}",
                remedy=f'leave it out, or write scheme = "{other.replace("_", "-")}"',
            )
    table = getattr(settings, name)
    return {} if table is None else table.model_dump(exclude_none=True)


def problem_of(settings: ElectrodepositionSettings, grid: GridSettings, directory: Path) -> Problem:
    """Return the problem that a case describes.

    Raises
    ------
    CaseError
        If the case cannot be solved as described; the error names the key.
    """
    if grid.boundary is not None:
        raise CaseError(
            "the ends of a cell are always glass and electrodes",
            key="grid.boundary",
            remedy='leave it out; for periodic ends write periodic = ["x"] in [electrodeposition]',
        )
    species = species_of(settings)
    metal = metal_of(species, settings.metal)
    space = grid_of(settings, grid.shape)
    constants = chosen_constants(settings, species)
    gravity, flow = gravity_of(settings, space)
    _check_drive(settings)
    default = "reversible" if settings.debye is None and settings.scheme != "relaxation" else "held"
    cathode = electrode_of(settings.cathode, "cathode", species, metal, default)
    anode = electrode_of(settings.anode, "anode", species, metal, default)
    protocol = parts_of(settings.program, directory=directory) if settings.program else ()
    check_pair(cathode, anode, settings.current or largest_current(protocol) or settings.current)
    kinds = kinds_of(settings, space, directory)
    if settings.scheme == "relaxation" and flow:
        check_attached(kinds, space)
    problem = Problem(
        grid=space,
        species=species,
        steps=_steps(
            with_end(settings.time, protocol),
            fixed=settings.scheme == "relaxation",
            unit="" if settings.scaled else " s",
        ),
        constants=constants,
        kinds=kinds,
        cathode=cathode,
        anode=anode,
        voltage=settings.voltage,
        current=settings.current,
        protocol=protocol,
        reference=reference_of(settings, space),
        metal=metal.name,
        cutoff=_cutoff(settings, protocol),
        solution=solution_for(settings, species, constants, directory),
        saturation=_saturation(settings, species),
        sparing=() if settings.scaled else tuple(s for s in PRODUCTS if s.within(ion.name for ion in species)),
        molar_volume=None if settings.scaled else METALS.get(metal.name),
        gravity=gravity,
        flow=flow,
        growth=_growth(settings, species, metal, cathode),
        seed=settings.seed,
        initial=_disturbed(settings, species, space),
    )
    check_measured(problem)
    check_solution(problem, settings.scheme)
    check_reactions(problem, settings.scheme)
    check_limits(problem)
    check_surface_energy(problem)
    check_grain(problem)
    if problem.growth is not None and (problem.growth.radius or problem.growth.grain):
        check_equal_cells(space)
    if settings.scheme != "relaxation":
        check_cutoff(problem, scaled=settings.scaled)
    return problem


def _check_drive(settings: ElectrodepositionSettings) -> None:
    given = [name for name in ("voltage", "current", "program") if getattr(settings, name) is not None]
    if len(given) != 1:
        found = ("both " if len(given) == 2 else "") + (" and ".join(given) or "neither voltage nor current")
        raise CaseError(
            f"the case has {found}: exactly one of voltage, current and program must drive the cell",
            key=f"electrodeposition.{given[0] if given else 'voltage'}",
            remedy='write voltage = 0.5, current = "5 mA/cm2", or program = [{hold = "5 mA/cm2", time = "10 s"}]',
        )


def _cutoff(settings: ElectrodepositionSettings, protocol: Sequence[Part]) -> float:
    """Return the voltage (V, or RT/F in scaled cases) at which a run ends whose voltage is sought."""
    usual = SCALED_CUTOFF if settings.scaled else CUTOFF
    if protocol and (settings.reference is not None or largest_current(protocol) is not None):
        return program_cutoff(settings, protocol, usual)
    if settings.cutoff is not None and settings.current is None:
        raise CaseError(
            "a cut-off voltage has no effect where the voltage is given",
            key="electrodeposition.cutoff",
            remedy="leave it out; it ends only runs whose current is given",
        )
    if settings.current is None:
        return math.inf
    return usual if settings.cutoff is None else settings.cutoff


def _saturation(settings: ElectrodepositionSettings, species: Sequence[Species]) -> dict[str, float]:
    """Return the solubilities that the case gives, and those of the known sulphates."""
    names = {s.name for s in species}
    given = {s.name: s.solubility for s in settings.species or () if s.solubility is not None}
    known = {} if settings.scaled or "SO4" not in names else SATURATION
    return {name: limit for name, limit in known.items() if name in names} | given


def _steps(settings: TimeSettings, *, fixed: bool, unit: str) -> Steps:
    assert settings.end is not None
    every = settings.end / 100 if settings.every is None else settings.every
    count = settings.end / every
    whole = math.isclose(count, round(count), rel_tol=1e-6)
    if round(count) < 1 or every > settings.end * (1.0 + 1e-6) or (fixed and not whole):
        quote = '"' if unit else ""
        raise CaseError(
            f"every ({every:g}{unit}) is longer than end ({settings.end:g}{unit})"
            if every > settings.end
            else f"every ({every:g}{unit}) does not divide end ({settings.end:g}{unit}): the ratio is {count:.4g}",
            key="electrodeposition.time.every",
            remedy=f"write every = {quote}{settings.end / max(1, round(count)):.9g}{unit}{quote}, "
            "or a fraction of that",
        )
    first = (every if fixed else every / 100) if settings.first is None else settings.first
    if first > every:
        raise CaseError(
            f"the first time step ({first:g}{unit}) is longer than every ({every:g}{unit})",
            key="electrodeposition.time.first",
            remedy="make it as long as every, or shorter",
        )
    return Steps(
        settings.end,
        settings.end / round(count) if whole else every,
        first,
        settings.adaptive and not fixed,
        settings.tolerance,
        settings.order,
        settings.flow_tolerance,
    )


def _growth(
    settings: ElectrodepositionSettings, species: Sequence[Species], metal: Species, cathode: Electrode
) -> Growth | None:
    if settings.growth is False:
        return None
    if metal.name not in cathode.surfaces:
        raise CaseError(
            f"a deposit of {metal.name} cannot grow, because {metal.name} does not pass at the cathode",
            key="electrodeposition.growth",
            remedy=f'let it pass: cathode = "reversible", or a table with {metal.name}; or leave growth out',
        )
    chosen = GrowthSettings() if settings.growth is True else settings.growth
    volume = METALS.get(metal.name) if chosen.volume is None and not settings.scaled else chosen.volume
    if volume is None:
        raise CaseError(
            f"the molar volume of {metal.name} is not known",
            key="electrodeposition.growth.volume",
            remedy=f"give it in m3/mol; that of Zn is {METALS['Zn']:.3g}",
        )
    porosity = charge_balance(species, metal, volume) if chosen.porosity is None else chosen.porosity
    radius, energy = chosen.radius or 0.0, chosen.surface_energy or 0.0
    return Growth(metal.name, volume, porosity, chosen.exponent, radius, chosen.onset, energy, chosen.grain or 0.0)


def _disturbed(
    settings: ElectrodepositionSettings, species: Sequence[Species], grid: Grid
) -> dict[str, NDArray[np.float64]]:
    """Return initial concentrations with noise, by the same factor for all ions so that the bath stays neutral."""
    if not settings.noise:
        return {}
    factor = 1 + settings.noise * np.random.default_rng(settings.seed).uniform(-1.0, 1.0, grid.shape)
    return {ion.name: ion.bulk * factor for ion in species}

"""Facts about a cell that are shown before it starts: its layers, currents, times and dimensionless groups."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from minga.errors import CaseError
from minga.models.electrodeposition.acid import acid_of
from minga.models.electrodeposition.concentrated import Solution
from minga.models.electrodeposition.curvature import per_curvature
from minga.models.electrodeposition.equilibrium import Equilibrium
from minga.models.electrodeposition.groups import (
    Salt,
    Scales,
    charge_balance,
    conductivity,
    debye_length,
    groups_of,
    limiting_current,
)
from minga.models.electrodeposition.liquids import liquid_of, water_viscosity
from minga.models.electrodeposition.note_units import SCALED, SI, Notes, prefixed
from minga.models.electrodeposition.problem import FLUID, Constants, Growth, Problem, Species
from minga.models.electrodeposition.program_notes import notes_of_program, warnings_of_impedances
from minga.models.electrodeposition.speciation import MOST, most_pairs, pairs_of, unknown_pairs

__all__ = ["check_cutoff", "notes_of"]

THIN: Final = 1 / 3
"""Widest gap, in lengths of the cell, to which the velocity of rolls in a thin cell applies."""
KELVIN, ZERO = 298.15, 273.15
"""25 C, at which the constants hold, and 0 C, in K."""


def check_cutoff(problem: Problem, *, scaled: bool = False) -> None:
    """Reject a cell without solids whose bath needs more than the cut-off voltage from the beginning.

    Raises
    ------
    CaseError
        If the voltage across the bath at the given current exceeds the cut-off.
    """
    if problem.current is None or problem.kinds is not None:
        return
    unit = (SCALED if scaled else SI)["potential"]
    drop = abs(_drop(problem, problem.current))
    if drop > problem.cutoff:
        raise CaseError(
            f"the bath alone needs {drop:.3g}{unit}, more than the cut-off of {problem.cutoff:g}{unit}",
            key="electrodeposition.cutoff",
            remedy=f"raise the cut-off above {drop:.3g}{unit}, or lower the current or the length of the bath",
        )


def notes_of(problem: Problem, *, scaled: bool = False) -> Notes:
    """Return the facts about a cell as pairs of a name and a text."""
    unit = SCALED if scaled else SI
    yield from _undissolved(problem)
    yield from warnings_of_impedances(problem, unit, _conductivity(problem))
    if problem.current is not None and (drop := abs(_drop(problem, problem.current))) > problem.cutoff:
        across = f"the bath alone would need {drop:.3g}{unit['potential']} without the solids in it"
        yield "warning", f"{across}, more than the cut-off of {problem.cutoff:g}{unit['potential']}"
    yield "ions", ", ".join(f"{_ion(s)} {s.bulk:.4g}{unit['concentration']}" for s in problem.species)
    salt = Salt.of(problem.species)
    if salt is not None:
        diffusivity, t = salt.diffusivity, salt.transference
        if isinstance(problem.solution, Solution):
            place = _charges(problem), _salt(problem)
            diffusivity, t = problem.solution.salt_diffusivity(*place), problem.solution.transference(*place)
        share = f"the cation carries {100 * t:.1f} % of the current"
        yield "salt", f"ambipolar diffusivity {diffusivity:.4g}{unit['diffusivity']}; {share}"
    yield from _layers(problem, unit)
    yield from _currents(problem, salt, unit)
    if unit is SI:
        yield from _temperature(problem)
        yield from _liquid(problem)
    if problem.solution is None:
        yield from _flow(problem, salt, unit)
    yield from _groups(problem, salt, unit)
    if problem.kinds is not None:
        solid = int(np.count_nonzero(problem.kinds != FLUID))
        yield "solid", f"{solid:,} cells, {100 * solid / problem.kinds.size:.2g} % of the cell"
    if problem.growth is not None:
        yield "deposit", _deposit(problem, problem.growth, unit)
    yield from notes_of_program(problem, unit)
    steps = problem.steps
    adaptive = f"in time steps that keep errors below {steps.tolerance:g}"
    how = adaptive if steps.adaptive else f"in steps of {steps.first:g}{unit['time']}"
    yield "time", f"{steps.end:g}{unit['time']} {how}, observed every {steps.every:g}{unit['time']}"


def _undissolved(problem: Problem) -> Notes:
    """Return warnings of salts that the bath does not dissolve."""
    for ion in problem.species:
        if ion.bulk > (limit := problem.saturation.get(ion.name, math.inf)):
            yield "warning", f"{ion.bulk:.4g} mol/m3 of {ion.name}: its salt is saturated at about {limit:.4g} mol/m3"
    bath = {ion.name: ion.bulk for ion in problem.species}
    for salt in problem.sparing:
        if (times := salt.ratio(bath)) > 1.0:
            ions = " and ".join(f"{bath[name]:.4g} mol/m3 of {name}" for name in salt.ions)
            yield "warning", f"{ions}: {salt.name} may precipitate; {times:.3g} times its solubility product"


def _deposit(problem: Problem, growth: Growth, unit: dict[str, str]) -> str:
    """Return the porosity of the deposit beside that of charge balance, and the width of its branches."""
    metal = next(s for s in problem.species if s.name == growth.ion)
    balanced = charge_balance(problem.species, metal, growth.volume)
    same = math.isclose(growth.porosity, balanced, rel_tol=1e-12)
    porosity = f"porosity {growth.porosity:.5g}, " + ("by" if same else f"not {balanced:.5g} by") + " charge balance"
    if same and growth.porosity == 0.0:
        porosity += ", as the bath contains as much metal as a compact deposit"
    elif same and len(problem.cathode.surfaces) > 1:
        porosity += ", an upper bound where other reactions carry a part of the current"
    wide = f"about {prefixed(growth.radius, unit['length'])} wide" if growth.radius else "as wide as a cell"
    text = f"{porosity}; branches are {wide}"
    if growth.surface_energy and growth.radius:
        shift = prefixed(per_curvature(problem) / growth.radius, unit["potential"])
        text += f"; at a curvature of 1/radius the surface energy shifts the potential by {shift}"
    return text


def _layers(problem: Problem, unit: dict[str, str]) -> Notes:
    """Yield the Debye length, compared with the cells that would have to resolve it, and the conductivity."""
    debye = debye_length(problem.species, problem.constants)
    half = 0.5 * float(problem.grid.widths("y")[0])
    ratio = 2 * half / debye
    said = "resolved" if ratio <= 2 else "not resolved: the charge of the layer lies in the cells next to the metal"
    yield "Debye length", f"{prefixed(debye, unit['length'])}; the first cell is {ratio:.3g} times as wide ({said})"
    sigma = _conductivity(problem)
    relaxation = problem.constants.permittivity / sigma
    vanish = f"charge relaxes in {prefixed(relaxation, unit['time'])}"
    yield "conductivity", f"{sigma:.4g}{unit['conductivity']}; {vanish}"
    pairs = pairs_of(problem.species, problem.constants) if unit is SI and problem.solution is None else None
    if pairs is not None:
        held = f"about {100 * pairs.fraction:.0f} % of the metal, which leaves {pairs.conductivity:.2g} S/m"
        factor = f"its voltage across the bath is {sigma / pairs.conductivity:.1f} times too low"
        cure = 'solution = "pairs" has them in the equations'
        yield "ion pairs", f"{held}; the model has free ions only, and {factor}; {cure}"
    most = most_pairs(problem.species, problem.constants) if unit is SI and problem.solution is None else None
    if most is not None:
        ratio = sigma * MOST / (max(s.bulk for s in problem.species) * most.conductivity)
        known = f"{100 * most.fraction:.0f} % of the metal at {MOST:g} mol/m3, the most they are known for"
        factor = f"its voltage across the bath is more than {ratio:.1f} times too low"
        cure = 'solution = {file = "bath.csv"} has measured properties'
        yield "ion pairs", f"{known}; the model has free ions only, and {factor}; {cure}"
    if unit is SI and problem.solution is None and unknown_pairs(problem.species):
        text = "not known for this salt; the model has free ions only, and its voltage across the bath is too low"
        yield "ion pairs", f"{text}: at 0.1 mol/l, pairs leave ZnSO4 and CuSO4 a third of the conductivity of free ions"
    acid = acid_of(problem.species, problem.constants) if unit is SI else None
    if acid is not None:
        held = f"about {100 * acid.bisulphate:.0f} % of H+ is in HSO4-"
        if acid.paired:
            held += f" and {100 * acid.paired:.0f} % of the metal in ion pairs"
        factor = f"conducts {sigma / acid.conductivity:.1f} times too well"
        free = f'the model has free ions only, and {factor}; solution = "pairs" has it in the equations'
        known = "by local equilibrium in every cell" if problem.solution is not None else free
        yield "bisulphate", f"{held}, which leaves {acid.conductivity:.3g} S/m; {known}"


def _currents(problem: Problem, salt: Salt | None, unit: dict[str, str]) -> Notes:
    limit = limiting_current(problem)
    if salt is None or limit is None:
        return
    faraday = problem.constants.faraday
    yield "limiting current", f"{limit:.4g}{unit['current']}, in a steady state without flow"
    current = problem.current
    if not current:
        return
    across = f"{_drop(problem, current):.3g}{unit['potential']} across the bath at first"
    yield "current", f"{current:.4g}{unit['current']}, {100 * current / limit:.3g} % of the limit; {across}"
    if current > 0:
        time = prefixed(salt.sand(current, faraday), unit["time"])
        beyond = ", after which, without flow, the cathode runs out of ions"
        below = " in an infinitely long cell; in this cell, below the limit, ions never run out"
        yield "Sand's time", time + (beyond if current > limit else below)


def _drop(problem: Problem, current: float) -> float:
    """Return the voltage across a homogeneous bath."""
    sigma = _conductivity(problem)
    return current * _length(problem, "y") / sigma if sigma else 0.0


def _conductivity(problem: Problem) -> float:
    """Return the conductivity of the bulk, S/m."""
    if problem.solution is None:
        return conductivity(problem.species, problem.constants)
    if isinstance(problem.solution, Equilibrium):
        return problem.solution.bath.conductivity
    return problem.solution.conductivity(_charges(problem), problem.constants, _salt(problem))


def _charges(problem: Problem) -> list[int]:
    return [s.charge for s in problem.species]


def _salt(problem: Problem) -> float:
    """Return the concentration of the salt of a concentrated solution, mol/m3."""
    assert isinstance(problem.solution, Solution)
    number, count = next(iter(problem.solution.counts.items()))
    return problem.species[number].bulk / count


def _temperature(problem: Problem) -> Notes:
    """Yield how much diffusivities of 25 C differ from those at another temperature."""
    kelvin = KELVIN * problem.constants.thermal / Constants().thermal
    if abs(kelvin - KELVIN) < 1.0 or not 0.0 <= kelvin - ZERO <= 100.0:
        return
    factor = kelvin / KELVIN * water_viscosity(KELVIN - ZERO) / water_viscosity(kelvin - ZERO)
    text = f"{kelvin:.5g} K; diffusivities of named salts are those of 25 C; here ions diffuse about {factor:.3g} times"
    yield "temperature", f"{text} as fast (temperature over viscosity of water); list them with species"


def _liquid(problem: Problem) -> Notes:
    """Yield the density and the viscosity of the bath beside those of the equations."""
    constants = problem.constants
    liquid = liquid_of(problem.species, KELVIN * constants.thermal / Constants().thermal - ZERO)
    if liquid is not None:
        found = f"{liquid.density:.4g} kg/m3 and {1e3 * liquid.viscosity:.3g} mPa s at {liquid.celsius:.3g} C"
        used = f"the equations have {constants.density:.4g} kg/m3 and {1e3 * constants.viscosity:.3g} mPa s (constants)"
        yield "liquid", f"{found}; {used}"


def _flow(problem: Problem, salt: Salt | None, unit: dict[str, str]) -> Notes:
    """Yield the expected velocity of gravity-driven flow between horizontal plates, once the layers have met."""
    axes = problem.grid.axes
    if not (problem.flow and any(problem.gravity)):
        return
    pull = dict(zip(axes, problem.gravity))
    if salt is None or not salt.expansion or not pull.get("z") or pull.get("y"):
        return
    gap = _length(problem, "z")
    if gap > THIN * _length(problem, "y"):
        return
    gradient = _gradient(problem, salt)
    nu = problem.constants.viscosity / problem.constants.density
    velocity = salt.roll_velocity(gradient, gap, nu, abs(pull["z"]))
    spread = (velocity * 216 / math.sqrt(3) * gap / salt.diffusivity) ** 2 / 362880
    mixing = f"they mix {1 + spread:.3g} times as fast as diffusion"
    yield "rolls", f"up to {prefixed(velocity, unit['velocity'])} expected in the middle, where {mixing}"


def _gradient(problem: Problem, salt: Salt) -> float:
    """Return the steady concentration gradient in the middle of the cell, without flow."""
    steepest = 2 * salt.concentration / _length(problem, "y")
    if problem.current is not None:
        return min(steepest, salt.gradient(abs(problem.current), problem.constants.faraday))
    return steepest * math.tanh(0.25 * salt.cation.charge * problem.beta * abs(problem.voltage or 0.0))


def _groups(problem: Problem, salt: Salt | None, unit: dict[str, str]) -> Notes:
    length = _length(problem, "y")
    diffusivity = salt.diffusivity if salt else max(s.diffusivity for s in problem.species)
    concentration = salt.concentration if salt else max(s.bulk for s in problem.species)
    scales = Scales(length, diffusivity / length, 1 / problem.beta, concentration)
    gravity = math.hypot(*problem.gravity)
    found = groups_of(problem.species, problem.constants, scales, gravity)
    measures = (
        f"x0 {length:.3g}{unit['length']}, u0 {scales.velocity:.3g}{unit['velocity']}, Phi0 RT/F, "
        f"C0 {concentration:.3g}{unit['concentration']}"
    )
    numbers = f"Po {found.poisson:.3g}, Re {found.reynolds:.3g}, Ge {found.coulomb:.3g}, Ge/Po {found.force:.3g}"
    yield "groups", f"{numbers} for {measures}"
    if problem.flow:
        viscosity, density = problem.constants.viscosity, problem.constants.density
        kappa = problem.constants.permittivity / (problem.beta * problem.beta * viscosity * diffusivity)
        schmidt = f"Schmidt number {viscosity / (density * diffusivity):.4g}"
        yield (
            "flow",
            f"kappa {kappa:.4g}, permittivity (RT/F)^2 / (viscosity D), by which the field drives it; {schmidt}",
        )
    ions = []
    for ion, m, pe, gg in zip(problem.species, found.migration, found.peclet, found.buoyancy):
        ions.append(f"{ion.name}: M {m:.4g}, Pe {pe:.4g}" + (f", Gg {gg:.3g}" if gg else ""))
    yield "ion groups", "; ".join(ions)


def _length(problem: Problem, axis: str) -> float:
    return float(np.ptp(problem.grid.faces(axis)))


def _ion(species: Species) -> str:
    charge = abs(species.charge)
    sign = "+" if species.charge > 0 else "-"
    return species.name + (f" {'' if charge == 1 else charge}{sign}" if charge else "")

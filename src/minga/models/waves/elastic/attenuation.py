"""Attenuation of elastic waves with nearly constant Q of P and S waves.

Both moduli are those of a generalised standard linear solid (`minga.models.waves.attenuation`), with a strength of the
mechanisms for lambda + 2 mu and one for mu. With w the rate of a stress for the unrelaxed moduli and w' that for
the products of relaxed moduli and strengths, each stress s has a memory variable for each mechanism,

    s_t = w - sum of r_l,        r_l,t = (w' - r_l) / t_l

Source: J. O. A. Robertsson, J. O. Blanch, W. W. Symes, "Viscoelastic finite-difference modeling", Geophysics 59(9),
1994. A memory variable is the mean of its values before and after a step, so that a step of the stresses adds

    w_e dt - sum of r_l dt / (1 + h_l),        h_l = dt / (2 t_l)

where w_e belongs to the moduli M (1 + tau sum of 1 / (1 + h_l)) of relaxed moduli M: these are the coefficients of the
equations. On a free surface the strain along its normal keeps the stress along it at 0, memory variables included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minga.engine.program import Program
from minga.lang.expr import flushed
from minga.models.waves.boundary import Free
from minga.models.waves.elastic.kernels import Elasticity, Fields
from minga.models.waves.elastic.layout import Component
from minga.models.waves.stencils import total
from minga.space.boundary import fixed
from minga.space.box import Box
from minga.space.field import Field
from minga.space.grid import Grid

if TYPE_CHECKING:
    from minga.models.waves.elastic.waves import ElasticWaves

__all__ = ["memory_fields", "record_relaxation"]


def memory_fields(components: list[Component], count: int, grid: Grid, dtype: str) -> dict[str, tuple[Field, ...]]:
    """Return the increment of each stress by a step and its memory variables, by the name of the stress.

    Parameters
    ----------
    components
        The stresses.
    count
        Number of mechanisms.
    grid
        The grid.
    dtype
        "f4" or "f8".
    """
    found = {}
    for each in components:
        name = each.name
        about = {f"{name}_increment": f"increment of {name} by a step"}
        about |= {f"{name}_memory_{k}": f"relaxation {k} of {name}" for k in range(count)}
        found[name] = tuple(
            Field(item, grid, dtype, boundary=fixed(0.0), unit="Pa", description=text) for item, text in about.items()
        )
    return found


def record_relaxation(step: Program, waves: ElasticWaves) -> None:
    """Record the addition of relaxed increments to the stresses.

    Parameters
    ----------
    step
        Program of the time step.
    waves
        The waves.
    """
    assert waves.relaxation is not None
    equations, halves = waves.elasticity, waves.relaxation.attenuation.halves(waves.dt)
    groups = [[each] for each in equations.named("shear")] + [equations.named("normal")]
    for group in groups:
        names = [each.name for each in group]
        fields = {**waves.named, **_named(waves, names)}
        used = [f"tau_{names[0][1:]}" if group[0].kind == "shear" else "tau"]
        if group[0].kind == "normal":
            used = ["lambda", "mu", "tau", "tau_p"] if waves.relaxation.several else used
            if isinstance(waves.faces[0][0], Free):
                _record_surface(step, waves, fields, halves)
        stored = [name for name in used if name not in equations.constants]
        listed = [*names, *_named(waves, names), *stored]

        def act(given: Fields, names: list[str] = names, used: list[str] = used) -> None:
            _relax(equations, given, names, used, halves)

        kernel = equations.kernel(f"elastic_relaxation_{names[0]}", listed, act)
        step.apply(kernel, [fields[name] for name in listed])


def _named(waves: ElasticWaves, names: list[str]) -> dict[str, Field]:
    """Return the increments and memory variables of some stresses by their names."""
    return {item.name: item for name in names for item in waves.memories[name]}


def _held(given: Fields, name: str, halves: tuple[float, ...], here: tuple[int, ...]) -> Any:
    """Return what memory variables take from a stress in a step."""
    return total(given[f"{name}_memory_{k}"][here] * (1.0 / (1.0 + half)) for k, half in enumerate(halves))


def _relax(equations: Elasticity, given: Fields, names: list[str], used: list[str], halves: tuple[float, ...]) -> None:
    """Store stresses and memory variables after a step."""
    here = equations.here
    known = {name: equations.coefficient(name, given) for name in used}
    added = {name: given[f"{name}_increment"][here] for name in names}
    ratio, volume = known[next(name for name in used if name.startswith("tau"))], None
    if "tau_p" in known:
        modulus, twice = known["lambda"], 2.0 * known["mu"]
        more = (modulus + twice) * (known["tau_p"] - ratio) / (float(len(names)) * modulus + twice)
        volume = more * total(added[name] for name in names)
    for name in names:
        pulled = ratio * added[name] if volume is None else ratio * added[name] + volume
        given[name][here] = flushed(given[name][here] + (added[name] - _held(given, name, halves, here)))
        for k, half in enumerate(halves):
            memory = given[f"{name}_memory_{k}"]
            memory[here] = flushed(((1.0 - half) * memory[here] + 2.0 * half * pulled) * (1.0 / (1.0 + half)))


def _record_surface(step: Program, waves: ElasticWaves, fields: dict[str, Field], halves: tuple[float, ...]) -> None:
    """Record the increments by the strain that keeps the stress normal to a free surface at 0."""
    equations, here = waves.elasticity, waves.elasticity.here
    normal = equations.named("normal")
    across = next(each.name for each in normal if each.axes[0] == 0)
    others = [each.name for each in normal if each.name != across]

    def act(given: Fields) -> None:
        held = _held(given, across, halves, here)
        modulus, twice = equations.coefficient("lambda", given), 2.0 * equations.coefficient("mu", given)
        given[f"{across}_increment"][here] = held
        for name in others:
            increment = given[f"{name}_increment"]
            increment[here] = increment[here] + modulus / (modulus + twice) * held

    memories = [f"{across}_memory_{k}" for k in range(len(halves))]
    stored = [name for name in ("lambda", "mu") if name not in equations.constants]
    names = [*(f"{each.name}_increment" for each in normal), *memories, *stored]
    whole = waves.grid.box
    row = Box(whole.lo, (whole.lo[0] + 1, *whole.hi[1:]))
    step.apply(equations.kernel("elastic_relaxation_surface", names, act), [fields[name] for name in names], region=row)

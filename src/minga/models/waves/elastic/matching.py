"""Perfectly matched layers of elastic waves: a memory variable for each derivative along the axis of a layer.

A layer replaces D u by D u + psi with psi = b psi + a D u (`minga.models.waves.boundary.Cpml`). A step is computed as
if there were no layer; each layer then adds what its memory variables contribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.engine.program import Program
from minga.lang.expr import flushed
from minga.models.waves.absorption import Profiles, add_profiles, matched_layers
from minga.models.waves.boundary import Free
from minga.models.waves.elastic.kernels import Elasticity, Fields
from minga.models.waves.elastic.layout import Component
from minga.models.waves.elastic.medium import coefficient
from minga.space.box import Box
from minga.space.field import Field

if TYPE_CHECKING:
    from minga.models.waves.elastic.waves import ElasticWaves

__all__ = ["record_layers"]


def record_layers(
    step: Program,
    waves: ElasticWaves,
    frequency: float,
    memories: list[Field],
    profiles: Profiles,
    named: Fields,
    *,
    velocities: bool,
) -> None:
    """Record the contributions of all matched layers to the velocities or to the stresses of a step.

    Parameters
    ----------
    step
        Program of the time step.
    waves
        The waves.
    frequency
        Frequency of the sources, Hz, used by layers that do not name one.
    memories
        Memory variables, to which those of this part of the step are added.
    profiles
        Coefficients of the layers, likewise.
    named
        Fields of the waves and of the coefficients by name; in place of stresses, their increments with attenuation.
    velocities
        Whether to record the contributions to the velocities; otherwise those to the stresses.
    """
    equations = waves.elasticity
    targets = equations.named("velocity") if velocities else [equations.velocity(a) for a in range(waves.grid.ndim)]
    # Values half a cell before the last cell of the model lie in the layer.
    for layer in matched_layers(waves, 0, 1):
        axis, box = layer.axis, layer.box
        for target in targets:
            source = equations.stress(target.axes[0], axis) if velocities else target
            own = layer.profiles(waves.speeds.fastest_p, frequency, half=not source.half[axis])
            a, b = add_profiles(own, profiles)
            psi = Field(f"psi_{source.name}_{layer.name}", waves.grid, waves.fields[0].dtype, on=box)
            memories.append(psi)
            fields = {**named, "psi": psi, "a": a, "b": b}
            _record_memory(step, equations, source, axis, fields)
            if velocities or target.axes[0] != axis:
                other = target if velocities else equations.stress(target.axes[0], axis)
                _record_added(step, equations, other, box, fields)
            else:
                _record_normal(step, waves, axis, box, fields)


def _record_memory(step: Program, equations: Elasticity, source: Component, axis: int, fields: Fields) -> None:
    """Record the step of a memory variable."""

    def act(given: Fields) -> None:
        psi, u = given["psi"], given[source.name]
        derivative = equations.difference(u, source, axis)
        psi[equations.here] = flushed(given["b"][0] * psi[equations.here] + given["a"][0] * derivative)

    names = ["psi", source.name, "a", "b"]
    step.apply(equations.kernel("elastic_psi", names, act), [fields[name] for name in names])


def _record_added(step: Program, equations: Elasticity, target: Component, box: Box, fields: Fields) -> None:
    """Record what a memory variable adds to a velocity or a shear stress."""
    name = coefficient(target)

    def act(given: Fields) -> None:
        u = given[target.name]
        u[equations.here] = u[equations.here] + equations.coefficient(name, given) * given["psi"][equations.here]

    names = [target.name, "psi", *([] if name in equations.constants else [name])]
    step.apply(equations.kernel("elastic_cpml", names, act), [fields[each] for each in names], region=box)


def _record_normal(step: Program, waves: ElasticWaves, axis: int, box: Box, fields: Fields) -> None:
    """Record what the memory variable of a strain adds to the normal stresses."""
    equations = waves.elasticity
    stored = [name for name in ("lambda", "mu") if name not in equations.constants]
    names = [*(c.name for c in equations.named("normal")), *stored, "psi"]
    surface = isinstance(waves.faces[0][0], Free)
    for on_surface in (True, False) if surface else (False,):
        region = _cut(box, on_surface) if surface else box
        if region.size == 0:
            continue

        def act(given: Fields, on_surface: bool = on_surface) -> None:
            equations.add_normal(given, {axis: given["psi"][equations.here]}, surface=on_surface)

        kernel = equations.kernel("elastic_cpml_normal", names, act)
        step.apply(kernel, [fields[name] for name in names], region=region)


def _cut(box: Box, on_surface: bool) -> Box:
    """Return the cells of a box on the free surface, or below it."""
    lo, hi = list(box.lo), list(box.hi)
    if on_surface:
        hi[0] = min(1, hi[0])
    else:
        lo[0] = max(1, lo[0])
    return Box(tuple(lo), tuple(max(a, b) for a, b in zip(lo, hi, strict=True)))

"""Time steps of elastic waves with their boundaries and sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from minga.engine.program import Program
from minga.models.waves.boundary import Cpml, Free, Sponge, kinds
from minga.models.waves.elastic.attenuation import record_relaxation
from minga.models.waves.elastic.matching import record_layers
from minga.models.waves.elastic.medium import coefficient
from minga.models.waves.elastic.sources import ElasticSource, check_sources, record_sources
from minga.models.waves.keys import keys_of
from minga.models.waves.sponge import record_damping
from minga.models.waves.stepping import Stepping, lowest_peak
from minga.space.box import Box
from minga.space.field import STEP, Field

if TYPE_CHECKING:
    from minga.models.waves.elastic.waves import ElasticWaves

__all__ = ["elastic_stepping"]

Start = Callable[[Box], NDArray[np.float64]] | NDArray[np.float64]


def elastic_stepping(waves: ElasticWaves, sources: Sequence[ElasticSource]) -> Stepping:
    """Return a time step of waves with its boundaries and sources.

    After n steps stresses are those at n dt, and velocities those at (n - 1/2) dt.

    Parameters
    ----------
    waves
        The waves, from `prepare_elastic`.
    sources
        The sources.

    Returns
    -------
    Stepping
        The step.
    """
    check_sources(sources)
    step = Program("step")
    memories: list[Field] = []
    profiles: dict[Field, NDArray[np.float64]] = {}
    frequency = lowest_peak(sources)
    named, domain, faces = waves.named, waves.domain, waves.faces
    with keys_of("elastic"):
        for velocities in (True, False):
            _record_advance(step, waves, velocities=velocities)
            record_sources(
                step, sources, waves.elasticity, named, domain, faces, waves.dt, forces=velocities
            )  # fmt: skip
            if kinds(faces, Cpml):
                fields = waves.named if velocities else waves.advanced
                record_layers(step, waves, frequency, memories, profiles, fields, velocities=velocities)
        if waves.relaxation is not None:
            record_relaxation(step, waves)
    if kinds(faces, Sponge):
        profiles |= record_damping(step, waves, waves.speeds.fastest_p)
    step.let(STEP, STEP + 1)
    initial: dict[str, Start] = {**waves.start(), **{item.name: values for item, values in profiles.items()}}
    relaxed = [item for items in waves.memories.values() for item in items]
    return Stepping(step, (*waves.fields, *waves.medium, *relaxed, *memories, *profiles), initial)


def _record_advance(step: Program, waves: ElasticWaves, *, velocities: bool) -> None:
    """Record the step of the velocities, or of the stresses."""
    equations, named = waves.elasticity, waves.named if velocities else waves.advanced
    fresh = waves.relaxation is not None and not velocities
    for component in equations.named("velocity" if velocities else "shear"):
        names = [component.name, *equations.used(component), *_stored(waves, coefficient(component))]
        kernel = equations.kernel(f"elastic_{component.name}", names, equations.advance(component, fresh=fresh))
        step.apply(kernel, [named[name] for name in names])
    if velocities:
        return
    strained = [*(c.name for c in equations.named("normal")), *_stored(waves, "lambda", "mu")]
    moving = [c.name for c in equations.named("velocity")]
    whole = waves.grid.box
    lo, hi = list(whole.lo), list(whole.hi)
    surface = isinstance(waves.faces[0][0], Free)
    if surface:
        lo[0], hi[0] = 1, 1
        names = [*strained, *moving[1:]]
        kernel = equations.kernel("elastic_surface", names, equations.advance_normal(surface=True, fresh=fresh))
        step.apply(kernel, [named[name] for name in names], region=Box(whole.lo, tuple(hi)))
    names = [*strained, *moving]
    kernel = equations.kernel("elastic_normal", names, equations.advance_normal(surface=False, fresh=fresh))
    step.apply(kernel, [named[name] for name in names], region=Box(tuple(lo), whole.hi) if surface else None)


def _stored(waves: ElasticWaves, *names: str) -> list[str]:
    """Return those names of coefficients that are fields."""
    return [name for name in names if name not in waves.elasticity.constants]

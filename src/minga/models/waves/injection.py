"""Time steps with their sources: of second order (leapfrog) or fourth order in time.

With u the waves, A u = dt2 times the right side of the equations (`minga.models.waves.kernels`), and S = dt2 vp2 s / V
the contribution of a physical source s to its cells of volume V, a step of second order is

    next = 2 u - previous + A u + S

and one of fourth order (M. A. Dablain, "The application of high-order differencing to the scalar wave equation",
Geophysics 51(1), 1986; for any A, with the source inside A)

    w = A u + S,    next = 2 u - previous + w + (A w + S'') / 12

where S'' is the second difference of S in time. Without the source in w and S'', the order would be two. With
attenuation, w is relaxed instead (`minga.models.waves.attenuation`). The sources of a plane have the spacing along its
normal in place of V. Wavelets should begin at 0, as waves do.

The values s of a legacy source (`minga.models.waves.source`) are added to u before a step. With v = u + s, a step of
second order is thus that of v with S = s of the next step. One of fourth order has the same source within it,

    w = A v + s1,    next = 2 v - previous + w + (A w + s0 - 2 s1 + s2) / 12 - s1

where s0, s1 and s2 are the values of this step and of the next two. Attenuation does not relax these values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang.kernel import Kernel
from minga.models.waves.absorption import Stretched
from minga.models.waves.attenuation import relaxation_kernel
from minga.models.waves.attenuation_fourth import attenuated_increment_kernel, attenuated_step_kernel
from minga.models.waves.kernels import correction_kernel, forward_kernel, increment_kernel
from minga.models.waves.source import PlaneSource, Source, add_amount, add_sources, plane_axis
from minga.space.box import Box
from minga.space.field import Field, Register, Slot

if TYPE_CHECKING:
    from minga.models.waves.waves import Waves

__all__ = ["record_advance"]


def record_advance(
    step: Program,
    waves: Waves,
    sources: Sequence[Source],
    damping: Sequence[Field] = (),
    layers: Callable[[Stretched], None] | None = None,
) -> None:
    """Record the computation of the next waves, sources included, in the previous slots; a step must then rotate them.

    Parameters
    ----------
    step
        The Program to record into.
    waves
        The waves.
    sources
        The sources.
    damping
        Profiles of a sponge in which the kernel of the step damps (`minga.models.waves.sponge`).
    layers
        Records what matched layers add to the next waves, or, with attenuation, to the increments that it relaxes;
        None: nothing.

    Raises
    ------
    CaseError
        If a source lies outside the model, or a dipole lies in a medium whose density varies.
    """
    if waves.equations.staggered is not None and any(getattr(s, "direction", None) is not None for s in sources):
        raise CaseError(
            "a dipole where the density varies: it would not be a force there",
            key="fletcher.sources.direction",
            remedy='give a density that is one number, or a force in the model "elastic"',
        )
    medium = [list(waves.medium)] if waves.medium else []
    last = [*medium, list(damping)] if damping else medium
    now, following = list(waves.fields), [field.previous for field in waves.fields]
    legacy = [source for source in sources if source.injection == "legacy"]
    add_sources(step, legacy, now, waves.domain, waves.dt)
    if not waves.increments:
        step.apply(forward_kernel(waves.equations, damped=bool(damping)), now, following, *last)
        _clear_surfaces(step, waves, following)
        _add_forces(step, waves, sources, following)
        if layers is not None:
            layers(Stretched(now, following))
        return
    increments = list(waves.increments)
    step.apply(increment_kernel(waves.equations), now, increments, *medium)
    _clear_surfaces(step, waves, increments)
    _add_forces(step, waves, sources, increments)
    if layers is not None:
        layers(Stretched(now, increments))
    if waves.relaxation is not None and not waves.corrections:
        relax = relaxation_kernel(waves.relaxation.attenuation.halves(waves.dt), waves.relaxation.uniform)
        step.apply(relax, now, following, increments, list(waves.memories), *waves.strengths)
        return
    if waves.relaxation is not None:
        _relax(step, waves, increments)
    for number, source in enumerate(legacy):
        amount = step.let(Register(f"{step.name}.next.{number}"), source.wavelet.value(waves.dt, 1))
        add_amount(step, source, increments, amount, waves.domain)
    if waves.relaxation is not None:
        corrections = list(waves.corrections)
        step.apply(increment_kernel(waves.equations), increments, corrections, *medium)
        _clear_surfaces(step, waves, corrections)
        _add_curvatures(step, waves, sources, corrections, 1.0)
        if layers is not None:
            layers(Stretched(increments, corrections))
        _relax_correction(step, waves, now, following)
    else:
        correction = correction_kernel(waves.equations, damped=bool(damping))
        step.apply(correction, now, following, increments, *last)
        _clear_surfaces(step, waves, following)
        _add_curvatures(step, waves, sources, following, 1.0 / 12.0)
        if layers is not None:
            layers(Stretched(increments, following, 1.0 / 12.0))
    for number, source in enumerate(legacy):
        here, after, later = (source.wavelet.value(waves.dt, k) for k in range(3))
        amount = step.let(Register(f"{step.name}.rest.{number}"), (here - 2.0 * after + later) * (1.0 / 12.0) - after)
        add_amount(step, source, following, amount, waves.domain)


def _relax(step: Program, waves: Waves, increments: Sequence[Field]) -> None:
    """Record the relaxation of increments by the first third of the memories."""
    assert waves.relaxation is not None
    kernel = attenuated_increment_kernel(waves.relaxation.attenuation.halves(waves.dt), waves.relaxation.uniform)
    step.apply(kernel, list(increments), list(waves.memories[: len(waves.memories) // 3]), *waves.strengths)


def _relax_correction(step: Program, waves: Waves, now: Sequence[Field], following: Sequence[Field | Slot]) -> None:
    """Record the relaxation of corrections by the other memories, and the next waves."""
    assert waves.relaxation is not None
    kernel = attenuated_step_kernel(waves.relaxation.attenuation.halves(waves.dt), waves.relaxation.uniform)
    third = len(waves.memories) // 3
    further = list(waves.memories[third : 2 * third]), list(waves.memories[2 * third :])
    increments, corrections = list(waves.increments), list(waves.corrections)
    step.apply(kernel, list(now), list(following), increments, corrections, *further, *waves.strengths)


def _add_forces(step: Program, waves: Waves, sources: Sequence[Source], targets: Sequence[Field | Slot]) -> None:
    """Record the addition of physical sources."""
    for number, source in enumerate(sources):
        if source.injection == "physical":
            _add(step, waves, source, targets, number, source.wavelet.value(waves.dt))


def _add_curvatures(
    step: Program, waves: Waves, sources: Sequence[Source], targets: Sequence[Field | Slot], factor: float
) -> None:
    """Record the addition of the second differences of physical sources in time, times a factor."""
    for number, source in enumerate(sources):
        if source.injection == "physical":
            before, here, after = (source.wavelet.value(waves.dt, later) for later in (-1, 0, 1))
            _add(step, waves, source, targets, number, (before - 2.0 * here + after) * factor, "curvature")


def _clear_surfaces(step: Program, waves: Waves, targets: Sequence[Field | Slot]) -> None:
    """Record that waves are 0 on free surfaces; without mixed derivatives, which are even about them, they stay 0."""
    if waves.equations.kind != "tilted":
        return
    low, high = waves.domain.without_surfaces
    for box in waves.grid.box.subtract(Box(low, high)):
        step.apply(_CLEAR, list(targets), region=box)


def _clear(waves: Sequence[Any]) -> None:
    for u in waves:
        u[(0,) * len(u.axes)] = 0.0


_CLEAR = Kernel(_clear)


def _add(
    step: Program,
    waves: Waves,
    source: Source,
    targets: Sequence[Field | Slot],
    number: int,
    amount: Any,
    what: str = "force",
) -> None:
    """Record the addition of a source's amount, times dt2 vp2 / V, to its cells of some waves."""
    along = (plane_axis(source, waves.domain),) if isinstance(source, PlaneSource) else range(len(waves.shape))
    volume = math.prod(waves.spacing[axis] for axis in along)
    factor = next((field for field in waves.medium if field.name == "vp2"), None)
    uniform = dict(waves.equations.constants).get("vp2", 1.0)
    amount = amount * (waves.dt * waves.dt / volume * uniform)
    register = step.let(Register(f"{step.name}.{what}.{number}"), amount)
    add_amount(step, source, targets, register, waves.domain, factor)

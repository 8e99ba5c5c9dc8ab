"""Models of elastic waves: the time step with its sources, receivers and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from minga.engine.clock import Clock
from minga.engine.model import Model
from minga.engine.presentation import FieldStyle, Presentation
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import Reduced
from minga.lang.kernel import Kernel
from minga.models.waves.attenuation import Attenuation
from minga.models.waves.boundary import (
    Boundary,
)
from minga.models.waves.elastic.medium import ElasticMedium, Speeds
from minga.models.waves.elastic.receivers import check_quantities, check_receivers
from minga.models.waves.elastic.sources import ElasticSource, Explosion
from minga.models.waves.elastic.stepping import elastic_stepping
from minga.models.waves.elastic.waves import prepare_elastic
from minga.models.waves.receivers import Receivers, traces_of
from minga.models.waves.recorded import record_sensors
from minga.models.waves.reflection import sponge_notes

__all__ = ["elastic"]

OBSERVED: Final = {
    "largest": ("m s-1", "largest component of the velocity"),
    "receivers": ("1", "samples at the receivers, quantity after quantity"),
}


def elastic(
    shape: Sequence[int],
    spacing: Sequence[float] | float = 12.5,
    *,
    dt: float | None = None,
    medium: ElasticMedium,
    order: int = 8,
    boundary: Boundary | None = None,
    sources: Sequence[ElasticSource] | None = None,
    receivers: Receivers | None = None,
    record: Sequence[str] = ("p",),
    dtype: str = "f4",
    speeds: Speeds | None = None,
    limit: float | None = None,
    attenuation: Attenuation | None = None,
) -> Model:
    """Return a model of elastic waves in an isotropic medium, on two or three axes.

    Parameters
    ----------
    shape
        Cells of the model along z, y, x or along z, x.
    spacing
        Distances between cells along each axis, or for all of them, m.
    dt
        Time step, s; None: three quarters of the stability limit.
    medium
        P and S velocity and density; S velocities of 0 are fluids.
    order
        Order of the staggered differences in space: 2, 4, 8 or 12. Steps in time are of second order.
    boundary
        Sponge(), Cpml(), Release(), Rigid() (a mirror: no motion through the face, no shear on it) or Periodic(), or
        one for each face: Faces(...), where Free() may stand at the top; None: Sponge(). Layers surround the model:
        `model.parameters["inside"]` is the box of the model, and coordinates start at its first cell.
    sources
        Explosion(), Moment() or Force(); by default an explosion in the middle.
    receivers
        Positions at which quantities are recorded: the observable "receivers".
    record
        What they record: "p" (minus the mean of the normal stresses), "vz", "vx", "szz" and so on. The observable has
        the samples of all receivers for the first quantity, then for the next. A sample after n steps is that at n dt
        for stresses and pressure, and at (n - 1/2) dt for velocities.
    dtype
        "f4" or "f8".
    speeds
        Result of `speeds_of` for this medium, if it was inspected before.
    limit
        The longest stable time step, if it is known.
    attenuation
        Attenuation with nearly constant Q of P and S waves (`minga.models.waves.attenuation`); None: none.

    Returns
    -------
    Model
        A model with the observables `largest`, the largest component of the velocity, and `receivers`.

    Raises
    ------
    CaseError
        If an argument is invalid; the error names the corresponding key of a case.

    Examples
    --------
    >>> medium = ElasticMedium(vp=3000, vs=1700, rho=2200)
    >>> model = elastic((100, 100), 10.0, dt=1e-3, medium=medium)
    """
    chosen: Sequence[ElasticSource] = (Explosion(),) if sources is None else sources
    waves = prepare_elastic(
        shape, spacing, dt=dt, medium=medium, order=order, boundary=boundary, dtype=dtype, speeds=speeds, limit=limit,
        attenuation=attenuation,
    )  # fmt: skip
    equations, domain = waves.elasticity, waves.domain
    check_quantities(record, equations.components)
    stepping = elastic_stepping(waves, chosen)
    observe = Program("observe")
    velocities = [waves.named[c.name] for c in equations.named("velocity")]
    observables: dict[str, Any] = {"largest": observe.apply(_LARGEST, velocities)}
    if receivers is not None:
        check_receivers(receivers)
    if receivers is not None and len(receivers.positions):
        observables["receivers"] = record_sensors(
            observe, waves.sensors(receivers, record), [f"receivers.{name}" for name in record]
        )
    style = FieldStyle(signed=True, section=("y", domain.middle[1]) if len(domain.axes) == 3 else None)
    return Model(
        name="elastic",
        grid=waves.grid,
        fields=stepping.fields,
        step=stepping.step,
        initial=stepping.initial,
        output=tuple(f.name for f in velocities),
        observe=observe,
        observables=observables,
        units={name: OBSERVED[name] for name in observables},
        presentation=Presentation(dict.fromkeys((f.name for f in waves.fields), style)),
        traces=traces_of(receivers, record, waves.dt, domain, [source.position for source in chosen]),
        clock=Clock(dt=waves.dt),
        notes=tuple(
            sponge_notes(waves.faces, domain.spacing, waves.speeds.fastest_p, waves.dt, chosen, staggered=True)
        ),
        parameters={
            "dt": waves.dt, "order": order, "boundary": repr(waves.boundary),
            "inside": [list(domain.inside.lo), list(domain.inside.hi)], "dt_limit": waves.limit,
            **({} if attenuation is None else {"attenuation": attenuation.said}),
        },
    )  # fmt: skip


def _largest(velocities: Any) -> Reduced:
    found = [mg.abs(v[(0,) * len(v.axes)]) for v in velocities]
    return mg.max(reduce(mg.max, found))


_LARGEST = Kernel(_largest)

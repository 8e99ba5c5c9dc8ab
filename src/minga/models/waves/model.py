"""Fletcher's wave model: fields, the time step, and what is observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from minga.engine.clock import Clock
from minga.engine.model import Model
from minga.engine.presentation import Presentation
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import Reduced
from minga.lang.kernel import Kernel
from minga.models.waves.attenuation import Attenuation
from minga.models.waves.boundary import Boundary
from minga.models.waves.kernels import Form
from minga.models.waves.medium import Medium
from minga.models.waves.preparation import prepare, step_limit
from minga.models.waves.receivers import Receivers, traces_of
from minga.models.waves.recorded import record_taps
from minga.models.waves.reflection import sponge_notes
from minga.models.waves.source import PointSource, Source
from minga.models.waves.source_density import density_warnings
from minga.models.waves.stability import Extremes
from minga.models.waves.stepping import stepping_of
from minga.models.waves.velocity import record_velocities
from minga.space.field import Register

__all__ = ["fletcher"]

OBSERVED: Final = {
    "largest": ("1", "largest amplitude of p"),
    "receivers": ("1", "samples of p at the receivers"),
}


def fletcher(
    shape: Sequence[int],
    spacing: Sequence[float] | float = 12.5,
    *,
    dt: float | None = None,
    medium: Medium,
    sigma: float = 0.75,
    order: int = 8,
    time_order: int = 2,
    form: Form = "fletcher",
    boundary: Boundary | None = None,
    sources: Sequence[Source] | None = None,
    receivers: Receivers | None = None,
    dtype: str = "f4",
    extremes: Extremes | None = None,
    attenuation: Attenuation | None = None,
    record: Sequence[str] = ("p",),
) -> Model:
    """Return a model of waves in a tilted transversely isotropic medium, on one to three axes.

    Parameters
    ----------
    shape
        Cells of the model along z, y, x, along z, x, or along z.
    spacing
        Distances between cells along each axis, or for all of them, m.
    dt
        Time step, s; None: three quarters of the stability limit, as `fletcher.dt = "auto"` of a case.
    medium
        Velocity, anisotropy and axis, or velocity and density (`minga.models.waves.medium`); isotropic media have a
        single wave field, and neither these nor media with a vertical axis need mixed derivatives.
    sigma
        Sets the SV velocity: vsz2 = vp2 |epsilon - delta| / sigma; above 10 there are no SV waves.
    order
        Order of the differences in space: 4, 8, 12 or 16.
    time_order
        Order of the steps in time: 2 (leapfrog) or 4, which takes twice the work a step, allows steps 1.7 times as
        long, and whose errors in time are many times smaller (`minga.models.waves.injection`); not with Cpml().
    form
        "fletcher", or "selfadjoint" for rapidly varying axes (`minga.models.waves.kernels`).
    boundary
        Random(), Sponge(), Cpml(), Release(), Free(), Rigid() or Periodic(), or one for each face: Faces(...)
        (`minga.models.waves.boundary`); None: Random(). Layers surround the model, so that the grid and its frames are
        larger than `shape`: `model.parameters["inside"]` is the box of the model in them, and coordinates start at its
        first cell.
    sources
        Sources; by default one in the middle.
    receivers
        Positions at which p is recorded: the observable "receivers" (`minga.models.waves.receivers`).
    dtype
        "f4" or "f8".
    extremes
        Result of `extremes_of` for this medium, if it was inspected before.
    attenuation
        Attenuation with nearly constant Q (`minga.models.waves.attenuation`); None: none. Not with
        experimental matched layers.
    record
        What receivers record: "p", and the particle velocities "vz", "vy", "vx", m/s, which are
        those half a step before the time (`minga.models.waves.velocity`) and follow from p and q, in Pa, with the
        medium's rho. The anisotropy must be uniform around a receiver. The observable has the
        samples of all receivers for the first one, then for the next.

    Returns
    -------
    Model
        A model with the observables `largest`, the largest |p|, and `receivers`.

    Raises
    ------
    CaseError
        If an argument is invalid; the error names the corresponding key of a case.

    Examples
    --------
    >>> medium = Medium(vp=3000, epsilon=0.24, delta=0.1, theta=0.8, phi=1)
    >>> model = mg.fletcher((100, 100, 100), dt=1e-3, medium=medium)
    """
    chosen: Sequence[Source] = (PointSource(),) if sources is None else sources
    waves = prepare(
        shape, spacing, dt=dt, medium=medium, sigma=sigma, order=order, time_order=time_order, form=form,
        boundary=boundary, dtype=dtype, extremes=extremes, section=_section(chosen), attenuation=attenuation,
    )  # fmt: skip
    stepping = stepping_of(waves, chosen)
    waves.watch(stepping.step, chosen)
    observe = Program("observe")
    observables: dict[str, Any] = {"largest": observe.apply(_LARGEST, waves.fields[0])}
    waves.check_quantities(record)
    step, integrated = stepping.step, dict[Register, float]()
    if receivers is not None and len(receivers.positions):
        registers = {}
        if "p" in record:
            registers["p"] = record_taps(observe, waves.fields[0], receivers.taps(waves.domain), "receivers")
        velocities = [name for name in dict.fromkeys(record) if name != "p"]
        if velocities:
            step = Program("step")
            registers |= record_velocities(step, waves, receivers, velocities)
            step.include(stepping.step)
            integrated = {register: 0.0 for name in velocities for register in registers[name]}
        observables["receivers"] = tuple(register for name in record for register in registers[name])
    return Model(
        name="fletcher",
        grid=waves.grid,
        fields=stepping.fields,
        step=step,
        initial=stepping.initial,
        output=("p",),
        observe=observe,
        registers=integrated,
        observables=observables,
        units={name: OBSERVED[name] for name in observables},
        presentation=Presentation(dict.fromkeys((f.name for f in waves.fields), waves.style)),
        traces=traces_of(receivers, record, waves.dt, waves.domain, _points(chosen)),
        clock=Clock(dt=waves.dt),
        notes=tuple(
            sponge_notes(waves.faces, waves.spacing, waves.extremes.fastest_p, waves.dt, chosen)
        ),
        warnings=tuple(density_warnings(chosen, waves.sampler, waves.domain)) if medium.has_density else (),
        parameters={
            "dt": waves.dt, "sigma": sigma, "order": order, "time_order": int(time_order), "form": form,
            "boundary": repr(waves.boundary), "inside": [list(waves.domain.inside.lo), list(waves.domain.inside.hi)],
            "dt_limit": step_limit(waves.extremes, time_order, waves.faces, waves.relaxation),
            **({} if attenuation is None else {"attenuation": attenuation.said}),
            **({"experimental": True} if waves.experimental else {}),
        },
    )  # fmt: skip


def _largest(p: Any) -> Reduced:
    return mg.max(mg.abs(p[(0,) * len(p.axes)]))


_LARGEST = Kernel(_largest)


def _section(sources: Sequence[Source]) -> float | None:
    """Return the position of the first point source along y; None if there is none, or if it is in the middle."""
    first = next(iter(_points(sources)), None)
    return None if first is None or len(first) < 3 else first[1]


def _points(sources: Sequence[Source]) -> list[Sequence[float] | None]:
    """Return the positions of point sources; None: in the middle."""
    return [source.position for source in sources if isinstance(source, PointSource)]

"""Reverse time migration of one shot: the correlation of the waves of the source and of the receivers.

The source wave is computed first; then both waves are propagated backwards in time together. Random layers conserve
energy, so that a step with exchanged time levels reverts a step, and no frame is ever stored (R. G. Clapp, SEG 2009).
The data of the receivers are injected into the adjoint waves (`minga.models.waves.adjoint`), and the image is the sum
over time of p times the adjoint p.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang.kernel import Kernel
from minga.models.waves.adjoint import adjoint_fields, record_adjoint_step
from minga.models.waves.boundary import Random, Release
from minga.models.waves.injection import record_advance
from minga.models.waves.receivers import Receivers, Taps
from minga.models.waves.source import Source, add_sources
from minga.models.waves.waves import Waves
from minga.space.cuts import parse_layout
from minga.space.field import STEP, Field

__all__ = ["migrate"]


def migrate(
    waves: Waves,
    sources: Sequence[Source],
    receivers: Receivers,
    data: NDArray[Any],
    *,
    threads: int = 1,
    comm: Comm | None = None,
    layout: str = "slabs",
) -> NDArray[np.float64] | None:
    """Return the image of one shot; collective.

    Parameters
    ----------
    waves
        Waves in the assumed smooth medium, from `minga.models.waves.prepare`, with a boundary of random velocities or
        pressure release.
    sources
        Sources of the shot.
    receivers
        Positions at which `data` were recorded, at every step.
    data
        Data of shape (steps, receivers): data[n] after n steps. Direct waves from the source to the receivers should be
        removed beforehand.
    threads
        Threads of each rank.
    comm
        Ranks that compute the image; None: this process alone.
    layout
        Layout of the grid over the ranks.

    Returns
    -------
    numpy.ndarray or None
        An array of the model's shape on rank 0, None on other ranks.

    Raises
    ------
    CaseError
        If the boundary does not conserve energy, or the data do not match the receivers.
    """
    if not all(isinstance(face, Random | Release) for pair in waves.faces for face in pair):
        raise CaseError(
            f"migration runs backwards in time, which the boundary {waves.boundary!r} does not allow",
            key="fletcher.boundary",
            remedy="prepare the waves with Random() or Release()",
        )
    waves.check_second_order("migration is", "prepare the waves with time_order=2")
    found = np.asarray(data, np.float64)
    if found.ndim != 2 or found.shape[1] != len(receivers.positions) or len(found) < 2:
        raise CaseError(
            f"the data have shape {found.shape}, for {len(receivers.positions)} receivers",
            remedy="give a row for each step and a column for each receiver",
        )
    taps = receivers.taps(waves.domain)
    image = Field("image", waves.grid, "f8")
    adjoint = adjoint_fields(waves)
    ranks = comm or SerialComm()
    with Engine({waves.grid: parse_layout(layout, waves.grid.box, ranks.size)}, comm=ranks, threads=threads) as engine:
        values = waves.start()
        for field in (*waves.fields, *adjoint, image, *waves.medium):
            for slot in range(field.slots):
                engine.set(field.slot(slot), values.get(field.name, 0.0))
        engine.write(STEP, 0)
        engine.run(_forward(waves, sources), len(found) - 1)
        last = Program("last")
        _record_image(last, waves, adjoint, image, taps, found)
        last.rotate(*waves.fields)
        engine.run(last)
        engine.write(STEP, len(found) - 2)
        engine.run(_backward(waves, sources, adjoint, image, taps, found), len(found) - 1)
        whole = engine.gather(image)
    return None if whole is None else np.asarray(whole[waves.domain.inside.slices((0,) * waves.grid.ndim)])


def _forward(waves: Waves, sources: Sequence[Source]) -> Program:
    step = Program("forward")
    record_advance(step, waves, sources)
    step.rotate(*waves.fields)
    step.let(STEP, STEP + 1)
    return step


def _backward(
    waves: Waves, sources: Sequence[Source], adjoint: Sequence[Field], image: Field, taps: Taps, data: NDArray[Any]
) -> Program:
    """Return a step from n = STEP to n - 1; the present waves are those of n with the source's contribution."""
    step = Program("backward")
    _record_image(step, waves, adjoint, image, taps, data)
    record_advance(step, waves, [source for source in sources if source.injection == "physical"])
    step.rotate(*waves.fields)
    legacy = [source for source in sources if source.injection == "legacy"]
    add_sources(step, legacy, [f.previous for f in waves.fields], waves.domain, waves.dt, sign=-1.0)
    step.let(STEP, STEP - 1)
    return step


def _record_image(
    step: Program, waves: Waves, adjoint: Sequence[Field], image: Field, taps: Taps, data: NDArray[Any]
) -> None:
    """Record the addition of the data of n = STEP to the adjoint waves, their image, and the step of these waves."""

    def inject_data(engine: Engine) -> None:
        taps.inject(engine, adjoint[:1], data[engine.read(STEP)])

    step.call(inject_data, reads=adjoint[:1], writes=adjoint[:1])
    step.apply(_IMAGE, waves.fields[0], adjoint[0], image)
    record_adjoint_step(step, waves, adjoint)


def _image(p: Any, adjoint: Any, image: Any) -> None:
    here = (0,) * len(p.axes)
    image[here] = image[here] + p[here] * adjoint[here]


_IMAGE = Kernel(_image)

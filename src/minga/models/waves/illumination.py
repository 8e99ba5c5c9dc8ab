"""Illumination of the model by a shot: the sum over time of the squares of p, an estimate of a Hessian's diagonal.

A change of the velocity in a cell sends waves in proportion to p there, so that the diagonal of the Hessian of a misfit
is about the product of this sum and of that of waves from the receivers (C. Shin, S. Jang, D.-J. Min, "Improved
amplitude preservation for prestack depth migration by inverse scattering theory", Geophys. Prospect. 49, 2001).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang.kernel import Kernel
from minga.models.waves.medium import Floats
from minga.models.waves.shot import AnyWaves, Shot, ShotRun
from minga.models.waves.waves import Waves
from minga.space.field import Field

__all__ = ["shot_illumination"]


def shot_illumination(waves: AnyWaves, shot: Shot, samples: int, *, threads: int = 1) -> Floats:
    """Return the sum of the squares of p over all steps of a shot.

    Parameters
    ----------
    waves
        Waves in the medium, from `minga.models.waves.prepare`.
    shot
        The shot, whose data are not used.
    samples
        Number of samples of its receivers, the first of them at the start.
    threads
        Threads.

    Returns
    -------
    ndarray
        Sum, f8 of the model's shape.

    Raises
    ------
    CaseError
        If the waves are not those of `minga.models.waves.prepare`.
    """
    if not isinstance(waves, Waves):
        raise CaseError(
            f"the illumination of {type(waves).__name__}", key="precondition", remedy="choose precondition=None"
        )
    run = ShotRun(waves, shot)
    illumination = Field("illumination", waves.grid, "f8")
    program = Program("illuminate")
    with program.repeat(max(1, samples - 1) * shot.receivers.every):
        program.include(run.stepping.step)
        program.apply(_ADD, waves.fields[0], illumination)
    with run.engine(threads, None, "slabs") as engine:
        engine.set(illumination, 0.0)
        engine.run(program)
        found = engine.gather(illumination)
    assert found is not None
    return np.asarray(found[waves.domain.inside.slices((0,) * waves.grid.ndim)], np.float64).copy()


def _add(p: Any, illumination: Any) -> None:
    here = (0,) * len(p.axes)
    illumination[here] = illumination[here] + p[here] * p[here]


_ADD = Kernel(_add)

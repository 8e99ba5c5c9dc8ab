"""Born modelling: the change of traces by a small change of the medium, to first order.

It is the exact derivative of the time step, sources and layers included (`minga.solve.adjoint.tangent`), and the
transpose of the gradient of `minga.models.waves.gradient`: together they are the operator of least-squares migration
and of Gauss-Newton inversion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.errors import CaseError
from minga.extras import require
from minga.models.waves.gradient import sensitivity_of, shot_gradient
from minga.models.waves.medium import Floats
from minga.models.waves.misfits import Misfit
from minga.models.waves.shot import AnyWaves, Shot, ShotRun, check_shot, checked_data, is_real_array
from minga.models.waves.velocity import check_sensitivity
from minga.solve.adjoint.adjoint import MEMORY
from minga.solve.adjoint.tangent import tangent

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

__all__ = ["directions", "linearised_shots", "shot_born"]


def shot_born(
    waves: AnyWaves,
    shot: Shot,
    changes: Mapping[str, NDArray[Any]],
    samples: int,
    *,
    threads: int = 1,
    comm: Comm | None = None,
    layout: str = "slabs",
) -> Floats:
    """Return the change of the traces of a shot by a change of the medium, to first order; collective.

    Parameters
    ----------
    waves
        Waves in the unchanged medium, from `minga.models.waves.prepare`, with any boundary but Random(), or from
        `minga.models.waves.elastic.prepare_elastic`.
    shot
        The shot, whose data are not used.
    changes
        Change of each quantity that changes, an array of the model's shape: "vp", "slowness" (1 / vp), "epsilon",
        "delta", "theta", "phi", "rho", "inverse_q" (1 / Q); of elastic waves "vp", "vs", "rho". In the medium
        itself each of them is an array or a function of a Box.
    samples
        Number of samples, the first of them at the start.
    threads
        Threads of each rank.
    comm
        Ranks that compute together; None: this process alone.
    layout
        Layout of the grid over the ranks.

    Returns
    -------
    ndarray
        Samples, f8 of shape (samples, traces), on all ranks.

    Raises
    ------
    CaseError
        If a quantity is not an array, a change has another shape, or a face has random velocities.
    """
    check_shot(waves, shot)
    if not isinstance(changes, Mapping) or not changes:
        raise CaseError(f"the changes are {changes!r}", key="changes", remedy='give an array for each: {"vp": change}')
    fields = sensitivity_of(waves).fields([*changes])
    found = directions(waves, changes)
    run = ShotRun(waves, shot)
    check_sensitivity(run.sensors, [*changes])
    change = tangent(run.stepping.step, [*fields.values()])
    with run.engine(threads, comm, layout) as engine:
        for name, values in found.items():
            engine.set(change.of[fields[name]], values)
        return run.record(engine, run.watched(change.step), samples, change.of)


def directions(waves: AnyWaves, changes: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Return the changes of the fields of the medium on the grid; raise CaseError for those of another shape."""
    shape = waves.domain.shape
    wrong = next((name for name, change in changes.items() if not is_real_array(change)), None)
    if wrong is not None:
        raise CaseError(
            f"the change of {wrong} is not an array of real numbers", key="changes",
            remedy=f"give an array of shape {shape}",
        )  # fmt: skip
    given = {name: np.asarray(change, np.float64) for name, change in changes.items()}
    for name, values in given.items():
        if values.shape != shape or not np.isfinite(values).all():
            raise CaseError(
                f"the change of {name} has shape {values.shape}, or values that are not finite",
                key="changes",
                remedy=f"give an array of shape {shape}",
            )
    return sensitivity_of(waves).changes(given)


def linearised_shots(
    waves: Sequence[AnyWaves],
    shots: Sequence[Shot],
    wrt: Sequence[str] = ("vp",),
    *,
    memory: int = MEMORY,
    threads: int = 1,
    comm: Comm | None = None,
) -> LinearOperator:
    """Return the derivative of the traces of some shots by a medium, as a linear operator of SciPy; collective.

    A product with it is Born modelling, and one with its transpose the gradient by the traces. Vectors of the medium
    are the arrays of all quantities, flattened, one after the other; those of the data are the traces of all shots.

    Parameters
    ----------
    waves
        Waves of each shot in the medium at which to linearise.
    shots
        The shots with their data, which determine the number of samples.
    wrt
        Quantities of the medium, as for `shot_gradient`.
    memory
        Bytes of each rank for states of the waves.
    threads
        Threads of each rank.
    comm
        Ranks that compute together; None: this process alone.

    Returns
    -------
    LinearOperator
        The operator; its products are equal on all ranks.

    Raises
    ------
    CaseError
        If the shots and the waves do not match, or a shot has no data.

    Examples
    --------
    >>> jacobian = linearised_shots([waves] * len(shots), shots)
    >>> image = scipy.sparse.linalg.lsmr(jacobian, residuals, damp=1e-3, maxiter=10)[0]
    """
    require("scipy")
    from scipy.sparse.linalg import LinearOperator

    if not shots or len(waves) != len(shots) or len({each.domain.shape for each in waves}) != 1:
        raise CaseError(
            f"{len(waves)} waves for {len(shots)} shots",
            key="waves",
            remedy="give the waves of each shot, all of them on the same model",
        )
    sizes = [checked_data(shot).shape for shot in shots]
    shape = waves[0].domain.shape
    cells = int(np.prod(shape))
    ranks: Any = comm or SerialComm()

    def forwards(x: NDArray[Any]) -> Floats:
        changes = {name: part.reshape(shape) for name, part in zip(wrt, np.split(x.ravel(), len(wrt)), strict=True)}
        traces = [
            shot_born(own, shot, changes, samples, threads=threads, comm=comm)
            for own, shot, (samples, _) in zip(waves, shots, sizes, strict=True)
        ]
        return np.concatenate([each.ravel() for each in traces])

    def backwards(y: NDArray[Any]) -> Floats:
        ends = np.cumsum([rows * columns for rows, columns in sizes])[:-1]
        total = np.zeros(cells * len(wrt))
        for own, shot, part, size in zip(waves, shots, np.split(y.ravel(), ends), sizes, strict=True):
            _, slopes = shot_gradient(
                own, shot, wrt, misfit=_weighted_by(part.reshape(size)), memory=memory, threads=threads, comm=comm
            )
            if slopes is not None:
                total = total + np.concatenate([slopes[name].ravel() for name in wrt])
        return np.asarray(ranks.bcast(total))

    rows = sum(samples * receivers for samples, receivers in sizes)
    return LinearOperator((rows, cells * len(wrt)), matvec=forwards, rmatvec=backwards, dtype=np.float64)


def _weighted_by(weights: Floats) -> Misfit:
    """Return a misfit whose derivative by the traces are some weights."""
    return lambda found, data: (0.0, weights)

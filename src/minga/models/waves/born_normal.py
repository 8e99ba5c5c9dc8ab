"""The Gauss-Newton Hessian of a shot: Born modelling and its transpose, with one pass forwards and one backwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minga.engine.engine import Engine
from minga.models.waves.born import directions
from minga.models.waves.gradient import quantities, sensitivity_of
from minga.models.waves.medium import Floats
from minga.models.waves.shot import AnyWaves, Shot, ShotRun, checked_data
from minga.models.waves.velocity import check_sensitivity
from minga.solve.adjoint.adjoint import MEMORY, adjoint
from minga.solve.adjoint.tangent import tangent

__all__ = ["shot_normal"]


def shot_normal(
    waves: AnyWaves, shot: Shot, change: Floats, wrt: Sequence[str], *, memory: int = MEMORY, threads: int = 1
) -> tuple[Floats, float]:
    """Return the product of J' J with a change of the medium, where J is the derivative of the traces by it.

    The adjoint is that of the tangent step, whose forward pass computes the waves once for both.

    Parameters
    ----------
    waves
        Waves in the medium at which to linearise.
    shot
        The shot with its data, which determine the number of samples.
    change
        Changes of all quantities, flattened, one after the other.
    wrt
        The quantities.
    memory
        Bytes for states of the waves.
    threads
        Threads.

    Returns
    -------
    tuple
        The product, flattened, and the sum of the squares of the change of the traces.
    """
    fields = sensitivity_of(waves).fields(wrt)
    parts = np.split(np.asarray(change, np.float64), len(wrt))
    shape = waves.domain.shape
    changed = directions(waves, {name: part.reshape(shape) for name, part in zip(wrt, parts, strict=True)})
    run = ShotRun(waves, shot)
    check_sensitivity(run.sensors, wrt)
    table = run.table(len(checked_data(shot)))
    forward = tangent(run.stepping.step, [*fields.values()])
    reverse = adjoint(forward.step, [forward.of[item] for item in fields.values()])
    seed = table.injection({own: reverse.of[forward.of[own]] for own in run.sensors.fields})
    observe = table.sampling(forward.of)
    waves.watch(observe, shot.sources)
    changes: list[Floats] = []

    def keep(engine: Engine) -> None:
        changes.append(table.traces(engine.comm))
        table.store(changes[0])

    with run.engine(threads, None, "slabs") as engine:
        for name, values in changed.items():
            engine.set(forward.of[fields[name]], values)
        reverse.run(engine, table.steps, seed=seed, observe=observe, memory=memory, between=keep)
        whole = {name: engine.gather(reverse.of[forward.of[item]]) for name, item in fields.items()}
    slopes = quantities(waves, wrt, {name: np.asarray(values, np.float64) for name, values in whole.items()})
    squares = np.square(changes[0]).ravel()
    return np.concatenate([slopes[name].ravel() for name in wrt]), float(np.add.accumulate(squares)[-1])

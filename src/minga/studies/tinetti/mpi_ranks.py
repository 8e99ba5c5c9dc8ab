"""Measurements by ranks for comparing MPI implementations: steps of a model in several ways, and single calls."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from minga.engine.begin import start
from minga.engine.comm import MPIComm, SerialComm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import RunError
from minga.running.session import state_digest
from minga.space.layout import Layout

__all__ = ["CALLS", "WAYS", "call_times", "meet", "time_ways"]

WAYS: Final[Mapping[str, Mapping[str, Any]]] = {
    "blocking": {"overlap": False},
    "overlapped": {"overlap": True},
    "overlapped without polling": {"overlap": True, "poll": "off"},
}
"""Engine options: Milano's blocking and non-blocking messages, and the latter without calls of ``MPI_Test``."""

CALLS: Final = ("Send", "Recv", "Isend", "Irecv")

_NAP: Final = 0.002
_LEAST: Final = 3
_COMPARED: Final = 20
"""Steps after which results are compared bit by bit."""
_SHARE: Final = 0.25
"""Fraction of the requested seconds that one sample takes."""


def meet(world: Any, nap: float = _NAP) -> None:
    """Wait at a barrier, polling every ``nap`` seconds and sleeping meanwhile: other ranks are being timed."""
    request = world.Ibarrier()
    while not request.Test():
        time.sleep(nap)


def time_ways(world: Any, model: Model, layout: Layout, steps: int, seconds: float) -> dict[str, Any]:
    """Time the steps of a model from its start in all :data:`WAYS`, alternately, and on rank 0 alone; collective.

    Parameters
    ----------
    world
        mpi4py's communicator.
    model
        Model to time.
    layout
        Layout of the model's planned grid for all ranks of ``world``.
    steps
        Largest number of steps in a sample: those of the case.
    seconds
        Approximate time for each way; at least three samples are taken.

    Returns
    -------
    dict
        On all ranks: by way the ``samples`` (seconds per step of the slowest rank) and a ``digest`` of the state after
        20 steps, the ``steps`` of a sample, and as ``alone`` the seconds per step of rank 0 with the whole grid.

    Raises
    ------
    RunError
        If a step fails.
    """
    engines = {
        name: Engine(model.layouts_like(layout), comm=MPIComm(world), **options) for name, options in WAYS.items()
    }
    try:
        for engine in engines.values():
            _sample(world, model, engine, min(steps, 3))  # binds, compiles, and touches all memory
        count = _count(world, model, engines["blocking"], steps, seconds)
        digests = {name: _digest_after(world, model, engine, min(steps, _COMPARED)) for name, engine in engines.items()}
        samples: dict[str, list[float]] = {name: [] for name in WAYS}
        until = time.perf_counter() + len(WAYS) * seconds
        while True:
            number = len(samples["blocking"])
            for name in list(WAYS) if number % 2 == 0 else list(WAYS)[::-1]:
                samples[name].append(_sample(world, model, engines[name], count))
            if world.bcast(number + 1 >= _LEAST and time.perf_counter() > until):
                break
    finally:
        for engine in engines.values():
            engine.close()
    alone = _alone(model, count) if world.rank == 0 else None
    meet(world)
    return {
        "ways": {name: {"samples": samples[name], "digest": digests[name]} for name in WAYS},
        "steps": count,
        "alone": world.bcast(alone),
    }


def _sample(world: Any, model: Model, engine: Engine, count: int) -> float:
    """Return the seconds per step of the slowest rank, from the model's start."""
    from mpi4py import MPI

    start(model, engine)
    engine.prepare(model.step, looped=count != 1)
    meet(world)
    began = time.perf_counter()
    outcome = engine.run(model.step, count)
    spent = float(world.allreduce(time.perf_counter() - began, MPI.MAX))
    if not outcome.ok:
        raise RunError(f"model {model.name!r} ended after fewer than {count} steps: {outcome.reason}")
    return spent / count


def _count(world: Any, model: Model, engine: Engine, steps: int, seconds: float) -> int:
    """Return the steps of a sample, which takes a quarter of the time for each way; equal on all ranks."""
    count = 1
    while True:
        spent = count * _sample(world, model, engine, count)
        if count >= steps or spent > _SHARE * seconds / 2:
            return max(1, min(steps, int(count * _SHARE * seconds / max(spent, 1e-9))))
        count = min(steps, 4 * count)


def _digest_after(world: Any, model: Model, engine: Engine, count: int) -> str:
    """Return the digest of the output fields after ``count`` steps; equal on all ranks."""
    _sample(world, model, engine, count)
    return state_digest(engine, model, [model.field(name) for name in model.output])


def _alone(model: Model, count: int) -> float:
    """Return the seconds per step of this rank with the whole grid, the shorter of two runs."""
    with Engine(model.layouts("single", 1), comm=SerialComm()) as engine:
        found = []
        for _ in range(2):
            start(model, engine)
            engine.prepare(model.step, looped=count != 1)
            began = time.perf_counter()
            engine.run(model.step, count)
            found.append((time.perf_counter() - began) / count)
    return min(found)


def call_times(world: Any, sizes: Sequence[int], rounds: int) -> dict[int, dict[str, float]]:
    """Measure Milano's Table 5: milliseconds until a call returns, by bytes and call; the message may take longer.

    Rank 0 sends and the last rank receives; the results are medians over the rounds. The other ranks wait. Both ranks
    are ready before each call. The result is returned on all ranks.
    """
    import numpy as np

    receiver = world.size - 1
    found: dict[int, dict[str, float]] = {}
    for size in sizes:
        pair = world.Split(0 if world.rank in (0, receiver) else 1)
        spent = _calls(pair, np.zeros(size, np.uint8), rounds) if world.rank in (0, receiver) else {}
        pair.Free()
        meet(world)
        mine = {name: statistics.median(values) for name, values in spent.items() if values}
        found[size] = {name: value for part in world.allgather(mine) for name, value in part.items()}
    return found


def _calls(pair: Any, buffer: Any, rounds: int) -> dict[str, list[float]]:
    """Return the times of the calls on this side of a pair; its first rank sends."""
    first = pair.rank == 0
    blocking, other = ("Send", "Isend") if first else ("Recv", "Irecv")
    spent: dict[str, list[float]] = {blocking: [], other: []}
    peer = 1 if first else 0
    for _ in range(rounds):
        pair.Barrier()
        spent[blocking].append(_timed(getattr(pair, blocking), buffer, peer)[0])
        pair.Barrier()
        milliseconds, request = _timed(getattr(pair, other), buffer, peer)
        spent[other].append(milliseconds)
        request.Wait()
    return spent


def _timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    value = call(*arguments)
    return 1e3 * (time.perf_counter() - began), value

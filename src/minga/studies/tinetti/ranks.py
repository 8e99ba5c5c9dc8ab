"""Ranks of the experiments after Tinetti: ``python -m minga.studies.tinetti.ranks ORDER``, under a launcher.

ORDER is JSON: ``task`` and its arguments. Rank 0 prints one line of JSON. Ranks that are not needed sleep, so that they
take no core from the others.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.studies.tinetti.mpi_ranks import call_times, meet

__all__ = ["main"]

Bytes = NDArray[np.uint8]
Send = Callable[[Bytes], None]

_SHORT_NAP: Final = 2e-4


def broadcasts(world: Any, order: Mapping[str, Any]) -> dict[str, Any]:
    """Measure broadcasts from the first rank of each team to the others, until all have the message.

    Parameters
    ----------
    world
        mpi4py's communicator.
    order
        ``teams`` of ranks, ``ways`` ("mpi", or a route of :class:`~minga.network.broadcast.Group`), ``sizes``,
        ``rounds`` by size, and ``rate`` (largest rate of a Group in bit/s, or None).

    Returns
    -------
    dict
        By way, team and size the seconds of each round at the root; the number of messages with a wrong byte; and the
        final route of each Group.
    """
    found: dict[str, Any] = {"seconds": {way: [] for way in order["ways"]}, "wrong": 0, "routes": {}}
    for team in order["teams"]:
        inside = world.rank in team
        sub = world.Split(0 if inside else 1, team.index(world.rank) if inside else world.rank)
        for way in order["ways"]:
            row: dict[str, list[float]] = {}
            wrong = 0
            if inside:
                row, wrong, route = _one_way(sub, way, order)
                found["routes"][way] = route
            meet(world)
            found["seconds"][way].append(world.bcast(row, root=team[0]))
            found["wrong"] += world.allreduce(wrong)
        sub.Free()
    return found


def _one_way(team: Any, way: str, order: Mapping[str, Any]) -> tuple[dict[str, list[float]], int, str]:
    """Measure all sizes and rounds in one way; seconds are those of the team's first rank."""
    if way == "mpi":
        return *_rounds(team, _mpi_broadcast(team), order), "mpi"
    from minga.network.broadcast import Group

    with Group.of(team, route=way, rate=order.get("rate")) as group:

        def send(data: Bytes) -> None:
            group.bcast(data, root=0, wait="all")

        return *_rounds(team, send, order), str(group.route)


def _mpi_broadcast(team: Any) -> Send:
    """Return ``MPI_Bcast`` followed by a reduction of eight bytes, so that the root knows when all have the message."""
    mine, total = np.zeros(1), np.zeros(1)

    def send(data: Bytes) -> None:
        team.Bcast(data, root=0)
        team.Reduce(mine, total, root=0)

    return send


def _rounds(team: Any, send: Send, order: Mapping[str, Any]) -> tuple[dict[str, list[float]], int]:
    """Return the seconds by size, and the number of messages that arrived wrong here."""
    seconds: dict[str, list[float]] = {}
    wrong = 0
    for size in order["sizes"]:
        rounds = order["rounds"][str(size)]
        spent = []
        for number in range(rounds + 1):  # the first one warms up
            expected = _content(size, number)
            data = expected if team.rank == 0 else np.zeros(size, np.uint8)
            meet(team, _SHORT_NAP)
            began = time.perf_counter()
            send(data)
            spent.append(time.perf_counter() - began)
            wrong += not np.array_equal(data, expected)
        seconds[str(size)] = spent[1:]
    return seconds, wrong


def _content(size: int, number: int) -> Bytes:
    """Return a message that differs from the previous one at every position."""
    return ((np.arange(size) * 31 + 97 * number + size) & 0xFF).astype(np.uint8)


def overlap(world: Any, order: Mapping[str, Any]) -> dict[str, Any]:
    """Measure Milano's Table 5, and the part of a transfer hidden behind computation, between the first two ranks."""
    from minga.network.measuring.overlap import measure_overlap

    calls = call_times(world, order["sizes"], order["rounds"])
    points: Sequence[Any] = ()
    if world.rank < 2:
        points = measure_overlap(world, 1 - world.rank, order["sizes"], order["budget"])
    meet(world)
    return {"calls": calls, "points": [point.as_dict() for point in points]}


def balance(world: Any, order: Mapping[str, Any]) -> dict[str, Any]:
    """Run the example "heat" while the first node loses half its share; see :mod:`minga.studies.changing`."""
    from minga.case.examples import examples
    from minga.case.load import python_case
    from minga.case.settings import GridSettings
    from minga.studies.changing import lose_share

    model = python_case(examples()["heat"]).model(GridSettings(shape=tuple(order["shape"])), {})
    return lose_share(world, model, Path(order["flags"]), order["seconds"])


def matmul(world: Any, order: Mapping[str, Any]) -> dict[str, Any]:
    """Multiply square matrices held by all ranks, for ``sizes`` and ``layouts`` of `minga.models.matmul`.

    The result has the shortest of ``rounds`` times in s, and the prediction; each product is checked. Ranks repeat
    their products as often as ``repeated`` states, which slows them down by that factor.
    """
    from minga.engine.comm import MPIComm
    from minga.models.matmul.problem import problem_of
    from minga.models.matmul.product import Options, plan_of, product

    comm = MPIComm(world)
    _repeat_products(order["repeated"][world.rank])
    found: dict[str, Any] = {"runs": []}
    workers = None
    for size in order["sizes"]:
        random = np.random.default_rng(size)
        problem = problem_of(random.standard_normal((size, size)), random.standard_normal((size, size)))
        for layout in order["layouts"]:
            options = Options(layout=layout, cache=False)
            workers, plan = plan_of(comm, problem, options, True, workers, stored=False)  # the result is an array
            seconds = []
            for _ in range(order["rounds"]):
                meet(world)
                _, account = product(lambda p=problem: p, None, comm, options, plan=plan, workers=workers)  # type: ignore[misc]
                seconds.append(0.0 if account is None else account.seconds)
            row = {"size": size, "layout": layout, "seconds": min(seconds), "predicted": plan.timing.seconds}
            found["runs"].append(row | {"ranks": len(plan.ranks)})
    if workers is not None:
        found |= {"speeds": (2 * workers.rates).tolist(), "beta": workers.wire.beta, "alpha": workers.wire.alpha}
        found["break_even"] = _break_even(workers)
    return found


def _repeat_products(times: int) -> None:
    """Slow down NumPy's products in this process from now on."""
    once = np.matmul

    def often(a: Any, b: Any, out: Any = None) -> Any:
        for _ in range(times - 1):
            out = once(a, b, out=out)
        return once(a, b, out=out)

    np.matmul = often  # type: ignore[assignment]


def _break_even(workers: Any) -> float:
    from minga.models.matmul.plan import break_even

    return break_even(workers, 8)


TASKS: Final[Mapping[str, Callable[[Any, Mapping[str, Any]], dict[str, Any]]]] = {
    "broadcasts": broadcasts,
    "overlap": overlap,
    "balance": balance,
    "matmul": matmul,
}


def main(arguments: Sequence[str]) -> int:
    """Carry out an order as one rank and return the exit status. A failure on one rank ends all."""
    import traceback

    from mpi4py import MPI

    from minga.engine.comm import end_job

    order = json.loads(arguments[0])
    world = MPI.COMM_WORLD
    try:
        found = TASKS[order["task"]](world, order)
    except BaseException:
        traceback.print_exc()
        end_job(world, 1)
    if world.rank == 0:
        print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Run on MPI ranks by test_engine_mpi.py: four models in many ways; rank 0 prints one digest for each as JSON."""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import minga as mg
from minga.engine.comm import Comm
from minga.engine.program import Program
from minga.space.cuts import best_cartesian, blocks, slabs
from minga.space.layout import Layout

STEPS = 13


@mg.kernel
def life(c, new):
    n = sum(mg.cast(c[i, j], "i4") for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    new[0, 0] = mg.cast((n == 3) | ((n == 2) & (c[0, 0] == 1)), "u1")
    return {"population": mg.count(c[0, 0] == 1), "first": mg.argmax(c[0, 0])}


@mg.kernel
def diffuse(u, v, new, w, *, rate):
    new[0, 0] = u[0, 0] + rate * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4.0 * u[0, 0])
    w[0, 0] = 0.5 * v[0, 0] + 0.25 * v[-1, 1] + 0.125 * u[1, 1]
    return {"sum": mg.sum(u[0, 0] * u[0, 0]), "max": mg.max(abs(u[0, 0])), "where": mg.argmin(v[0, 0])}


@mg.kernel(order={"y": +1})
def sweep(u, new):
    new[0, 0] = 0.75 * u[0, 0] + 0.25 * new[-1, 0]


@mg.kernel
def sparks(c, new):
    burning = (c[-1, 0] == 2) | (c[1, 0] == 2) | (c[0, -1] == 2) | (c[0, 1] == 2)
    grown = mg.where((c[0, 0] == 0) & (mg.random() < 0.1), 1, mg.where(c[0, 0] == 2, 0, c[0, 0]))
    new[0, 0] = mg.where((c[0, 0] == 1) & (burning | (mg.random() < 0.02)), 2, grown)
    return mg.count(c[0, 0] == 2)


@dataclass(frozen=True)
class Case:
    """A model: its grid, fields with initial values, step, and what is read after it."""

    grid: mg.Grid
    initial: dict[mg.Field, Any]
    step: Program
    registers: tuple[mg.Register, ...]


def integer() -> Case:
    grid = mg.Grid((33, 150), periodic=True, shift={"y": {"x": 4}})
    c = mg.Field("c", grid, "u1", slots=2)
    step = Program("life")
    found = step.apply(life, c, c.next)
    step.rotate(c)
    start = (np.random.default_rng(1).random(grid.shape) < 0.4).astype("u1")
    return Case(grid, {c: start}, step, (found.population, found.first))


def floating() -> Case:
    grid = mg.Grid((29, 200), periodic=(False, True))
    rate = mg.Register("rate", initial=0.2)
    u = mg.Field("u", grid, slots=2, boundary={"y": (mg.fixed(rate), mg.reflect())})
    v = mg.Field("v", grid, "f4", slots=2, boundary=mg.zero_gradient())
    step = Program("diffuse")
    found = step.apply(diffuse, u, v, u.next, v.next, rate=rate)
    step.apply(sweep, u, u.next)
    step.rotate(u, v)
    with step.when(found.max > 1.5):
        step.let(rate, rate * 0.75)
    rng = np.random.default_rng(2)
    start = {u: rng.standard_normal(grid.shape), v: rng.standard_normal(grid.shape).astype("f4")}
    return Case(grid, start, step, (found.sum, found.max, found.where, rate))


def noisy() -> Case:
    grid = mg.Grid((40, 70))
    c = mg.Field("c", grid, "u1", slots=2, boundary=mg.fixed(0))
    step = Program("sparks")
    burning = step.apply(sparks, c, c.next)
    step.rotate(c)
    step.let(mg.STEP, mg.STEP + 1)
    return Case(grid, {c: 1}, step, (burning,))


@mg.kernel
def plain_life(c, new):
    n = sum(mg.cast(c[i, j], "i4") for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    new[0, 0] = mg.cast((n == 3) | ((n == 2) & (c[0, 0] == 1)), "u1")


def quiet() -> Case:
    """Gliders on a torus of tiles of which most are left out."""
    grid = mg.Grid((45, 150), periodic=True)
    c = mg.Field("c", grid, "u1", slots=2)
    step = Program("quiet life")
    step.apply(plain_life, c, c.next, region=mg.Region(active=(4, 6)))
    step.rotate(c)
    start = np.zeros(grid.shape, "u1")
    for y, x in ((43, 148), (21, 73), (9, 30)):
        for i, j in ((0, 1), (1, 2), (2, 0), (2, 1), (2, 2)):
            start[(y + i) % 45, (x + j) % 150] = 1
    return Case(grid, {c: start}, step, ())


CASES = {"integer": integer, "floating": floating, "noisy": noisy, "quiet": quiet}


def digest(case: Case, layout: Layout, comm: Comm, **settings: Any) -> tuple[str, int]:
    """SHA-256 of all that a run leaves (on rank 0), and the messages this rank sent."""
    with mg.Engine({case.grid: layout}, comm=comm, **settings) as engine:
        engine.write(mg.SEED, 99)
        for item, value in case.initial.items():
            engine.set(item, value)
        for times in (1, STEPS - 3, 2):
            outcome = engine.run(case.step, times)
            assert outcome.ok, outcome
        result = hashlib.sha256()
        for item in case.initial:
            found = engine.gather(item)
            if found is not None:
                result.update(found.tobytes())
        for register in case.registers:
            result.update(repr(engine.read(register)).encode())
        return result.hexdigest(), engine.ledger.messages


def layouts(case: Case, ranks: int) -> Iterator[Layout]:
    box = case.grid.box
    yield slabs(box, ranks)
    if "sweep" in repr(case.step):
        yield slabs(box, ranks, 1)
    else:
        yield best_cartesian(box, ranks)
        yield blocks(box, ranks, 2)


def ways() -> Iterator[dict[str, Any]]:
    """Each setting once with each of the others' first values, and a few together."""
    for native, overlap in itertools.product((True, False), repeat=2):
        yield {"native": native, "overlap": overlap, "halo_depth": 1, "threads": 1}
    yield {"native": True, "overlap": True, "halo_depth": 3, "threads": 1}
    yield {"native": False, "overlap": True, "halo_depth": 2, "threads": 2}
    yield {"native": True, "overlap": True, "halo_depth": 1, "threads": 2}


def main() -> None:
    comm = mg.MPIComm()
    found: dict[str, list[str]] = {}
    sent = 0
    try:
        for name, make in CASES.items():
            case = make()
            results = set()
            for number, layout in enumerate(layouts(case, comm.size)):
                for settings in itertools.islice(ways(), number, None, 3 if number else 2):
                    text, messages = digest(case, layout, comm, **settings)
                    results.add(text)
                    sent += messages
            found[name] = sorted(results)
    except BaseException as error:
        comm.abort(error)
    every = comm.gather(sent)
    if every is not None:
        print(json.dumps({"digests": found, "sent": every}))


if __name__ == "__main__":
    sys.exit(main())

"""A physical time step by both schemes, to the same residual: ions and field of a zinc cell, its fluid at rest."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from minga.engine.begin import start
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.program import Program
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Electrode, Held, Problem, Species, Steps
from minga.models.electrodeposition.relaxation.options import RelaxationOptions
from minga.models.electrodeposition.relaxation.scheme import Scheme, start_values
from minga.solve.krylov import copy
from minga.space.grid import Grid
from minga.space.layout import Layout

SIZES = ((10, 40, 10), (20, 80, 20), (40, 400, 40))
"""Cells across the gap, along the cell, and across the width."""
QUICK = ((2, 12, 2),)
STEP, VOLTAGE = 0.1, 0.05
TOLERANCE = 1e-6
SWEEPS = 4500
"""Of a relaxation of WHOLE cells, at most: larger ones are swept for as long as that takes, and then a slender cell of
the same length and cells says how many sweeps they need: what errs longest is long waves along the cell."""
WHOLE, SLENDER = 4000, 4
EVERY = 20
"""Sweeps from one look at the residual to the next."""


def zinc_cell(gap: int, length: int, width: int, slender: int | None = None) -> Problem:
    """0.1 M zinc sulphate between zinc electrodes 1 cm apart, in a cell 1 mm high and wide.

    slender  cells of this size, but only so many across the gap and the width
    """
    shape = (length, slender or gap, slender or width)
    spacing = (1e-2 / length, 1e-3 / gap, 1e-3 / width)
    held = Electrode({"Zn": Held(100.0)})
    grid = Grid(shape, axes=("y", "z", "x"), spacing=spacing, units="m")
    # Salt that a current has moved from one end to the other, so that the field has to find its way.
    salt = np.broadcast_to(100.0 - 30.0 * np.cos(np.pi * grid.centres("y") / 1e-2)[:, None, None], shape)
    return Problem(
        grid,
        (Species("Zn", 2, 0.715e-9, 100.0), Species("SO4", -2, 1.07e-9, 100.0)),
        Steps(STEP, STEP, STEP, adaptive=False, order=1), cathode=held, anode=held, voltage=VOLTAGE,
        initial={"Zn": salt, "SO4": salt},
    )  # fmt: skip


def measure_schemes(quick: bool, threads: int = 1) -> dict[str, Any]:
    """Times of both schemes by size."""
    rows = []
    for size in QUICK if quick else SIZES:
        problem = zinc_cell(*size)
        ours, residual = _semi_implicit(problem, threads)
        tolerance = max(residual, TOLERANCE)
        most = SWEEPS * WHOLE // math.prod(size)
        other = _relaxation(problem, tolerance, max(20, most), threads)
        if other["residual"] > tolerance:
            needed = _relaxation(zinc_cell(*size, slender=SLENDER), tolerance, 1_000_000, threads)["sweeps"]
            other |= {"sweeps_expected": needed, "seconds": other["seconds"] / other["sweeps"] * needed}
        ratio = round(other["seconds"] / ours["seconds"], 1)
        rows.append({"cells": size, "semi_implicit": ours | {"residual": residual}, "relaxation": other,
                     "tolerance": tolerance, "times_as_fast": ratio})  # fmt: skip
    return {"dt": STEP, "voltage": VOLTAGE, "tolerance": TOLERANCE, "threads": threads, "rows": rows}


def _semi_implicit(problem: Problem, threads: int) -> tuple[dict[str, float], float]:
    """The time step to a residual as small as that of the relaxation, as the relaxation measures it.

    Where cells are coarse that has a least value: at walls the two schemes are not the same (log-mean fluxes in one).
    """
    for agreement in (1e-4, 1e-6, 1e-8, 1e-10):
        model = electrodeposition(problem, agreement=agreement)
        with Engine(model.layouts("cartesian", 1), threads=threads) as engine:
            seconds = _time(model, engine)
            seen = {name: engine.read(item) for name, item in model.observables.items() if name == "passes"}
            fields = {s.name: engine.gather(model.field(s.name).now) for s in problem.species}
            fields["potential"] = engine.gather(model.field("potential").now)
        residual = _residual(problem, fields)
        if residual <= TOLERANCE:
            break
    return {"seconds": seconds, "agreement": agreement, "passes": int(seen["passes"])}, residual


def _time(model: Model, engine: Engine) -> float:
    """Seconds of one step from the first values, the second time it is done."""
    for _ in range(2):
        start(model, engine)
        began = time.perf_counter()
        outcome = engine.run(model.step)
        seconds = time.perf_counter() - began
        assert outcome.ok, outcome
    return seconds


def _residual(problem: Problem, fields: dict[str, np.ndarray]) -> float:
    """The largest scaled residual that a sweep of the relaxation meets in these fields."""
    scheme = Scheme.of(problem, RelaxationOptions())
    program = Program("one sweep")
    scheme.iteration(program, problem.steps.first)
    state, grid = scheme.state, problem.grid
    with Engine({grid: Layout.single(grid.box, 1)}) as engine:
        engine.write(state.voltage, problem.voltage or 0.0)
        for item, values in (start_values(problem, state) | scheme.lengths.initial).items():
            engine.set(item, values)
        for item in (*state.concentration, state.potential):
            engine.set(item.next, fields[item.name])
        assert engine.run(program).ok
        return float(engine.read(scheme.worst))


def _relaxation(problem: Problem, tolerance: float, most: int, threads: int) -> dict[str, Any]:
    """The time step by sweeps, to a residual below `tolerance` or until there were `most`."""
    scheme = Scheme.of(problem, RelaxationOptions())
    state, grid = scheme.state, problem.grid
    begin, sweep = Program("begin"), Program("sweeps")
    for item in scheme.moving:
        begin.apply(copy, item, item.next)
    with sweep.repeat(EVERY):
        scheme.iteration(sweep, problem.steps.first)
    spent, sweeps, residual = 0.0, 0, math.inf
    with Engine({grid: Layout.single(grid.box, threads)}, threads=threads) as engine:
        engine.write(state.voltage, problem.voltage or 0.0)
        for item, values in (start_values(problem, state) | scheme.lengths.initial).items():
            engine.set(item, values)
        engine.run(begin)
        engine.prepare(sweep, looped=False)
        while sweeps < most and residual > tolerance:
            began = time.perf_counter()
            assert engine.run(sweep).ok
            spent += time.perf_counter() - began
            sweeps += EVERY
            residual = float(engine.read(scheme.worst))
    return {"sweeps": sweeps, "residual": residual, "seconds": spent, "measured_seconds": spent}

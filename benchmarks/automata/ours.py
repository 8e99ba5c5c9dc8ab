"""minga on one core: an automaton's step repeated in native code, from the same cells."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import minga as mg
from benchmarks.automata.peers import Measured, Peer
from benchmarks.automata.soup import States
from minga.engine.begin import start
from minga.output.cells import gather_cells


def minga(rule: mg.Rule | str, **how: object) -> Peer:
    """The rule on a torus; `how` goes to mg.automaton: storage, skip_quiet."""

    def run(cells: States, generations: int, rounds: int, folder: Path) -> Measured:
        model = mg.automaton(rule, cells.shape, init=cells, **how)  # type: ignore[arg-type]
        with mg.Engine({grid: mg.Layout.single(grid.box, 1) for grid in _grids(model)}) as engine:
            seconds = []
            for number in range(rounds + 1):
                start(model, engine)
                engine.run(model.step, 2 - generations % 2)  # what is compiled and bound is not counted
                start(model, engine)
                began = time.thread_time()
                engine.run(model.step, generations)
                if number:
                    seconds.append(time.thread_time() - began)
            last = gather_cells(engine, model, model.output[0])
        return Measured(seconds, generations, int(np.count_nonzero(last)))

    return run


def _grids(model: mg.Model) -> dict[mg.Grid, None]:
    return dict.fromkeys((model.grid, *(field.grid for field in model.fields)))

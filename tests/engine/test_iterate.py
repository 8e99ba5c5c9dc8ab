"""Loops inside cells in Programs: the same bits for all layouts and threads, in sweeps and all at once."""

from __future__ import annotations

from typing import Any

import minga as mg
from minga.engine.program import Program
from minga.space.cuts import blocks, slabs

from .eager import fixed_number
from .running import check, random_array


@mg.kernel(order={"x": +1})
def march(u: Any, f: Any, rounds: Any) -> dict[str, Any]:
    """x**3 + x = what the cell before and the force say, solved in each cell before the next one."""
    rest = abs(u[0, -1]) + f[0, 0]

    def residual(x: Any) -> Any:
        return x * x * x + x - rest

    x, done = mg.iterate(
        u[0, 0],
        lambda x: abs(residual(x)) > 1e-13,
        lambda x: x - residual(x) / mg.derivative(residual(x), x),
        40,
    )
    u[0, 0], rounds[0, 0] = x, done
    return {"most": mg.max(done)}


@mg.kernel
def relax(u: Any, v: Any) -> dict[str, Any]:
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]
    end, done = mg.iterate((around, 1.0), lambda s: s[0] * s[1] > 0.5, lambda s: (s[0] - 0.125, s[1] * 0.75), 30)
    v[0, 0] = end[0] + end[1]
    return {"all": mg.sum(done)}


def test_layouts_and_threads() -> None:
    grid, wall = mg.Grid((4, 33)), fixed_number(0.25)
    u, v, f = (mg.Field(name, grid, boundary=wall.condition) for name in "uvf")
    rounds = mg.Field("rounds", grid, "i4")
    program = Program("step")
    most = program.apply(march, u, f, rounds)
    sums = program.apply(relax, u, v)
    program.apply(march, v, f, rounds)
    initial = {u: random_array(u), v: random_array(v, 1), f: random_array(f, 2), rounds: random_array(rounds)}
    layouts = [slabs(grid.box, 2, 1, granule=1), blocks(grid.box, 2, 2)]
    left = check([(program, 1)], initial, layouts, [wall], [most.most, sums.all], threads=2)
    found = left.arrays[rounds]
    assert found.min() < found.max() < 40

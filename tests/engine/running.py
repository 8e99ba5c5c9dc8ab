"""Running Programs on many layouts, and comparing what they leave with an eager evaluation, to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import minga as mg
from minga.engine.comm import Comm, SerialComm, run_virtual
from minga.engine.program import Program
from minga.space.cuts import bisection, blocks, cartesian, slabs
from minga.space.field import Field, Register
from minga.space.grid import Grid
from minga.space.layout import Layout

from .eager import Eager, Wall

Initial = Mapping[Field, Any]


@dataclass
class Left:
    """What a run leaves: outcomes, arrays by field (all slots), values of registers, messages and bytes by rank."""

    outcomes: list[tuple[str, str]]
    arrays: dict[Field, np.ndarray]
    registers: dict[str, Any]
    messages: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    kernels: list[int] = field(default_factory=list)
    """Kernel calls for traced kernels, by rank."""


def eagerly(
    programs: Sequence[tuple[Program, int]],
    initial: Initial,
    walls: Iterable[Wall] = (),
    registers: Sequence[Register] = (),
) -> Left:
    eager = Eager({wall.condition: wall for wall in walls})
    for register in registers:
        eager.write(register, register.initial)
    for item, value in initial.items():
        eager.set(item, value)
    outcomes = [eager.run(program, times) for program, times in programs]
    arrays = {f: np.stack([eager.gather(f.slot(k)) for k in range(f.slots)]) for f in initial}
    return Left(outcomes, arrays, dict(eager.registers))


def on_layouts(
    layouts: Layout | Mapping[Grid, Layout],
    programs: Sequence[tuple[Program, int]],
    initial: Initial,
    registers: Sequence[Register] = (),
    **settings: Any,
) -> Left:
    """A run on virtual ranks (or alone, where the layout is for one rank)."""
    if isinstance(layouts, Layout):
        layouts = {next(iter(initial)).grid: layouts}
    ranks = next(iter(layouts.values())).ranks

    def body(comm: Comm) -> tuple[Left, Any]:
        with mg.Engine(layouts, comm=comm, **settings) as engine:
            for item, value in initial.items():
                engine.set(item, value)
            outcomes = [engine.run(program, times) for program, times in programs]
            arrays = {f: [engine.gather(f.slot(k)) for k in range(f.slots)] for f in initial}
            values = {register.key: engine.read(register) for register in registers}
            counts = (engine.ledger.messages, engine.ledger.bytes, int(engine.booked[1, 0]))
        return Left([(o.reason, o.place) for o in outcomes], arrays, values), counts

    results = run_virtual(ranks, body) if ranks > 1 else [body(SerialComm())]
    first = results[0][0]
    for left, _ in results:
        assert left.outcomes == first.outcomes
        assert bits(list(left.registers.values())) == bits(list(first.registers.values()))
    counts = [count for _, count in results]
    arrays = {f: np.stack(values) for f, values in first.arrays.items()}
    return Left(first.outcomes, arrays, first.registers, *map(list, zip(*counts, strict=True)))


def bits(values: Sequence[Any]) -> list[bytes]:
    return [np.asarray(value).tobytes() for value in values]


def check(
    programs: Sequence[tuple[Program, int]],
    initial: Initial,
    layouts: Iterable[Layout | Mapping[Grid, Layout]],
    walls: Iterable[Wall] = (),
    registers: Sequence[Register] = (),
    **settings: Any,
) -> Left:
    """Assert that all layouts leave what the eager evaluation leaves; that."""
    expected = eagerly(programs, initial, walls, registers)
    for layout in layouts:
        found = on_layouts(layout, programs, initial, registers, **settings)
        assert found.outcomes == expected.outcomes
        for item, array in expected.arrays.items():
            np.testing.assert_array_equal(found.arrays[item], array, err_msg=f"{item!r} on {layout!r}")
            assert found.arrays[item].tobytes() == array.tobytes()
        for register in registers:
            assert bits([found.registers[register.key]]) == bits([np.asarray(expected.registers[register.key]).item()])
    return expected


def some_layouts(grid: Grid, granule: int = 1) -> list[Layout]:
    """Alone; slabs; uneven Cartesian cuts; bisection with an empty rank; several blocks a rank; one owner of three."""
    box, outer = grid.box, grid.ndim - 1
    parts = (2, *[1] * (grid.ndim - 2), 2) if grid.ndim > 1 else (3,)
    return [
        Layout.single(box, 1),
        slabs(box, 3, granule=granule),
        slabs(box, 2, outer, [1, 2], granule),
        cartesian(box, parts, granule=granule),
        bisection(box, [2.0, 0.0, 1.0, 3.0, 1.0], granule),
        blocks(box, 2, 3, granule=granule),
        Layout.single(box, 3, 1),
    ]


def random_values(item: Field, seed: int = 0) -> Callable[[mg.Box], np.ndarray]:
    """Values of any box of a field, equal on all layouts."""
    whole = random_array(item, seed)
    return lambda box: whole[box.slices(item.bounds.lo)]


def random_array(item: Field, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if item.dtype[0] == "f":
        return rng.standard_normal(item.bounds.shape).astype(item.dtype)
    if item.dtype == "bool":
        return rng.integers(0, 2, item.bounds.shape).astype(bool)
    return rng.integers(0, 100, item.bounds.shape).astype(item.dtype)

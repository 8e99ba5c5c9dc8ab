"""Programs that engines on a GPU are shown with, on a fake one and on a real one, and what runs of them leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minga as mg
from minga.engine.comm import Comm, SerialComm, run_virtual
from minga.engine.model import Model
from minga.engine.program import Program
from minga.running.session import state_digest
from minga.solve.krylov import conjugate_gradients
from minga.solve.laplacian import Laplacian
from minga.solve.multigrid import Multigrid
from minga.space.field import Field, Register
from minga.space.grid import Grid
from minga.space.layout import Layout

Device = Callable[[], Any] | str | None
"""What makes a device for a rank, or the word for one; None: the processor."""
Left = tuple[list[tuple[bool, str]], list[bytes], list[Any]]


@mg.kernel
def diffuse(u, new, k):
    new[0, 0] = u[0, 0] + k[0] * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4.0 * u[0, 0])
    here = u[0, 0]
    return {"total": mg.sum(here), "most": mg.max(here), "where": mg.argmax(here), "hot": mg.count(here > 0.5)}


@mg.kernel
def inject(u, *, amount):
    u[0, 0] = u[0, 0] + amount


def chosen(device: Device) -> dict[str, Any]:
    """The device as an option of an engine."""
    if device is None:
        return {}
    return {"device": device if isinstance(device, str) else device()}


def run(
    layouts: Layout | Mapping[Grid, Layout],
    programs: Sequence[tuple[Program, int]],
    values: Mapping[Field, Any],
    registers: Sequence[Register] = (),
    *,
    device: Device = None,
    **options: Any,
) -> Left:
    """What runs leave: outcomes, all slots of the fields, values of registers."""
    if isinstance(layouts, Layout):
        layouts = {next(iter(values)).grid: layouts}

    def body(comm: Comm) -> Left:
        with mg.Engine(layouts, comm=comm, **chosen(device), **options) as engine:
            for item, value in values.items():
                engine.set(item, value)
            outcomes = [engine.run(program, times) for program, times in programs]
            arrays = [engine.gather(item.slot(k)) for item in values for k in range(item.slots)]
            bits = [b"" if array is None else array.tobytes() for array in arrays]
            return [(o.ok, o.reason) for o in outcomes], bits, [engine.read(register) for register in registers]

    return on_ranks(next(iter(layouts.values())).ranks, body)


def on_ranks(ranks: int, body: Callable[[Comm], Any]) -> Any:
    """What `body` returns on the first of so many ranks, which are threads."""
    return (run_virtual(ranks, body) if ranks > 1 else [body(SerialComm())])[0]


@dataclass(frozen=True)
class Everything:
    """Boundaries, rotation, reductions, a loop with a condition and a changing limit, a branch, a call, points, a field
    of one axis."""

    grid: Grid
    program: Program
    values: dict[Field, Any]
    registers: list[Register]

    @classmethod
    def on(cls, shape: tuple[int, int], numbers: np.random.Generator) -> Everything:
        grid = Grid(shape, periodic=(True, False))
        u = Field("u", grid, slots=2, boundary=mg.fixed(1.0))
        k = Field("k", grid, axes=(0,))
        turns, goal = Register("turns", "i8", 4), Register("goal")
        program = mg.Program("everything")
        last = (shape[0] - 1, shape[1] - 51)
        with program.repeat(until=goal >= 4.5, limit=turns):
            found = program.apply(diffuse, u, u.next, k)
            program.rotate(u)
            program.apply(inject, u, amount=found.most * 0.25, region=mg.Region(points=[(3, 7), last]))
            program.let(goal, goal + 0.5)
            with program.when(goal == 1.0):
                program.let(turns, turns + 2)
            program.call(_halve(u), reads=[u], writes=[u])
        values = {u: numbers.random(shape), k: numbers.random(shape[0]) * 0.2}
        return cls(grid, program, values, [*vars(found).values(), turns, goal])


def _halve(item: Field) -> Callable[[mg.Engine], None]:
    def halve(engine: mg.Engine) -> None:
        for _, view in engine.blocks(item):
            view[...] *= 0.5

    return halve


def digest(model: Model, steps: int, ranks: int, device: Device = None) -> str:
    """The digest of a model's output fields after some steps on slabs."""

    def body(comm: Comm) -> str:
        with mg.Engine(model.layouts("slabs", ranks), comm=comm, **chosen(device)) as engine:
            for slot, value in model.start_values():
                engine.set(slot, value)
            assert engine.run(model.step, steps)
            return state_digest(engine, model, [model.field(item) for item in model.output])

    return str(on_ranks(ranks, body))


def solved(right_side: np.ndarray, device: Device = None, limit: int = 40) -> tuple[str, bytes, Any]:
    """How conjugate gradients with multigrid end on Poisson's equation, the solution, and how many iterations."""
    grid = Grid(right_side.shape)
    layout = Layout.single(grid.box, 1, 0)
    multigrid = Multigrid(Laplacian(grid), layout)
    x, b = Field("x", grid, boundary=mg.fixed(0.0)), Field("b", grid)
    program = mg.Program("solve")
    solution = conjugate_gradients(
        program, multigrid.operator, x, b, preconditioner=multigrid, tolerance=1e-9, limit=limit
    )
    with mg.Engine(multigrid.layouts(layout), **chosen(device)) as engine:
        multigrid.load(engine)
        engine.set(b, right_side)
        outcome = engine.run(program)
        found = engine.gather(x)
        assert found is not None
        return outcome.reason, found.tobytes(), engine.read(solution.iterations)

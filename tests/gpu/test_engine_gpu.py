"""The engine on a real GPU: the processor's bits from whole runs, copies that leave beside the computing, memory.

It needs NumPy, llvmlite, CuPy, pytest and this repository, nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, SerialComm, run_virtual
from minga.engine.model import Model
from minga.engine.program import Program
from minga.errors import LayoutError
from minga.solve.krylov import conjugate_gradients
from minga.solve.multigrid import Multigrid
from minga.solve.relaxation import jacobi, red_black
from minga.space.cuts import slabs
from minga.space.field import Field, Register
from minga.space.grid import Grid
from minga.space.layout import Layout

pytestmark = pytest.mark.gpu

NUMBERS = np.random.default_rng(7)
Left = tuple[list[tuple[bool, str]], list[bytes], list[Any]]


@pytest.fixture(scope="module", autouse=True)
def cupy() -> Any:
    """CuPy, if it finds a GPU."""
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception:  # CuPy raises errors of its own where the driver is missing
        pytest.skip("needs an NVIDIA GPU and cupy")
    return cupy


@mg.kernel
def diffuse(u, new, k):
    new[0, 0] = u[0, 0] + k[0] * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4.0 * u[0, 0])
    here = u[0, 0]
    return {"total": mg.sum(here), "most": mg.max(here), "where": mg.argmax(here), "hot": mg.count(here > 0.5)}


@mg.kernel
def tilted(p, new):
    g = mg.local(p[0, 0, 1] - p[0, 0, -1])
    new[0, 0, 0] = p[0, 0, 0] + 0.01 * (g[1, 0, 0] - g[-1, 0, 0] + g[0, 1, 0]) + 0.001 * mg.random("f4")


@mg.kernel
def inject(u, *, amount):
    u[0, 0] = u[0, 0] + amount


@mg.kernel(order={0: +1})
def down(u, f):
    u[0, 0] = f[0, 0] - 0.5 * u[-1, 0]


def run(
    layouts: Layout | Mapping[Grid, Layout],
    programs: Sequence[tuple[Program, int]],
    values: Mapping[Field, Any],
    registers: Sequence[Register] = (),
    **options: Any,
) -> Left:
    """What runs leave: outcomes, all slots of the fields, values of registers."""
    if isinstance(layouts, Layout):
        layouts = {next(iter(values)).grid: layouts}
    ranks = next(iter(layouts.values())).ranks

    def body(comm: Comm) -> Left:
        with mg.Engine(layouts, comm=comm, **options) as engine:
            for item, value in values.items():
                engine.set(item, value)
            outcomes = [engine.run(program, times) for program, times in programs]
            arrays = [engine.gather(item.slot(k)) for item in values for k in range(item.slots)]
            bits = [b"" if array is None else array.tobytes() for array in arrays]
            return [(o.ok, o.reason) for o in outcomes], bits, [engine.read(register) for register in registers]

    return (run_virtual(ranks, body) if ranks > 1 else [body(SerialComm())])[0]


def everywhere(
    programs: Sequence[tuple[Program, int]], values: Mapping[Field, Any], registers: Sequence[Register] = ()
) -> None:
    """The bits of the processor: natively and from Python, alone and on ranks that share a GPU."""
    box = next(iter(values)).grid.box
    alone = Layout.single(box, 1, 0)
    expected = run(alone, programs, values, registers)
    for native in (True, False):
        assert run(alone, programs, values, registers, device="gpu", native=native) == expected
    for ranks, options in ((2, {}), (3, {"overlap": False}), (2, {"halo_depth": 2})):
        found = run(slabs(box, ranks), programs, values, registers, device="gpu-shared", **options)
        assert found == expected


def test_a_case_of_everything() -> None:
    """Boundaries, rotation, reductions, a loop with a condition and a changing limit, a branch, a call, points."""
    grid = Grid((123, 330), periodic=(True, False))
    u = Field("u", grid, slots=2, boundary=mg.fixed(1.0))
    k = Field("k", grid, axes=(0,))
    turns, goal = Register("turns", "i8", 4), Register("goal")
    program = mg.Program("everything")
    with program.repeat(until=goal >= 4.5, limit=turns):
        found = program.apply(diffuse, u, u.next, k)
        program.rotate(u)
        program.apply(inject, u, amount=found.most * 0.25, region=mg.Region(points=[(3, 7), (122, 279)]))
        program.let(goal, goal + 0.5)
        with program.when(goal == 1.0):
            program.let(turns, turns + 2)
        program.call(_halve(u), reads=[u], writes=[u])
    values = {u: NUMBERS.random(grid.shape), k: NUMBERS.random(grid.shape[0]) * 0.2}
    everywhere([(program, 2)], values, [*vars(found).values(), turns, goal])


def _halve(item: Field) -> Callable[[mg.Engine], None]:
    def halve(engine: mg.Engine) -> None:
        for _, view in engine.blocks(item):
            view[...] *= 0.5

    return halve


def test_locals_random_numbers_and_four_byte_floats() -> None:
    grid = Grid((20, 33, 70), periodic=(True, True, True))
    p = Field("p", grid, "f4", slots=2)
    program = mg.Program("wave")
    program.apply(tilted, p, p.next)
    program.rotate(p)
    program.let(mg.STEP, mg.STEP + 1)
    everywhere([(program, 10)], {p: NUMBERS.random(grid.shape).astype("f4")})


def test_sweeps() -> None:
    grid = Grid((64, 130))
    u, f = Field("u", grid, boundary=mg.fixed(0.0)), Field("f", grid)
    program = mg.Program("sweep")
    program.apply(down, u, f)
    everywhere([(program, 3)], {u: NUMBERS.random(grid.shape), f: NUMBERS.random(grid.shape)})


@pytest.mark.parametrize("method", [jacobi, red_black])
def test_laplace(method: Callable[..., Register]) -> None:
    grid = Grid((60, 128))
    u = Field(
        "u",
        grid,
        slots=2 if method is jacobi else 1,
        boundary={"y": (mg.fixed(0.0), mg.fixed(1.0)), "x": mg.fixed(0.5)},
    )
    program = mg.Program("relax")
    residual = method(program, u)
    everywhere([(program, 50)], {u: NUMBERS.random(grid.shape)}, [residual])


@pytest.mark.parametrize("storage", ["bytes", "bits"])
@pytest.mark.parametrize("rule", ["B3/S23", "B36/S125/3"])
def test_automata(rule: str, storage: str) -> None:
    model = mg.automaton(rule, (190, 300), init={"soup": 0.4, "seed": 3}, storage=storage)

    def states(ranks: int, **options: Any) -> list[bytes]:
        def body(comm: Comm) -> list[bytes]:
            with mg.Engine(model.layouts("slabs", ranks), comm=comm, **options) as engine:
                for slot, value in model.start_values():
                    engine.set(slot, value)
                assert engine.run(model.step, 40)
                found = [engine.gather(item) for item in model.fields]
                return [b"" if array is None else array.tobytes() for array in found]

        return (run_virtual(ranks, body) if ranks > 1 else [body(SerialComm())])[0]

    assert states(1, device="gpu") == states(2, device="gpu-shared") == states(1)


def test_conjugate_gradients_with_multigrid() -> None:
    grid = Grid((128, 192))
    right_side = NUMBERS.random(grid.shape)

    def solve(device: str) -> tuple[str, bytes, Any]:
        multigrid = Multigrid(grid, Layout.single(grid.box, 1, 0))
        x, b = Field("x", grid, boundary=mg.fixed(0.0)), Field("b", grid)
        program = mg.Program("solve")
        solution = conjugate_gradients(
            program, multigrid.operator, x, b, preconditioner=multigrid, tolerance=1e-9, limit=40
        )
        with mg.Engine(multigrid.layouts, device=device) as engine:
            multigrid.load(engine)
            engine.set(b, right_side)
            outcome = engine.run(program)
            found = engine.gather(x)
            assert found is not None
            return outcome.reason, found.tobytes(), engine.read(solution.iterations)

    expected = solve("cpu")
    assert expected[0] == "converged"
    assert solve("gpu") == expected


def test_a_model_is_driven(cupy: Any) -> None:
    """Initial values, chunks of steps, observables."""
    from minga.engine.drive import drive

    grid = Grid((90, 128))
    u = Field("u", grid, slots=2, boundary=mg.fixed(1.0))
    k = Field("k", grid, axes=(0,))
    step, observe = mg.Program("step"), mg.Program("observe")
    found = step.apply(diffuse, u, u.next, k)
    step.rotate(u)
    model = Model("heat", grid, (u, k), step, {k: 0.2}, ("u",), observe, {"most": found.most, "total": found.total})
    seen = []
    for device in ("cpu", "gpu"):
        with mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device=device) as engine:
            frames: list[bytes] = []

            def keep(step: int, engine: mg.Engine, frames: list[bytes] = frames) -> None:
                whole = engine.gather(u)
                assert whole is not None
                frames.append(whole.tobytes())

            result = drive(model, engine, 60, every=20, on_snapshot=keep)
            seen.append((frames, dict(result.observables), result.steps))
    assert len(seen[0][0]) == 4
    assert seen[0] == seen[1]


def test_copies_leave_beside_the_computing() -> None:
    """Each holds the values of its moment, also where the run goes on at once."""
    grid = Grid((60, 70, 130), periodic=(True, True, True))
    p = Field("p", grid, "f4", slots=2)
    program = mg.Program("wave")
    program.apply(tilted, p, p.next)
    program.rotate(p)
    start = NUMBERS.random(grid.shape).astype("f4")
    box = mg.Box((3, 5, 7), (50, 69, 127))

    def frames(device: str) -> list[np.ndarray]:
        with mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device=device) as engine:
            engine.set(p, start)
            targets, pending = [], []
            for _ in range(8):
                engine.run(program, 3)
                targets.append(engine.buffer(box.size * 4).view("f4").reshape(box.shape))
                pending.append(engine.copy_out(p, box, targets[-1]))
            writer = threading.Thread(target=lambda: [copy.wait() for copy in pending])
            writer.start()
            writer.join()
            assert all(copy.done() for copy in pending)
            return targets

    for one, other in zip(frames("gpu"), frames("cpu"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_not_finite_ends_the_run() -> None:
    @mg.kernel
    def explode(u):
        u[0] = u[0] * 1e300
        return {"largest": mg.max(u[0])}

    grid = Grid((8,))
    u = Field("u", grid)
    program = mg.Program("explode")
    program.apply(explode, u)
    for native in (True, False):
        with mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device="gpu", native=native) as engine:
            engine.set(u, 1.0)
            outcome = engine.run(program, 9)
            assert (outcome.ok, outcome.reason) == (False, "not finite")


def test_fields_that_do_not_fit_are_named_before_anything_is_allocated(cupy: Any) -> None:
    free, _ = cupy.cuda.runtime.memGetInfo()
    grid = Grid((1 << 16, int(free) >> 17), periodic=(True, True))
    u = Field("u", grid, "f4", slots=3)
    program = mg.Program("add")
    program.apply(inject, u, amount=1.0)
    alone = mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device="gpu")
    with alone as engine, pytest.raises(LayoutError, match=r"do not fit into the memory of(.|\n)*u: .* \(3 slots\)"):
        engine.run(program)
    assert cupy.cuda.runtime.memGetInfo()[0] > free // 2


def test_ranks_do_not_share_a_gpu_unasked(cupy: Any) -> None:
    ranks = cupy.cuda.runtime.getDeviceCount() + 1
    grid = Grid((64,))

    def body(comm: Comm) -> None:
        mg.Engine(slabs(grid.box, ranks), grid=grid, comm=comm, device="gpu")

    with pytest.raises(LayoutError, match="gpu-shared"):
        run_virtual(ranks, body)

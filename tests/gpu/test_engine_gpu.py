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
from gpu_programs import Everything, diffuse, digest, inject, run, solved
from minga.engine.comm import Comm, run_virtual
from minga.engine.model import Model
from minga.engine.program import Program
from minga.errors import LayoutError
from minga.solve.relaxation import jacobi, red_black
from minga.space.cuts import slabs
from minga.space.field import Field, Register
from minga.space.grid import Grid
from minga.space.layout import Layout

pytestmark = pytest.mark.gpu

NUMBERS = np.random.default_rng(7)


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
def tilted(p, new):
    g = mg.local(p[0, 0, 1] - p[0, 0, -1])
    new[0, 0, 0] = p[0, 0, 0] + 0.01 * (g[1, 0, 0] - g[-1, 0, 0] + g[0, 1, 0]) + 0.001 * mg.random("f4")


@mg.kernel(order={0: +1})
def down(u, f):
    u[0, 0] = f[0, 0] - 0.5 * u[-1, 0]


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
    case = Everything.on((123, 330), NUMBERS)
    everywhere([(case.program, 2)], case.values, case.registers)


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
    assert digest(model, 40, 1, "gpu") == digest(model, 40, 2, "gpu-shared") == digest(model, 40, 1)


def test_conjugate_gradients_with_multigrid() -> None:
    right_side = NUMBERS.random((128, 192))
    expected = solved(right_side)
    assert expected[0] == "converged"
    assert solved(right_side, "gpu") == expected


def test_a_model_is_driven(cupy: Any) -> None:
    """Initial values, chunks of steps, observables."""
    from minga.running.loop import drive

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

            def keep(simulation: mg.Simulation, frames: list[bytes] = frames) -> None:
                whole = simulation.whole("u")
                assert whole is not None
                frames.append(whole.tobytes())

            result = drive(model, engine, 60, [mg.observer(keep, 20, start=True)])
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
        before = u[0]
        u[0] = before * 1e300
        return {"largest": mg.max(before)}

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

"""The engine on a GPU, shown on a fake one: the processor's bits, and waiting wherever the host looks at memory."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import minga as mg
from fake_device import FakeDevice
from gpu_programs import Everything, Left, diffuse, digest, inject, run, solved
from minga.compile.exact import empty_accumulator
from minga.engine.comm import Comm, SerialComm, run_virtual
from minga.engine.device import Helper, open_device
from minga.engine.device_kernels import helper_launch
from minga.engine.helpers import BoxAddress, Combine, Copy, combine_args, copy_args, reduction_words
from minga.engine.model import Model
from minga.errors import KernelError, LayoutError, RunError
from minga.lang.graph import ReductionKind
from minga.space.cuts import slabs
from minga.space.field import Field
from minga.space.grid import Grid
from minga.space.layout import Layout
from ptx_device import PtxDevice

from . import pool

NUMBERS = np.random.default_rng(5)


@mg.kernel
def crossed(p, new):
    g = mg.local(p[0, 1] - p[0, -1])
    new[0, 0] = p[0, 0] + 0.01 * (g[1, 0] - g[-1, 0]) + mg.random("f4")


@pytest.fixture(scope="module")
def everything() -> tuple[Everything, Left]:
    """A program with a bit of everything, and what the processor makes of it."""
    case = Everything.on((23, 130), NUMBERS)
    expected = run(Layout.single(case.grid.box, 1, 0), [(case.program, 2)], case.values, case.registers)
    assert expected[2][-2:] == [6, 4.5]
    return case, expected


@pytest.mark.parametrize("native", [True, False])
def test_a_case_of_everything_has_the_processors_bits(everything: Any, native: bool) -> None:
    case, expected = everything
    alone, programs = Layout.single(case.grid.box, 1, 0), [(case.program, 2)]
    assert run(alone, programs, case.values, case.registers, device=FakeDevice, native=native) == expected


@pytest.mark.parametrize(("ranks", "options"), [(2, {}), (3, {"overlap": False}), (2, {"halo_depth": 2})])
def test_ranks_have_the_processors_bits(everything: Any, ranks: int, options: Any) -> None:
    """Messages and words of reductions are complete when MPI sees them."""
    case, expected = everything
    layout, programs = slabs(case.grid.box, ranks), [(case.program, 2)]
    assert run(layout, programs, case.values, case.registers, device=FakeDevice, **options) == expected


@pytest.mark.slow
def test_locals_random_numbers_colours_and_sweeps_have_the_processors_bits() -> None:
    grid = Grid((20, 70), periodic=(True, True))
    p, u, f = Field("p", grid, "f4", slots=2), Field("u", grid), Field("f", grid)
    program = mg.Program("several")
    program.apply(crossed, p, p.next)
    program.rotate(p)
    program.apply(pool.checkered, u, f)
    program.apply(pool.down, f, u)
    program.let(mg.STEP, mg.STEP + 1)
    values = {item: NUMBERS.random((20, 70)).astype(item.dtype) for item in (p, u, f)}
    expected = run(Layout.single(grid.box, 1, 0), [(program, 3)], values)
    for layout in (Layout.single(grid.box, 1, 0), slabs(grid.box, 2)):
        assert run(layout, [(program, 3)], values, device=FakeDevice) == expected


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["life", "bits", "laplace"])
def test_models_have_the_processors_digest(name: str) -> None:
    model = {"life": _life, "bits": lambda: _life("bits"), "laplace": _laplace}[name]()
    assert digest(model, 5, 1, FakeDevice) == digest(model, 5, 2, FakeDevice) == digest(model, 5, 1)


def _life(storage: str = "bytes") -> Model:
    return mg.automaton("B3/S23", (30, 140), init={"soup": 0.4, "seed": 3}, storage=storage)


def _laplace() -> Model:
    grid = Grid((12, 64))
    u = Field("u", grid, slots=2, boundary=mg.fixed(1.0))
    step = mg.Program("step")
    step.apply(pool.star, u, u.next)
    step.rotate(u)
    return Model("laplace", grid, (u,), step)


def test_conjugate_gradients_with_multigrid_have_the_processors_bits() -> None:
    right_side = NUMBERS.random((16, 24))
    expected = solved(right_side, limit=30)
    assert expected[0] == "converged"
    assert solved(right_side, FakeDevice, limit=30) == expected


def test_work_moves_between_runs_and_blocks_are_timed() -> None:
    grid = Grid((20, 70), periodic=(True, True))
    u = Field("u", grid, slots=2)
    program = mg.Program("step")
    program.apply(pool.star, u, u.next)
    program.rotate(u)
    values = {u: NUMBERS.random((20, 70))}
    expected = run(Layout.single(grid.box, 1, 0), [(program, 5)], values)

    def work(comm: Comm) -> tuple[bytes, int]:
        with mg.Engine(slabs(grid.box, 2), grid=grid, comm=comm, device=FakeDevice()) as engine:
            engine.set(u, values[u])
            engine.run(program, 3)
            engine.relayout({grid: slabs(grid.box, 2, 0, [1.0, 3.0])})
            engine.time_blocks(grid)
            engine.run(program, 2)
            assert all(seconds > 0 for seconds in engine.block_seconds.values())
            arrays = [engine.gather(u.slot(k)) for k in range(2)]
            return b"".join(b"" if array is None else array.tobytes() for array in arrays), len(engine.block_seconds)

    assert run_virtual(2, work)[0] == (b"".join(expected[1]), 1)


# When the host waits -------------------------------------------------------------------------------------------------
def test_steps_without_questions_are_launched_without_waiting() -> None:
    grid = Grid((20, 70), periodic=(True, True))
    u = Field("u", grid, slots=2)
    program = mg.Program("step")
    program.apply(pool.star, u, u.next)
    program.rotate(u)
    for native in (True, False):
        device = FakeDevice()
        with mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device=device, native=native) as engine:
            engine.prepare(program)
            device.log.clear()
            engine.run(program, 20)
            said = [entry[0] for entry in device.log]
        launches = [place for place, word in enumerate(said) if word == "launch"]
        assert len(launches) >= 40
        waits = [place for place, word in enumerate(said) if word in ("synchronise", "fetch")]
        # Before the loop it is asked how often it is to be gone through.
        assert not [place for place in waits if launches[3] < place < launches[-1]]


def test_what_python_saw_goes_back_before_the_next_run() -> None:
    grid = Grid((20, 70), periodic=(True, True))
    u = Field("u", grid, slots=2)
    program = mg.Program("step")
    program.apply(pool.star, u, u.next)
    device = FakeDevice()
    with mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device=device) as engine:
        engine.prepare(program)
        for seen, expected in ((True, 2), (False, 0)):
            if seen:
                engine.gather(u)
            device.log.clear()
            engine.run(program)
            assert sum(entry[0] == "prefetch" for entry in device.log) == expected


def test_a_copy_leaves_behind_the_computing() -> None:
    """It holds the values of its moment, whatever runs meanwhile, and fits any block."""
    grid = Grid((20, 70), periodic=(True, True))
    u = Field("u", grid, "f4", slots=2)
    program = mg.Program("step")
    program.apply(pool.star, u, u.next)
    program.rotate(u)
    start = NUMBERS.random((20, 70)).astype("f4")
    box = mg.Box((3, 5), (15, 69))

    def work(comm: Comm) -> tuple[np.ndarray, np.ndarray, bool]:
        device = FakeDevice() if comm.size == 2 else None
        with mg.Engine(slabs(grid.box, comm.size), grid=grid, comm=comm, device=device or "cpu") as engine:
            engine.set(u, start)
            engine.run(program, 3)
            target = engine.buffer(box.size * 4).view("f4").reshape(box.shape)
            pending = engine.copy_out(u, box, target)
            engine.run(program, 2)
            pending.wait()
            pending.wait()
            with pytest.raises(LayoutError, match="contiguous array of shape"):
                engine.copy_out(u, box, target[1:])
            return target, np.concatenate([values for _, values in engine.blocks(u)]), pending.done()

    alone = work(SerialComm())
    first, second = run_virtual(2, work)
    assert np.array_equal(first[0] + second[0], alone[0])
    assert np.array_equal(np.concatenate([first[1], second[1]]), alone[1])
    assert first[2]


def test_a_copy_is_there_for_every_thread_that_waits() -> None:
    """The thread that writes frames waits for a copy while the solver's thread waits for the kernels before it."""
    device, copied = FakeDevice(), np.zeros(1, np.uint8)
    started, go = threading.Event(), threading.Event()
    address, keep = device.staged(1)
    device.queue(lambda: (started.set(), go.wait(60)))
    pending = device.copy_staged(address, copied, keep)
    with ThreadPoolExecutor(2) as threads:
        solver = threads.submit(device.synchronise)
        assert started.wait(60)
        writer = threads.submit(pending.wait)
        time.sleep(0.02)  # a wait that does not wait fails in this time
        assert not writer.done()
        go.set()
        solver.result(60), writer.result(60)
    assert pending.done()


def test_a_copy_that_must_be_put_in_its_place_is_so_once() -> None:
    grid = Grid((12, 128))
    u = Field("u", grid)
    start = NUMBERS.random(grid.shape)
    with mg.Engine(_halves(grid), grid=grid, device=FakeDevice()) as engine:
        engine.set(u, start)
        target = engine.buffer(start.nbytes).view("f8").reshape(grid.shape)
        pending = engine.copy_out(u, grid.box, target)
        assert not pending.done()
        engine.device.synchronise()  # type: ignore[union-attr]
        assert pending.done()
        assert np.array_equal(target, start)
        target[...] = 7.0
        pending.wait()
        assert (target == 7.0).all()


def _halves(grid: Grid) -> Layout:
    """Two blocks of one rank, along the last axis."""
    (rows, columns), middle = grid.shape, grid.shape[1] // 2
    boxes = [mg.Box((0, 0), (rows, middle)), mg.Box((0, middle), (rows, columns))]
    return Layout.from_boxes(grid.box, boxes, [0, 0], 1)


def test_fields_widen_on_the_device() -> None:
    """All slots, with their halos, in their order."""
    grid = Grid((12, 128), periodic=(True, True))
    u = Field("u", grid, slots=3)
    program, wider = mg.Program("rotate"), mg.Program("wider")
    program.rotate(u)
    wider.apply(pool.star, u, u.next)
    device = FakeDevice()
    with mg.Engine(_halves(grid), grid=grid, device=device) as engine:
        start = [NUMBERS.random(grid.shape) for _ in range(3)]
        for k, values in enumerate(start):
            engine.set(u.slot(k), values)
        engine.run(program)
        device.log.clear()
        engine.prepare(wider)
        assert device.log.count(("launch", "copy_boxes")) == 2
        assert device.log[-1] == ("synchronise",)
        for k in range(3):
            assert np.array_equal(engine.gather(u.slot(k)), start[(k + 1) % 3])


def test_not_finite_ends_the_run_at_its_place() -> None:
    @mg.kernel
    def explode(u):
        before = u[0]
        u[0] = before * 1e300
        return {"largest": mg.max(before)}

    grid = Grid((8,))
    u = Field("u", grid)
    program = mg.Program("explode")
    program.apply(explode, u)
    outcomes = []
    for device in ("cpu", FakeDevice(), FakeDevice()):
        with mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device=device, native=len(outcomes) != 1) as engine:
            engine.set(u, 1.0)
            outcomes.append(engine.run(program, 9))
    assert outcomes[0].reason == "not finite"
    assert outcomes[1] == outcomes[2] == outcomes[0]


# What goes wrong -----------------------------------------------------------------------------------------------------
def test_fields_that_do_not_fit_are_named() -> None:
    grid = Grid((300, 300), periodic=(True, True))
    fields = [Field(f"u{number}", grid, slots=1 + number) for number in range(12)]
    program = mg.Program("copy")
    for item in fields[:-1]:
        program.apply(inject, item, amount=1.0)
    program.apply(pool.star, fields[-1], fields[-1].next)
    with mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device=FakeDevice(70 << 20)) as engine:
        engine.set(fields[1], 1.0)
        with pytest.raises(LayoutError, match=r"u11: 8\.6 MB \(12 slots\)\n  u1: "):
            engine.set(fields[11], 1.0)
        assert fields[11] not in engine.storage.fields
    with (
        mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device=FakeDevice(80 << 20)) as engine,
        pytest.raises(LayoutError, match=r"memory of a fake GPU(.|\n)*u11: 8.8 MB \(12 slots\)\n(.|\n)*all fields"),
    ):
        engine.run(program)


@pytest.mark.parametrize("native", [True, False])
def test_an_error_of_the_gpu_is_told(native: bool) -> None:
    grid = Grid((8,), periodic=(True,))
    u = Field("u", grid)
    program = mg.Program("add")
    program.apply(_add, u)
    device = FakeDevice()
    with mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device=device, native=native) as engine:
        engine.run(program)
        device.fail = "illegal address"
        with pytest.raises(
            RunError, match="illegal address" if not native else "the GPU reports an error: fake error 700"
        ):
            engine.run(program)
        assert engine.run(program)


@mg.kernel
def _add(u):
    u[0] = u[0] + 1.0


def test_cells_in_order_are_refused() -> None:
    grid = Grid((8, 8))
    u, f = Field("u", grid, boundary=mg.fixed(0.0)), Field("f", grid)
    program = mg.Program("sweep")
    program.apply(pool.lexicographic, u, f)
    alone = mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device=FakeDevice())
    with alone as engine, pytest.raises(KernelError, match=r"CPUs only(.|\n)*red-black"):
        engine.run(program)


def test_devices_that_are_not_there_are_refused() -> None:
    with pytest.raises(LayoutError, match="device is 'tpu'"):
        open_device("tpu", SerialComm())
    assert open_device("cpu", SerialComm()) is None


# The PTX itself ------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_words_of_an_engine_fit_its_ptx() -> None:
    """Kernels with boundaries, reductions, shifts of periodic images, one axis and points, and the engine's own."""
    grid = Grid((4, 66), periodic=(True, False))
    u = Field("u", grid, slots=2, boundary=mg.fixed(1.0))
    k = Field("k", grid, axes=(0,))
    program = mg.Program("several")
    found = program.apply(diffuse, u, u.next, k)
    program.rotate(u)
    program.apply(inject, u, amount=found.most * 0.25, region=mg.Region(points=[(3, 7)]))
    values = {u: NUMBERS.random((4, 66)), k: NUMBERS.random(4) * 0.2}
    registers = list(vars(found).values())
    expected = run(Layout.single(grid.box, 1, 0), [(program, 1)], values, registers)
    devices: list[PtxDevice] = []

    def device() -> PtxDevice:
        devices.append(PtxDevice())
        return devices[-1]

    assert run(slabs(grid.box, 2), [(program, 1)], values, registers, device=device) == expected
    assert {"copy_boxes", "combine", "rotate", "diffuse", "inject"} <= devices[0].launched | devices[1].launched


def test_copies_of_boxes_and_combining_run_as_ptx() -> None:
    device = PtxDevice()
    for dtype, shape in (("u1", (3, 4, 5)), ("i2", (2, 3, 7)), ("f4", (3, 4, 6)), ("f8", (2, 2, 3)), ("f8", (1, 1, 1))):
        source, target = device.shared(4096), device.shared(4096)
        source[:] = NUMBERS.integers(0, 255, 4096)
        a = np.ndarray((6, 7, 9), dtype, source, 0)
        b = np.ndarray(shape, dtype, target, 0)
        slots = device.shared(16).view(np.int64)
        slots[:] = source.ctypes.data, target.ctypes.data
        offset = a.strides[0] + 2 * a.strides[1] + a.itemsize
        copy = Copy(
            BoxAddress(int(slots.ctypes.data), offset, a.strides),
            BoxAddress(int(slots.ctypes.data) + 8, 0, b.strides), shape, a.itemsize,
        )  # fmt: skip
        _call(device, "copy_boxes", copy_args([copy, copy]))
        inside = a[1 : 1 + shape[0], 2 : 2 + shape[1], 1 : 1 + shape[2]]
        assert inside.tobytes() == b.tobytes()
        assert not target[b.nbytes :].any()
    kinds: tuple[ReductionKind, ...] = ("sum", "max", "argmin", "count")
    accumulators = device.shared(8 * 80 * len(kinds)).view(np.int64).reshape(len(kinds), 80)
    totals = device.shared(8 * 80 * len(kinds)).view(np.int64).reshape(len(kinds), 80)
    accumulators[...] = NUMBERS.integers(-99, 99, accumulators.shape)
    before = accumulators.copy()
    items = [Combine(k, "f8", int(a.ctypes.data), int(t.ctypes.data)) for k, a, t in zip(kinds, accumulators, totals)]
    _call(device, "combine", combine_args(items, 1))
    for kind, old, new, total in zip(kinds, before, accumulators, totals, strict=True):
        width = reduction_words(kind, "f8")
        assert np.array_equal(total[:width], old[:width])
        assert not total[width:].any()
        assert np.array_equal(new[:width], empty_accumulator(kind)[:width])
        assert np.array_equal(new[width:], old[width:])


def _call(device: PtxDevice, name: Helper, args: np.ndarray) -> None:
    grid, block = helper_launch(name, args)
    device.launch(device.helper(name), grid, block, device.put(args))
    device.synchronise()

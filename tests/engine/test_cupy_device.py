"""The device for NVIDIA GPUs, on imitations of CuPy and of the driver whose kernels run on the machine for PTX."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine import cupy_device
from minga.engine.comm import SerialComm, VirtualComm, run_virtual
from minga.engine.cuda_driver import Driver
from minga.engine.cupy_device import CupyDevice, device_count
from minga.engine.device import dealt, open_device
from minga.errors import KernelError, LayoutError, RunError
from minga.space.field import Field
from minga.space.grid import Grid
from minga.space.layout import Layout
from ptx_device import PtxDevice


class Error(Exception):
    """As CuPy has them."""


class Place:
    """A device that threads enter before they wait for it."""

    def __init__(self, cuda: Cuda, number: int) -> None:
        self._cuda = cuda
        self._number = number

    def use(self) -> None:
        self._cuda.current.number = self._number

    def __enter__(self) -> None:
        self._before = getattr(self._cuda.current, "number", 0)
        self.use()

    def __exit__(self, *_: object) -> None:
        self._cuda.current.number = self._before


class Cuda:
    """What minga uses of `cupy.cuda` and of the driver's library; one GPU with the memory of a `PtxDevice`."""

    def __init__(self) -> None:
        self.machine = PtxDevice()
        self.count = 1
        self.visible: Callable[[], list[str]] = lambda: [f"0000:0{number}:00.0" for number in range(self.count)]
        self.current = threading.local()
        self.concurrent, self.full = 1, False
        self.capability = 9, 0
        self.fails: str | None = None
        self.modules: dict[int, str] = {}
        self.functions: dict[int, tuple[int, str]] = {}
        self.unloaded: list[int] = []
        self.prefetched = 0
        machine = self.machine
        self.runtime = SimpleNamespace(
            getDeviceCount=lambda: len(self.visible()),
            deviceGetPCIBusId=lambda number: self.visible()[number],
            free=lambda address: None,
            getDeviceProperties=lambda number: {
                "name": b"Imitation", "major": self.capability[0], "minor": self.capability[1],
            },
            deviceGetAttribute=lambda attribute, number: self.concurrent,
            memGetInfo=lambda: (1 << 30, 1 << 31),
            memsetAsync=lambda address, value, size, stream: machine._queue.append(
                lambda: ctypes.memset(address, value, size) and None
            ),
            memcpyAsync=self._copy,
        )  # fmt: skip

    def Device(self, number: int) -> Any:
        assert number < self.count
        return Place(self, number)

    def Stream(self, non_blocking: bool) -> Any:
        return SimpleNamespace(ptr=5, synchronize=self._synchronise, wait_event=lambda event: None)

    def Event(self, block: bool = False, disable_timing: bool = False) -> Any:
        made = self.current.number

        def synchronise() -> None:
            assert self.current.number == made, "a context on another device"
            self._synchronise()

        return SimpleNamespace(done=True, record=lambda stream: None, synchronize=synchronise)

    def malloc_managed(self, size: int) -> Any:
        memory = self.machine._own(size + 64)[:size]  # a gap behind it
        memory[:] = 0xEE
        return SimpleNamespace(ptr=int(memory.ctypes.data), memory=memory)

    alloc_pinned_memory = malloc_managed

    def alloc(self, size: int) -> Any:
        if self.full:
            raise Error("out of memory")
        return self.malloc_managed(size)

    def _copy(self, target: int, source: int, size: int, kind: int, stream: int) -> None:
        assert kind == (4 if self.machine.owns(target) and size > 8 else 2)
        self.machine._queue.append(lambda: ctypes.memmove(target, source, size) and None)

    def _synchronise(self) -> None:
        self.machine._drain()
        if self.fails:
            raise Error(self.fails)

    # The driver ----------------------------------------------------------------------------------------------------
    def cuModuleLoadDataEx(self, module: Any, image: bytes, count: int, options: Any, values: Any) -> int:
        assert list(options) == [5, 6]
        assert values[1] == 8192
        if b"broken" in image:
            ctypes.memmove(values[0], b"ptxas: cannot", 13)
            return 218
        module._obj.value = 1 + len(self.modules)
        self.modules[module._obj.value] = image.decode()
        return 0

    def cuModuleGetFunction(self, function: Any, module: int, name: bytes) -> int:
        assert f".entry {name.decode()}(" in self.modules[module]
        function._obj.value = 100 + len(self.functions)
        self.functions[function._obj.value] = module, name.decode()
        return 0

    def cuModuleUnload(self, module: int) -> int:
        self.unloaded.append(module)
        return 0

    def cuMemPrefetchAsync(self, address: int, size: int, device: int, stream: int) -> int:
        assert self.machine.owns(address)
        assert self.machine.owns(address + size - 1)
        self.prefetched += 1
        return 0

    def cuLaunchKernel(self, function: int, *words: Any) -> int:
        module, name = self.functions[function]
        grid, block, params = words[0:3], words[3:6], words[8]
        assert words[6:8] == (0, 5)
        args, worker = (ctypes.c_int64.from_address(address).value for address in params)
        assert ctypes.c_int64.from_address(worker).value == 0
        machine = self.machine
        if name.startswith("gpu_"):
            machine.launch(machine.helper(name.removeprefix("gpu_")), grid, block, args)  # type: ignore[arg-type]
        else:
            machine._programs[2000 + module] = name, self.modules[module]
            machine.launch(2000 + module, grid, block, args)  # type: ignore[arg-type]
        return 0

    def cuGetErrorName(self, code: Any, text: Any) -> int:
        text._obj.value = b"CUDA_ERROR_INVALID_PTX"
        return 0

    def cuGetErrorString(self, code: Any, text: Any) -> int:
        return 1


class Library:
    """Functions of a library, with the attributes that ctypes gives them."""

    def __init__(self, cuda: Cuda) -> None:
        for name in dir(cuda):
            if name.startswith("cu"):
                setattr(self, name, _function(getattr(cuda, name)))


def _function(work: Callable[..., int]) -> Callable[..., int]:
    def call(*arguments: Any) -> int:
        return work(*arguments)

    return call


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    imitation = Cuda()
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=imitation))
    monkeypatch.setattr(cupy_device, "driver", lambda: Driver(Library(imitation)))
    return imitation


@pytest.mark.slow
def test_an_engine_runs_on_it(cuda: Cuda) -> None:
    grid = Grid((4, 66), periodic=(True, False))
    u = Field("u", grid, slots=2, boundary=mg.fixed(1.0))
    program = mg.Program("step")
    most = program.apply(_heat, u, u.next)
    program.rotate(u)
    values = np.random.default_rng(2).random(grid.shape)
    box = mg.Box((1, 3), (4, 60))
    left = []
    for device in ("cpu", "gpu"):
        with mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device=device, native=False) as engine:
            engine.set(u, values)
            outcome = engine.run(program, 2)
            target = engine.buffer(box.size * 8).view("f8").reshape(box.shape)
            pending = engine.copy_out(u, box, target)
            assert engine.run(program)
            pending.wait()
            assert pending.done()
            left.append((outcome, target.tobytes(), engine.gather(u).tobytes(), engine.read(most)))
            said = repr(engine)
    assert left[0] == left[1]
    assert "GPU 0: Imitation, messages through pinned memory" in said
    assert cuda.prefetched == 4  # both slots to be copied to wider arrays, and those again before the run
    assert sorted(cuda.unloaded) == sorted(cuda.modules)


@mg.kernel
def _heat(u, new):
    new[0, 0] = u[0, 0] + 0.125 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4.0 * u[0, 0])
    return mg.max(u[0, 0])


@pytest.mark.slow
def test_memory_is_zero_known_and_counted(cuda: Cuda) -> None:
    device = CupyDevice()
    before = device.memory
    large, small, pinned = device.shared(1 << 17), [device.shared(24) for _ in range(3)], device.pinned(100)
    for memory, size in [(large, 1 << 17), (pinned, 100), *((memory, 24) for memory in small)]:
        assert memory.nbytes == size
        assert not memory.any()
        first = int(memory.ctypes.data)
        assert first % 64 == 0
        assert device.owns(first)
        assert device.owns(first + size - 1)
    assert len({int(memory.ctypes.data) for memory in small}) == 3
    assert not device.owns(int(large.ctypes.data) + (1 << 17))
    assert not device.owns(8)
    assert device.memory == (before[0] - (1 << 17), before[1])
    address = int(large.ctypes.data)
    view = large[8:].view("f8")
    del large, memory
    gc.collect()
    assert device.owns(address)  # the view keeps it
    del view
    gc.collect()
    assert not device.owns(address)
    assert device.memory == before
    gone = weakref.ref(device)
    del device, small, pinned
    gc.collect()
    assert gone() is None


def test_code_that_the_driver_refuses_is_told(cuda: Cuda) -> None:
    driver = Driver(Library(cuda))
    with pytest.raises(KernelError, match=r"code of 'heat': CUDA_ERROR_INVALID_PTX\nptxas: cannot"):
        driver.load("broken", "heat")


def test_errors_of_kernels_are_told_where_they_are_met(cuda: Cuda) -> None:
    device = CupyDevice()
    cuda.fails = "cudaErrorIllegalAddress: an illegal memory access"
    with pytest.raises(RunError, match=r"illegal memory access(.|\n)*waiting for kernels"):
        device.synchronise()


def test_old_gpus_and_machines_without_one_are_refused(cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda.capability = 7, 5
    with pytest.raises(LayoutError, match=r"Imitation has compute capability 7\.5"):
        CupyDevice()
    cuda.count = 0
    with pytest.raises(LayoutError, match="has no GPU"):
        device_count()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(LayoutError, match=r'needs CuPy(.|\n)*pip install "minga\[gpu\]"'):
        open_device("gpu", SerialComm())


@pytest.mark.slow
def test_what_is_brought_to_a_machine_with_a_gpu_needs_little() -> None:
    """NumPy, llvmlite and pytest, as docs/gpu.md says; CuPy where it is used."""
    root = Path(__file__).parents[2]
    absent = ["mpi4py", "zarr", "numcodecs", "xarray", "matplotlib", "segyio", "scipy", "hypothesis", "typer", "rich"]
    modules = ["benchmarks.gpu.__main__", *(path.stem for path in (root / "tests" / "gpu").glob("test_*.py"))]
    code = f"import sys; sys.modules.update(dict.fromkeys({[*absent, 'cupy']})); import {', '.join(modules)}"
    places = [root / "src", root / "tests", root / "tests" / "gpu", root]
    path = os.pathsep.join(map(str, places))
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": path})


def test_ranks_take_gpus_by_their_place(cuda: Cuda) -> None:
    cuda.count = 2

    def number(comm: VirtualComm) -> int:
        device = open_device("gpu" if comm.size == 2 else "gpu-shared", comm)
        assert isinstance(device, CupyDevice)
        return device.number

    assert run_virtual(2, number) == [0, 1]  # type: ignore[arg-type]
    assert run_virtual(3, number) == [0, 1, 0]  # type: ignore[arg-type]
    with pytest.raises(LayoutError, match=r"3 ranks on one machine, where they see 2 GPUs(.|\n)*gpu-shared"):
        run_virtual(3, lambda comm: open_device("gpu", comm))


def test_ranks_that_see_one_gpu_each_take_it() -> None:
    assert dealt([0, 0, 1, 1], [["a"], ["b"], ["a"], ["b"]]) == [0, 0, 0, 0]
    assert dealt([0, 1, 0, 1], [["a", "b"]] * 4) == [0, 0, 1, 1]
    assert dealt([0, 0, 0], [["a", "b"], ["b", "a"], ["b", "a"]]) == [0, 0, 0]


def test_batch_systems_may_show_each_rank_its_own_gpu(cuda: Cuda) -> None:
    shown = threading.local()
    cuda.visible = lambda: shown.names

    def number(comm: VirtualComm, names: list[str]) -> int:
        shown.names = [names[comm.rank]]
        device = open_device("gpu", comm)
        assert isinstance(device, CupyDevice)
        return device.number

    assert run_virtual(2, lambda comm: number(comm, ["0000:01:00.0", "0000:02:00.0"])) == [0, 0]
    with pytest.raises(LayoutError, match="2 ranks on one machine, where they see 1 GPU\n"):
        run_virtual(2, lambda comm: number(comm, ["0000:01:00.0"] * 2))


def test_threads_wait_on_the_device_of_their_rank(cuda: Cuda) -> None:
    cuda.count = 2
    device = CupyDevice(1)
    source, keep = device.staged(512)
    target = device.pinned(512)
    ctypes.memmove(source, bytes(range(256)) * 2, 512)
    pending = device.copy_staged(source, target, keep)
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            pending.wait()
            assert getattr(cuda.current, "number", 0) == 0
        except BaseException as error:
            failed.append(error)

    writer = threading.Thread(target=wait)
    writer.start()
    writer.join()
    assert not failed
    assert np.array_equal(target, np.arange(512) % 256)


def test_frames_leave_a_device_that_is_full(cuda: Cuda) -> None:
    grid = Grid((6, 66))
    u = Field("u", grid)
    values = np.random.default_rng(3).random(grid.shape)
    with mg.Engine(Layout.single(grid.box, 1, 0), grid=grid, device="gpu") as engine:
        engine.set(u, values)
        target = engine.buffer(values.nbytes).view("f8").reshape(grid.shape)
        cuda.full = True
        engine.copy_out(u, grid.box, target).wait()
        assert np.array_equal(target, values)


def test_copies_are_waited_for_where_memory_is_not_shared_at_once(cuda: Cuda) -> None:
    cuda.concurrent = 0
    device = CupyDevice()
    source, keep = device.staged(512)
    target = device.pinned(512)
    ctypes.memmove(source, bytes(range(256)) * 2, 512)
    device.copy_staged(source, target, keep)
    assert np.array_equal(target, np.arange(512) % 256)

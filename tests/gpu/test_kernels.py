"""Kernels on a real GPU: the oracle's bits from every kernel of the suite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu_kernels import Case, bind, cases, check
from minga.compile.ptx import ENTRY, Schedule, launch, print_ptx

SUITE = {case.name: case for case in cases()}

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def cupy():
    """CuPy, if it finds a GPU."""
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception:  # CuPy raises errors of its own where the driver is missing
        pytest.skip("needs an NVIDIA GPU and CuPy: pip install cupy-cuda12x on a machine that has one")
    return cupy


class Device:
    """Arrays in the device's memory, found again by their address."""

    def __init__(self, cupy) -> None:
        self.cupy = cupy
        self.kept: dict[int, object] = {}

    def put(self, array: np.ndarray) -> int:
        copy = self.cupy.asarray(np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8))
        self.kept[copy.data.ptr] = copy
        return int(copy.data.ptr)

    def get(self, address: int, like: np.ndarray) -> np.ndarray:
        return self.cupy.asnumpy(self.kept[address]).view(like.dtype).reshape(like.shape)


@pytest.mark.parametrize("shape", ["suggested", "small"])
@pytest.mark.parametrize("name", SUITE)
def test_the_gpu_has_the_oracles_bits(cupy, tmp_path: Path, name: str, shape: str):
    run_case(cupy, tmp_path, SUITE[name], shape, "auto")


@pytest.mark.parametrize("shape", ["suggested", "small"])
@pytest.mark.parametrize("schedule", ["straight", "tile", "march"])
@pytest.mark.parametrize("name", ["heat", "jacobi f8", "life", "tti", "diffusion", "prolong coarse", "tables"])
def test_every_schedule_has_the_same_bits(cupy, tmp_path: Path, name: str, schedule: Schedule, shape: str):
    run_case(cupy, tmp_path, SUITE[name], shape, schedule)


def run_case(cupy, tmp_path: Path, case: Case, shape: str, schedule: Schedule) -> None:
    device = Device(cupy)
    arrays = case.arrays()
    bound = bind(case, arrays, case.graph, device.put)
    capability = cupy.cuda.Device().compute_capability
    path = tmp_path / "kernel.ptx"
    path.write_text(print_ptx(case.graph, "sm_90" if int(capability) >= 90 else "sm_80", schedule))
    function = cupy.RawModule(path=str(path)).get_function(ENTRY)
    suggested = launch(case.graph, case.lo, case.hi, schedule=schedule)
    grid, block = ((2, 2, 1), (64, 4, 1)) if shape == "small" else (suggested.grid, suggested.block)
    function(grid, block, (np.uint64(bound.args), np.uint64(bound.worker)))
    cupy.cuda.Device().synchronize()
    check(case, bound, arrays, device.get)

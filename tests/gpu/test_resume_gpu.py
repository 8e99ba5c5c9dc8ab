"""A run that began on a processor goes on on a GPU, and the other way round, with the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import minga as mg
from minga.engine.comm import SerialComm
from minga.output.checkpoint.keeper import Checkpointing, Keeper
from minga.running.loop import drive
from minga.running.observers.checkpoints import Checkpoints
from minga.space.layout import Layout

pytestmark = pytest.mark.gpu

GRID = mg.Grid((50, 130), periodic=(True, False))


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
def spread(u: Any, k: Any, before: Any, new: Any, *, dt: float) -> Any:
    new[0, 0] = 2 * u[0, 0] - before[0, 0] + dt * k[0, 0] * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])
    return {"most": mg.max(abs(u[0, 0]))}


@mg.kernel
def spark(u: Any) -> None:
    u[0, 0] = u[0, 0] + 1e-3 * mg.random()


def waves() -> mg.Model:
    u = mg.Field("u", GRID, slots=3, boundary=mg.fixed(0.0))
    k = mg.Field("k", GRID)
    dt = mg.Register("dt", "f8", 0.5)
    step = mg.Program("step")
    step.apply(spread, u, k, u.previous, u.next, dt=dt)
    step.rotate(u)
    step.apply(spark, u)
    step.let(dt, dt * 0.999)
    step.let(mg.STEP, mg.STEP + 1)
    return mg.Model("waves", GRID, (u, k), step, initial={k: 0.2}, registers={dt: 0.5}, seed=7)


def go(path: Path, steps: int, device: str, every: int | None) -> tuple[int, list[bytes]]:
    model = waves()
    schedule = Checkpointing(steps=every) if every else Checkpointing(off=True)
    keeper = Keeper(path, SerialComm(), schedule, resumes=True)
    with mg.Engine(Layout.single(GRID.box, 1), grid=GRID, device=device) as engine:
        result = drive(model, engine, steps, [Checkpoints(keeper)])
        u = model.fields[0]
        arrays = [engine.gather(u.slot(k)) for k in (0, 2)]
        return result.resumed.step, [array.tobytes() for array in arrays if array is not None]


@pytest.mark.parametrize(("before", "after"), [("cpu", "gpu"), ("gpu", "cpu"), ("gpu", "gpu")])
def test_a_run_goes_on_elsewhere(tmp_path: Path, before: str, after: str) -> None:
    _, expected = go(tmp_path / "whole", 50, "cpu", None)
    go(tmp_path / "cut", 38, before, 15)
    resumed, found = go(tmp_path / "cut", 50, after, 15)
    assert resumed == 30
    assert found == expected

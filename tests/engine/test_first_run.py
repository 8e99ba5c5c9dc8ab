"""Kernels that the first run of a Program compiles, and their order: ranks share the work."""

from __future__ import annotations

from typing import Any

import pytest

import minga as mg
from minga.engine import backend, engine
from minga.engine.comm import Comm, run_virtual
from minga.space.box import Box
from minga.space.cuts import slabs


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of kernels when they are compiled, and "helpers" when the engine's own ones are requested."""
    found: list[str] = []
    compiled, helpers = backend.compile_kernel, backend.helper_addresses

    def compile_noted(graph: Any, **options: Any) -> Any:
        found.append(graph.name)
        return compiled(graph, **options)

    def helpers_noted() -> Any:
        found.append("helpers")
        return helpers()

    monkeypatch.setattr(backend, "_RECENT", backend._Recent(16))
    monkeypatch.setattr(backend, "compile_kernel", compile_noted)
    for place in (backend, engine):
        monkeypatch.setattr(place, "helper_addresses", helpers_noted)
    return found


def average(u: Any, new: Any) -> None:
    new[0] = 0.5 * (u[-1] + u[1])


def twice(u: Any, total: Any) -> None:
    total[0] = 2.0 * u[0]


def step_of(engine: mg.Engine, grid: mg.Grid) -> None:
    u, total = mg.Field("u", grid, slots=2), mg.Field("total", grid)
    step = mg.Program("step")
    step.apply(mg.kernel(average), u, u.next)
    step.rotate(u)
    step.apply(mg.kernel(twice), u, total)
    engine.set(u, 1.0)
    engine.run(step)


def test_kernels_come_before_the_engines_own(noted: list[str]) -> None:
    grid = mg.Grid((64,), periodic=True)
    with mg.Engine({grid: slabs(Box((0,), (64,)), 1)}) as engine:
        step_of(engine, grid)
    assert {*noted[:2]} == {"average", "twice"}
    assert {*noted[2:]} == {"helpers"}


def test_other_ranks_compile_the_engines_own_kernels_meanwhile(noted: list[str]) -> None:
    grid = mg.Grid((64,), periodic=True)
    asked: dict[int, list[str]] = {}

    def body(comm: Comm) -> None:
        barrier = comm.barrier

        def noted_barrier() -> None:
            asked.setdefault(comm.rank, []).extend(noted)
            barrier()

        comm.barrier = noted_barrier  # type: ignore[method-assign]
        with mg.Engine({grid: slabs(Box((0,), (64,)), 2)}, comm=comm) as engine:
            step_of(engine, grid)

    run_virtual(2, body)
    assert asked[1][:1]
    assert "helpers" in asked[1]

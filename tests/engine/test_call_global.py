"""Python functions with whole fields between operations."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import minga as mg
from fake_device import FakeDevice
from minga.space.cuts import slabs

GRID = mg.Grid((9, 7), periodic=True)
START = np.random.default_rng(3).random(GRID.shape)


@mg.kernel
def average(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


def averaged(u: np.ndarray) -> np.ndarray:
    return 0.25 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1))


def blurred(u: np.ndarray) -> np.ndarray:
    """A function whose every value depends on values far away."""
    result: np.ndarray = ndimage.gaussian_filter(u, sigma=2.0, mode="wrap")
    return result


def model() -> mg.Model:
    u, number = mg.Field("u", GRID, slots=2), mg.Register("number", "i8")
    step, observe = mg.Program("step"), mg.Program("observe")
    step.apply(average, u, u.next)
    step.rotate(u)
    step.call_global(blurred, reads=[u], writes=[u])
    observe.call_global(lambda u: ndimage.label(u > 0.5)[1], reads=[u], writes=[number])
    return mg.Model("blur", GRID, (u,), step, initial={"u": START}, observe=observe, observables={"islands": number})


def test_whole_fields_are_those_of_numpy() -> None:
    expected = START
    found = mg.run(model(), 3, every=1)
    for step in range(4):
        assert np.array_equal(found.u[step], expected)
        assert found.islands[step] == ndimage.label(expected > 0.5)[1]
        expected = blurred(averaged(expected))


@pytest.mark.few(3)
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("settings", [{}, {"halo_depth": 2}, {"threads": 2}, {"overlap": False}])
def test_the_bits_do_not_depend_on_ranks(ranks: int, settings: dict[str, Any]) -> None:
    def run(comm: Any) -> dict[str, Any]:
        return dict(mg.run(model(), 5, comm=comm, **settings).attrs)

    alone = mg.run(model(), 5).attrs
    for found in mg.run_virtual(ranks, run):
        assert (found["digest"], found["islands"]) == (alone["digest"], alone["islands"])


def test_a_run_that_goes_on_has_the_same_bits(tmp_path: Any) -> None:
    mg.run(model(), 2, out=tmp_path / "run", checkpoint=mg.Checkpointing(steps=2, at_end=True))
    rest = mg.run(model(), 5, out=tmp_path / "run", resume=True)
    assert rest.attrs["digest"] == mg.run(model(), 5).attrs["digest"]


def on_ranks(
    ranks: int, program: mg.Program, fields: Sequence[mg.Field], device: Any = None
) -> list[np.ndarray | None]:
    """Run a Program from START and return the first field on all ranks."""

    def run(comm: Any) -> np.ndarray | None:
        with mg.Engine(slabs(GRID.box, ranks), comm=comm, grid=GRID, device=device or "cpu") as engine:
            for field in fields:
                engine.set(field, START)
            engine.run(program)
            return engine.gather(fields[0])

    return mg.run_virtual(ranks, run)


@pytest.mark.parametrize("ranks", [1, 3])
def test_several_fields_and_registers(ranks: int) -> None:
    u, v = mg.Field("u", GRID), mg.Field("v", GRID, dtype="f4")
    factor, total = mg.Register("factor", initial=3.0), mg.Register("total")
    calls: list[int] = []

    def both(u: np.ndarray, factor: float) -> tuple[Any, Any, float]:
        calls.append(1)
        return factor * u, 1, float(u.sum())

    @mg.kernel
    def add(u, v, *, total):
        u[0, 0] = u[0, 0] + v[0, 0] + total

    step = mg.Program("step")
    step.call_global(both, reads=[u, factor], writes=[u, v, total])
    step.apply(add, u, v, total=total)
    found = on_ranks(ranks, step, (u, v))[0]
    assert np.array_equal(found, 3.0 * START + 1.0 + START.sum())
    assert calls == [1]


def test_ranks_get_their_own_cells_alone() -> None:
    """What rank 0 sends to all ranks is small; each gets its part of the field."""
    u = mg.Field("u", GRID)
    step = mg.Program("step")
    step.call_global(blurred, reads=[u], writes=[u])
    sizes: list[int] = []

    def run(comm: Any) -> np.ndarray | None:
        spread = comm.bcast
        comm.bcast = lambda value: sizes.append(len(pickle.dumps(value))) or spread(value)
        with mg.Engine(slabs(GRID.box, 3), comm=comm, grid=GRID) as engine:
            engine.scatter(u, START if comm.rank == 0 else None)
            engine.run(step)
            return engine.gather(u)

    assert np.array_equal(mg.run_virtual(3, run)[0], blurred(START))
    assert max(sizes) < START.nbytes / 3


def test_scattered_values_have_to_fit() -> None:
    def run(comm: Any) -> str:
        with (
            mg.Engine(slabs(GRID.box, 2), comm=comm, grid=GRID) as engine,
            pytest.raises(mg.MingaError, match=r"has shape \(9, 7\), the array \(7, 9\)") as caught,
        ):
            engine.scatter(mg.Field("u", GRID), START.T if comm.rank == 0 else None)
        return type(caught.value).__name__

    assert mg.run_virtual(2, run) == ["LayoutError", "RunError"]


def test_on_a_device() -> None:
    u = mg.Field("u", GRID, slots=2)
    step = mg.Program("step")
    step.apply(average, u, u.next)
    step.rotate(u)
    step.call_global(blurred, reads=[u], writes=[u])
    step.apply(average, u, u.next)
    step.rotate(u)
    found = on_ranks(2, step, (u,), FakeDevice())[0]
    assert np.array_equal(found, averaged(blurred(averaged(START))))


def test_a_function_may_only_look() -> None:
    u = mg.Field("u", GRID)
    seen: list[np.ndarray] = []
    step = mg.Program("step")
    step.call_global(lambda u: seen.append(u), reads=[u])
    assert np.array_equal(on_ranks(2, step, (u,))[0], START)
    assert len(seen) == 1
    assert np.array_equal(seen[0], START)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda u: None, "returned None for u"),
        (lambda u: u[1:], r"shape \(8, 7\) for u of shape \(9, 7\)"),
        (lambda u: 1 / 0, "division by zero"),
        (lambda u: u * 1j, "real numbers"),
    ],
)
def test_errors_of_a_function_end_all_ranks(ranks: int, function: Callable[..., Any], said: str) -> None:
    u = mg.Field("u", GRID)
    step = mg.Program("step")
    step.call_global(function, reads=[u], writes=[u])

    def run(comm: Any) -> str:
        with (
            mg.Engine(slabs(GRID.box, ranks), comm=comm, grid=GRID) as engine,
            pytest.raises((mg.MingaError, ZeroDivisionError), match=said) as caught,
        ):
            engine.run(step)
        return str(caught.value)

    assert len(mg.run_virtual(ranks, run)) == ranks


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"function": 3}, "expected a function"),
        ({"reads": "u"}, "reads='u'"),
        ({"writes": [3]}, "writes are fields and registers, found 3"),
    ],
)
def test_wrong_arguments_are_refused(words: dict[str, Any], said: str) -> None:
    with pytest.raises(mg.ProgramError, match=said):
        mg.Program("step").call_global(**{"function": blurred, **words})

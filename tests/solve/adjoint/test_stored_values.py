"""Steps that store the values which their reversal needs: the bits are those of reversals that see the state."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import minga as mg
from adjoint_problems import GRID, PROBLEMS, Problem, problems
from minga.engine import pages
from minga.errors import ProgramError, RunError
from minga.solve.adjoint import adjoint as adjoint_module

Gradient = Mapping[tuple[mg.Field, int], np.ndarray]


def equal(one: Gradient, other: Gradient) -> bool:
    return all(np.array_equal(one[key], array) for key, array in other.items())


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let steps store values however many there are; what was done is listed."""
    done: list[str] = []
    monkeypatch.setattr(adjoint_module, "_MOST_VALUES", 1000)
    for name in ("_with_values", "_with_all_states", "_with_checkpoints"):
        original = getattr(adjoint_module.Adjoint, name)

        def noting(self: Any, *rest: Any, name: str = name, original: Any = original) -> None:
            done.append(name)
            original(self, *rest)

        monkeypatch.setattr(adjoint_module.Adjoint, name, noting)
    return done


def line(cells: int = 103) -> tuple[Problem, list[mg.Field]]:
    """A step on one axis."""

    @mg.kernel
    def diffuse(u: Any, k: Any, new: Any) -> None:
        new[0] = u[0] + 0.1 * k[0] * (u[1] - 2.0 * u[0] + u[-1])

    grid = mg.Grid((cells,))
    u, k = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0)), mg.Field("k", grid)
    step = mg.Program("line")
    step.apply(diffuse, u, k, u.next)
    step.rotate(u)
    return Problem(step, [u, k], u), [u, k]


STORING = {"heat": PROBLEMS["heat"], "reaction": PROBLEMS["reaction"], "staggered": PROBLEMS["staggered"], "line": line}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", STORING)
def test_bits_are_those_of_kept_states(name: str, stored: list[str]) -> None:
    problem, wrt = STORING[name]()
    problem.steps = 5
    expected = problem.gradient(wrt, checkpoints=2)
    assert any(array.any() for array in expected.values())
    assert equal(problem.gradient_by_program(wrt), expected)
    assert equal(problem.gradient_by_program(wrt, memory=1), expected)
    assert stored == ["_with_checkpoints", "_with_values", "_with_checkpoints"]


@pytest.mark.parametrize("name", ["corners", "advection"])
def test_steps_whose_values_are_needed_elsewhere_keep_states(name: str, stored: list[str]) -> None:
    problem, wrt = PROBLEMS[name]()
    assert equal(problem.gradient_by_program(wrt), problem.gradient(wrt, checkpoints=1))
    assert stored == ["_with_all_states", "_with_checkpoints"]


def test_an_operation_that_is_recorded_twice(stored: list[str]) -> None:
    problem, wrt = PROBLEMS["heat"]()
    twice = mg.Program("twice")
    twice.include(problem.step)
    twice.include(problem.step)
    problem.step = twice
    assert equal(problem.gradient_by_program(wrt), problem.gradient(wrt, checkpoints=1))
    assert stored == ["_with_all_states", "_with_checkpoints"]


@pytest.mark.parametrize("native", [True, False])
def test_kernels_read_values_on_the_tape_while_it_is_lent(native: bool, stored: list[str]) -> None:
    problem, (u, k) = line()
    adjoint = mg.adjoint(problem.step, [u, k])
    assert adjoint.recording.remembered is not None
    (value,) = {slot.field for slot in adjoint.recording.remembered.slots}
    places: list[int] = []
    gradients = []
    with problem.engine(native=native) as engine:
        arrays = engine.storage.stored(value).blocks[0]

        def add(engine: mg.Engine) -> None:
            places.append(int(arrays.table[0]))
            for _, values in engine.blocks(adjoint.of[u], write=True):
                values += 1.0

        seed = mg.Program("seed")
        seed.call(add, writes=(adjoint.of[u],))
        own = arrays.arrays[0].ctypes.data
        for memory in (1 << 30, 1 << 30, 1):
            problem.set(engine, problem.values)
            adjoint.run(engine, 3, seed=seed, memory=memory)
            assert arrays.table[0] == own
            gradients.append(np.array(engine.gather(adjoint.of[k])))
    assert stored == ["_with_values", "_with_values", "_with_checkpoints"]
    assert np.abs(gradients[0]).min() > 0.0
    assert all(np.array_equal(gradients[0], other) for other in gradients)
    for first, *frames in (places[:4], places[4:8]):
        assert first == own
        assert own not in frames
        assert frames[0] - frames[1] == frames[1] - frames[2] == 832  # thirteen lines for 103 floats of 8 bytes


def test_seeds_find_the_registers_before_the_step(stored: list[str]) -> None:
    """A seed with a rate that the step changes."""
    u = mg.Field("u", GRID, slots=2, boundary=mg.fixed(0.0))
    rate = mg.Register("rate", initial=1.0)

    @mg.kernel
    def grow(u: Any, new: Any, *, rate: Any) -> None:
        new[0, 0] = u[0, 0] + 0.1 * rate * u[0, 0] * u[0, 0]

    @mg.kernel
    def add(target: Any, *, rate: Any) -> None:
        target[0, 0] = target[0, 0] + rate

    step = mg.Program("step")
    step.apply(grow, u, u.next, rate=rate)
    step.rotate(u)
    step.let(rate, 1.5 * rate)
    found = []
    for memory in (1 << 30, 1):
        adjoint = mg.adjoint(step, [u])
        seed = mg.Program("seed")
        seed.apply(add, adjoint.of[u], rate=rate)
        with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
            engine.set(u, 0.3)
            adjoint.run(engine, 4, seed=seed, memory=memory)
            found.append(np.array(engine.gather(adjoint.of[u])))
    assert stored == ["_with_values", "_with_checkpoints"]
    assert np.array_equal(*found)


def test_kernels_that_also_reduce(stored: list[str]) -> None:
    """A reduction keeps its operands when the kernel gets further parameters."""
    u = mg.Field("u", GRID, slots=2, boundary=mg.fixed(0.0))
    w = mg.Field("w", GRID)

    @mg.kernel
    def grow(w: Any, u: Any, new: Any) -> dict[str, Any]:
        new[0, 0] = u[0, 0] + 0.1 * u[0, 0] * u[0, 0]
        return {"total": mg.sum(w[0, 0] * w[0, 0])}

    step = mg.Program("step")
    results = step.apply(grow, w, u, u.next)
    step.rotate(u)
    seen: list[float] = []
    adjoint = mg.adjoint(step, [u])
    observe = mg.Program("observe")
    observe.call(lambda engine: seen.append(engine.read(results.total)))
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        engine.set(u, 0.3)
        engine.set(w, 2.0)
        adjoint.run(engine, 3, seed=mg.Program("none"), observe=observe)
    assert stored == ["_with_values"]
    assert seen[1:] == [4.0 * GRID.box.size] * 3


def test_the_reversal_reads_values_in_place_of_the_state() -> None:
    problem, wrt = PROBLEMS["heat"]()
    found = mg.adjoint(problem.step, wrt).recording.remembered
    assert found is not None
    changed = {"u[0]", "u[1]"}
    read = {str(operand) for each in found.reverse.operations if hasattr(each, "operands") for operand in each.operands}
    assert {str(slot) for slot in found.slots} <= read
    assert not read & changed


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [{"threads": 3}, {"native": False}])
def test_bits_do_not_depend_on_threads_or_native_code(options: dict[str, int], stored: list[str]) -> None:
    for make in STORING.values():
        problem, wrt = make()
        assert equal(problem.gradient_by_program(wrt, **options), problem.gradient(wrt, **options))
        assert stored[-2:] == ["_with_values", "_with_all_states"]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["line", "heat"])
def test_functions_in_python_have_the_bits_of_native_code(
    name: str, stored: list[str], in_python: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, wrt = STORING[name]()
    by_program, by_hand = problem.gradient_by_program(wrt), problem.gradient(wrt)
    assert in_python.count("keep") == 3 * problem.steps
    monkeypatch.undo()
    assert equal(by_program, problem.gradient_by_program(wrt))
    assert equal(by_hand, problem.gradient(wrt))


@pytest.mark.few(1)
@pytest.mark.parametrize("ranks", [2, 3])
def test_bits_do_not_depend_on_ranks(ranks: int, stored: list[str]) -> None:
    problem, wrt = PROBLEMS["heat"]()
    shared = mg.run_virtual(ranks, lambda comm: problem.gradient_by_program(wrt, comm, ranks))[0]
    assert stored == ["_with_values"] * ranks
    assert equal(shared, problem.gradient(wrt))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(problems())
def test_random_steps(problem: tuple[Problem, list[mg.Field]]) -> None:
    found, wrt = problem
    found.steps = 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adjoint_module, "_MOST_VALUES", 1000)
        assert equal(found.gradient_by_program(wrt), found.gradient(wrt, checkpoints=1))


def test_a_seed_that_sees_the_state_gets_it() -> None:
    """The derivative of the sum of squares over all steps: the seed is the state itself."""
    problem, (u, k) = PROBLEMS["heat"]()
    adjoint = mg.adjoint(problem.step, [u, k])

    @mg.kernel
    def add(u: object, target: object) -> None:
        target[0, 0] = target[0, 0] + u[0, 0]  # type: ignore[index]

    seed = mg.Program("squares")
    seed.apply(add, u, adjoint.of[u])

    def by_hand(engine: mg.Engine, n: int) -> None:
        state = np.array(engine.gather(u))
        for box, values in engine.blocks(adjoint.of[u], write=True):
            values += state[box.slices((0, 0))]

    found = []
    for each in (seed, by_hand):
        with problem.engine() as engine:
            problem.set(engine, problem.values)
            adjoint.run(engine, 4, seed=each)
            found.append(np.array(engine.gather(adjoint.of[k])))
            assert np.array_equal(np.array(engine.gather(u)), problem.values[u, 0])
    assert np.array_equal(*found)


def test_what_is_between_sees_the_last_state_once() -> None:
    problem, wrt = PROBLEMS["heat"]()
    u = problem.out
    seen: list[np.ndarray] = []
    with problem.engine() as engine:
        problem.set(engine, problem.values)
        engine.run(problem.step, problem.steps)
        last = np.array(engine.gather(u))
    for memory in (1 << 30, 1):
        adjoint = mg.adjoint(problem.step, wrt)
        with problem.engine() as engine:
            problem.set(engine, problem.values)
            adjoint.run(
                engine, problem.steps, seed=mg.Program("none"), memory=memory,
                between=lambda engine: seen.append(np.array(engine.gather(u))),
            )  # fmt: skip
    assert len(seen) == 2
    assert all(np.array_equal(each, last) for each in seen)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["reaction", "advection", "heat"])
def test_states_on_disk_have_the_bits_of_states_in_memory(name: str, tmp_path: Path) -> None:
    problem, wrt = PROBLEMS[name]()
    expected = problem.gradient(wrt)
    assert equal(problem.gradient_by_program(wrt, memory=1, disk=tmp_path), expected)
    assert equal(problem.gradient(wrt, memory=1, disk=tmp_path), expected)
    shared = mg.run_virtual(2, lambda comm: problem.gradient_by_program(wrt, comm, 2, memory=1, disk=tmp_path))[0]
    assert equal(shared, expected)
    assert not list(tmp_path.iterdir())


def test_a_disk_is_used_only_if_memory_is_short(tmp_path: Path) -> None:
    problem, wrt = PROBLEMS["heat"]()
    missing = tmp_path / "missing"
    problem.gradient(wrt, disk=missing)
    with pytest.raises(RunError, match=r"states do not go to .*missing: there is no such folder") as error:
        problem.gradient(wrt, memory=1, disk=missing)
    assert "has room" in str(error.value)


def test_a_full_disk_is_told_on_all_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, wrt = PROBLEMS["heat"]()
    sizes: list[int] = []

    def allocate(file: int, start: int, size: int) -> None:
        sizes.append(size)
        if len(sizes) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.ftruncate(file, size)

    monkeypatch.setattr(pages.os, "posix_fallocate", allocate)

    def body(comm: Any) -> str:
        with pytest.raises(RunError) as error:
            problem.gradient_by_program(wrt, comm, 2, memory=1, disk=tmp_path)
        return str(error.value)

    found = mg.run_virtual(2, body)
    assert sum("No space left on device" in text for text in found) == 1
    assert sum("another rank has no room" in text for text in found) == 1


def test_nothing_is_left_of_the_states(tmp_path: Path) -> None:
    """Neither mappings nor files, however often an engine is used; the loops of the last run alone are kept."""
    problem, wrt = PROBLEMS["heat"]()
    adjoint = mg.adjoint(problem.step, wrt)
    with problem.engine() as engine:
        problem.set(engine, problem.values)
        for _ in range(3):
            adjoint.run(engine, problem.steps, seed=mg.Program("none"), memory=1, disk=tmp_path)
            adjoint.run(engine, problem.steps, seed=lambda engine, n: None, memory=1, disk=tmp_path)
        gc.collect()
        maps = Path("/proc/self/maps")
        assert not maps.exists() or str(tmp_path) not in maps.read_text()
        assert len({key[0] for key in engine._prepared if key[0].name != "none"}) == 2


@pytest.mark.parametrize(("name", "way"), [("heat", "_with_values"), ("advection", "_with_all_states")])
def test_the_next_run_on_an_engine_binds_nothing_and_has_its_own_values(name: str, way: str, stored: list[str]) -> None:
    problem, wrt = PROBLEMS[name]()
    adjoint = mg.adjoint(problem.step, wrt)
    target = adjoint.of[problem.out]
    seed = mg.Program("seed")

    def add(engine: mg.Engine) -> None:
        for box, values in engine.blocks(target, write=True):
            values += problem.weights[box.slices(problem.out.points.lo)]

    seed.call(add, writes=(target,))
    found, seconds = [], []
    with problem.engine() as engine:
        for factor in (1.0, 0.5, 1.0):
            problem.set(engine, {item: factor * values for item, values in problem.values.items()})
            adjoint.run(engine, problem.steps, seed=seed)
            found.append([np.array(engine.gather(adjoint.of[item])) for item in wrt])
            seconds.append(engine.binding_seconds)
        adjoint.run(engine, problem.steps - 1, seed=seed)
        shorter = np.array(engine.gather(target))
    assert stored == [way] * 4
    assert seconds[1] == seconds[2]
    assert all(np.array_equal(one, other) for one, other in zip(found[0], found[2], strict=True))
    assert any(not np.array_equal(one, other) for one, other in zip(found[0], found[1], strict=True))
    with problem.engine() as engine:
        problem.set(engine, problem.values)
        adjoint.run(engine, problem.steps - 1, seed=seed)
        assert np.array_equal(shorter, engine.gather(target))


def test_an_error_leaves_the_state_of_the_beginning() -> None:
    problem, wrt = PROBLEMS["heat"]()
    adjoint = mg.adjoint(problem.step, wrt)

    def seed(engine: mg.Engine, n: int) -> None:
        if n == 2:
            raise ValueError("stop")

    for memory in (1 << 30, 1):
        with problem.engine() as engine:
            problem.set(engine, problem.values)
            with pytest.raises(ValueError, match="stop"):
                adjoint.run(engine, problem.steps, seed=seed, memory=memory)
            assert np.array_equal(np.array(engine.gather(problem.out)), problem.values[problem.out, 0])


@pytest.mark.parametrize("steps", [0, 2.0, "3"])
def test_wrong_numbers_of_steps_are_refused(steps: Any) -> None:
    problem, wrt = PROBLEMS["heat"]()
    with problem.engine() as engine, pytest.raises(ProgramError, match="whole numbers"):
        mg.adjoint(problem.step, wrt).run(engine, steps, seed=mg.Program("none"))

"""Steps that store the values which their reversal needs: the bits are those of reversals that see the state."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import minga as mg
from adjoint_problems import PROBLEMS, Problem, problems
from minga.engine import pages
from minga.errors import RunError

Gradient = Mapping[tuple[mg.Field, int], np.ndarray]


def equal(one: Gradient, other: Gradient) -> bool:
    return all(np.array_equal(one[key], array) for key, array in other.items())


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["heat", "reaction", "staggered", "corners", "advection"])
def test_bits_are_those_of_kept_states(name: str) -> None:
    problem, wrt = PROBLEMS[name]()
    problem.steps = 5
    expected = problem.gradient(wrt, checkpoints=2)
    assert any(array.any() for array in expected.values())
    assert equal(problem.gradient_by_program(wrt), expected)
    assert equal(problem.gradient_by_program(wrt, memory=1), expected)


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
def test_bits_do_not_depend_on_threads_or_native_code(options: dict[str, int]) -> None:
    problem, wrt = PROBLEMS["heat"]()
    assert equal(problem.gradient_by_program(wrt, **options), problem.gradient(wrt))


@pytest.mark.few(1)
@pytest.mark.parametrize("ranks", [2, 3])
def test_bits_do_not_depend_on_ranks(ranks: int) -> None:
    problem, wrt = PROBLEMS["heat"]()
    shared = mg.run_virtual(ranks, lambda comm: problem.gradient_by_program(wrt, comm, ranks))[0]
    assert equal(shared, problem.gradient(wrt))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(problems())
def test_random_steps(problem: tuple[Problem, list[mg.Field]]) -> None:
    found, wrt = problem
    found.steps = 3
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
    with pytest.raises(RunError, match=r"states do not go to .*missing: No such file") as error:
        problem.gradient(wrt, memory=1, disk=missing)
    assert "more room" in str(error.value)


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

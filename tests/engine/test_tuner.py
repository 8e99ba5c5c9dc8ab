"""Tuning of loops: the same bits in every way, the fastest way kept and remembered, and little time lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.cli.doctor import _tuning
from minga.compile import choices
from minga.compile.alternative import Alternative
from minga.compile.cache import Cache
from minga.compile.choices import Choice, all_choices
from minga.engine import bands, time_blocks, tuner
from minga.engine.loop_code import is_supported
from minga.engine.program import Program
from minga.engine.tuner import Tuner

pytestmark = pytest.mark.skipif(
    not is_supported(), reason="tuning needs the native loop: run on Linux with x86-64 or 64-bit Arm"
)
CUTS = [(3, 4, 4), (2, 7, 8)]


@mg.kernel
def smooth(u, new):  # type: ignore[no-untyped-def]
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@mg.kernel
def twice(u, new):  # type: ignore[no-untyped-def]
    slope = mg.local(u[1, 0] - u[-1, 0])
    new[0, 0] = u[0, 0] + 0.125 * (slope[1, 0] - slope[-1, 0] + slope[0, 1] - slope[0, -1])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(choices, "default_cache", lambda: Cache(tmp_path))
    return tmp_path


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Try everything at once, with blocks in every loop; return the settings that were used."""
    for name, value in (("AFTER", 0.0), ("TURN", 0.0), ("TRYING", 0.0), ("PATIENCE", 0.0), ("HOPELESS", np.inf)):
        monkeypatch.setattr(tuner, name, value)
    shapes = iter(CUTS * 100)
    monkeypatch.setattr(time_blocks, "best_bands", lambda *_, **__: next(shapes))
    monkeypatch.setattr(time_blocks, "budgets", lambda _: [1.0, 2.0])
    used: list[Any] = []
    original = Tuner._use

    def use(self: Tuner, setting: Any) -> None:
        used.append(setting)
        original(self, setting)

    monkeypatch.setattr(Tuner, "_use", use)
    return used


def made(kernel: Any, threads: int = 1, **options: Any) -> tuple[mg.Engine, Any, Program]:
    grid = mg.Grid((37, 45))
    u = mg.Field("u", grid, "f8", slots=2, boundary=mg.fixed(0.5))
    step = Program("step")
    step.apply(kernel, u, u.previous)
    step.rotate(u)
    engine = mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=threads, **options)
    engine.set(u, np.random.default_rng(0).random((37, 45)))
    return engine, u, step


def result(kernel: Any, runs: list[int], **options: Any) -> bytes:
    engine, u, step = made(kernel, **options)
    with engine:
        for times in runs:
            engine.run(step, times=times)
        return np.array([engine.gather(u), engine.gather(u.previous)]).tobytes()


@pytest.mark.parametrize(
    ("kernel", "threads"), [(smooth, 1), (twice, 1), pytest.param(smooth, 2, marks=pytest.mark.slow)]
)
def test_all_ways_have_the_same_bits(kernel: Any, threads: int, hasty: list[Any]) -> None:
    runs = [3, 1, 3000, 13, 5]
    expected = result(kernel, runs, tune=False)
    assert not hasty
    assert result(kernel, runs, threads=threads) == expected
    assert len({setting.way for setting in hasty}) > 1
    assert kernel is twice or {setting.cut for setting in hasty} == {-1, 0, 1}
    used = len(hasty)
    assert result(kernel, runs, threads=threads) == expected  # as remembered
    assert len(set(hasty[used:])) == 1


def simulated(seconds: Callable[[Any], float], rounds: int, cuts: Any = CUTS) -> tuple[Tuner, dict[Any, int]]:
    """Return a tuner of a loop whose rounds take so long in each setting, and the rounds done in each."""
    clock = [0.0]
    engine, _, step = made(smooth)
    with engine, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuner, "perf_counter", lambda: clock[0])  # compiling takes no time
        sites = [(call, site) for call, site in _sites(engine, step)]
        found = Tuner(cuts, 0, lambda: clock[0], 1)
        found.begin(sites)
        done: dict[Any, int] = {}
        found.enter()
        for _ in range(rounds):
            if found.rounds[0] >= found.due[0]:
                found.turn()
            setting = found._present
            found.rounds[0] += 1
            clock[0] += seconds(setting)
            done[setting] = done.get(setting, 0) + 1
        found.leave()
    return found, done


def _sites(engine: mg.Engine, step: Program) -> Iterator[Any]:
    prepared = engine.prepare(step)
    yield from prepared.binding.keep[1].sites  # type: ignore[attr-defined]


def test_the_fastest_way_is_kept_and_remembered() -> None:
    times = {-1: 2e-3, 0: 1.5e-3, 1: 1e-3}
    found, done = simulated(lambda setting: times[setting.cut], 10_000)
    assert found.tuned
    assert found._present.cut == 1
    assert sum(count for setting, count in done.items() if setting.cut == -1) < 50  # one turn, for it is hopeless
    (choice,) = all_choices()
    assert choice.cut == CUTS[1]
    assert choice.gain == pytest.approx(1.5)
    again, _ = simulated(lambda setting: 1.0, 3)
    assert again.tuned
    assert again.cut[0] == 1


def test_remembered_ways_are_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner, "load_choice", lambda _: Choice(None, Alternative(vector=16), 1.1, {}, 1))
    engine, _, step = made(smooth)
    with engine:
        engine.run(step, times=3)
        engine.run(step, times=3)
        for prepared in engine._prepared.values():
            assert prepared.native is not None
            (tuned,) = prepared.binding.tuners
            assert tuned.tuned
            called = set(prepared.native._records[:, 1].tolist())
            assert {site.function for _, site in tuned._calls} <= called
            assert [code.way.vector for code in tuned._compiled.values()] == [16]
            assert tuned._present.way.vector == 16
            tuned._use(replace(tuned._present, way=Alternative()))
            after = set(prepared.native._records[:, 1].tolist())
            assert {site.function for _, site in tuned._calls} <= after
            assert not {code.address for code in tuned._compiled.values()} & after


def test_a_run_does_not_end_because_a_kernel_cannot_be_compiled_in_another_way(
    hasty: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise MemoryError("no memory left")

    expected = result(smooth, [3, 700], tune=False)
    monkeypatch.setattr(tuner, "compile_kernel", fail)
    with pytest.warns(RuntimeWarning, match="no memory left"):
        assert result(smooth, [3, 700]) == expected
    assert not list(all_choices())


def test_loops_beside_other_work_are_not_tuned() -> None:
    engine, u, _ = made(smooth)
    program = Program("two")
    for _ in range(2):
        with program.repeat(5):
            program.apply(smooth, u, u.previous)
            program.rotate(u)
    with engine:
        assert not engine.prepare(program, looped=False).binding.tuners  # type: ignore[attr-defined]
        program.operations.pop()
        assert len(engine.prepare(program, looped=False).binding.tuners) == 1  # type: ignore[attr-defined]


def test_an_environment_variable_switches_tuning_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_TUNE", "off")
    engine, _, step = made(smooth)
    with engine:
        assert not engine.prepare(step).binding.tuners  # type: ignore[attr-defined]
        assert engine.tuned


def test_explanations_and_the_doctor_list_choices() -> None:
    times = {-1: 2e-3, 0: 1.5e-3, 1: 1e-3}
    simulated(lambda setting: times[setting.cut], 10_000)
    said = "blocks of 8 rounds, 1.50 times as fast as the usual way"
    assert said in smooth.explain()
    assert "tuned" not in twice.explain()
    assert said in _tuning().text


def test_the_usual_way_stays_unless_another_is_clearly_faster() -> None:
    times = {-1: 1e-3, 0: 1e-3, 1: 0.99e-3}
    found, _ = simulated(lambda setting: times[setting.cut], 10_000)
    assert found.tuned
    assert found._present.cut == 0


def test_nothing_is_tried_in_a_short_run() -> None:
    _, done = simulated(lambda _: 1e-3, 900)
    assert len(done) == 1


def test_other_ways_are_not_compiled_before_the_loop_has_run_for_long() -> None:
    found, done = simulated(lambda _: 1e-3, 1500)
    assert not found.tuned
    assert {setting.way for setting in done} == {Alternative()}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": 0}',
        '{"format": 1, "cut": [1], "way": {}}',
        '{"format": 1, "cut": null, "way": {"vector": 48}}',
    ],
)
def test_a_damaged_choice_is_ignored(text: str, cache: Path) -> None:
    times = {-1: 2e-3, 0: 1.5e-3, 1: 1e-3}
    simulated(lambda setting: times[setting.cut], 10_000)
    (path,) = cache.glob("*.choice")
    path.write_text(text)
    again, _ = simulated(lambda setting: times[setting.cut], 3)
    assert not again.tuned


def test_a_choice_of_blocks_that_are_not_possible_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner, "load_choice", lambda _: Choice(CUTS[1], Alternative(), 1.1, {}, 1))
    again, _ = simulated(lambda _: 1e-3, 3, cuts=CUTS[:1])
    assert not again.tuned
    assert again.cut[0] == 0


def test_a_choice_is_described_in_words() -> None:
    choice = Choice((1, 2, 8), Alternative(vector=32, prefetch="none", stream=False), 1.25, {"a": "heat"}, 4096)
    assert str(choice) == (
        "heat on 4,096 cells: blocks of 8 rounds, vectors of 32 bytes, prefetch none, stores through the caches, "
        "1.25 times as fast as the usual way"
    )


def test_farther_caches_are_tried_only_if_they_are_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bands, "second_cache", lambda: 1 << 20)
    monkeypatch.setattr(bands, "third_cache", lambda: 16 << 20)
    near = 0.75 * (1 << 20)
    assert bands.budgets(1) == [near, 6 * near, 12 * near]
    assert bands.budgets(2) == [near, 6 * near]
    assert bands.budgets(64) == [near]

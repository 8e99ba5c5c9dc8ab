"""Drafts of kernels: the same bits before, while and after they are replaced, and nothing tuned by their times."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.compile import drafts
from minga.compile.together import Together
from minga.engine.program import Program
from minga.engine.tuner import Tuner


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and drafts of however small kernels."""
    monkeypatch.setenv("MINGA_CACHE", str(tmp_path))
    monkeypatch.setattr(drafts, "_WORTH", 0)


@mg.kernel
def spread(u: Any, new: Any) -> None:
    """Mix arithmetic that rounds, elementary functions, selects and integers."""
    laplacian = u[0, -1] + u[0, 1] + u[-1, 0] + u[1, 0] - 4.0 * u[0, 0]
    grown = u[0, 0] + 0.1 * laplacian + 0.01 * mg.exp(-u[0, 0] * u[0, 0]) / 3.0
    new[0, 0] = mg.where(grown > 0.7, grown - mg.floor(grown), mg.sqrt(mg.abs(grown)))


def run(draft: bool, rounds: tuple[int, ...], dtype: str = "f8", wait: int = -1) -> tuple[bytes, mg.Engine]:
    grid = mg.Grid((37, 45))
    u = mg.Field("u", grid, dtype, slots=2, boundary=mg.fixed(0.5))
    step = Program("step")
    step.apply(spread, u, u.previous)
    step.rotate(u)
    engine = mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, drafts=draft)
    engine.set(u, np.random.default_rng(0).random((37, 45)))
    for number, times in enumerate(rounds):
        if number == wait:
            finish(engine)
        engine.run(step, times=times)
    return engine.gather(u).tobytes(), engine


def finish(engine: mg.Engine) -> None:
    assert engine._drafts is not None
    for _ in range(600):
        if engine._drafts.finished():
            return
        time.sleep(0.1)
    raise AssertionError("drafts are still used after a minute")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_drafts_have_the_same_bits_and_are_replaced(cold: None, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    held = []
    monkeypatch.setattr(Together, "over", lambda self: bool(held) and all(p.poll() is not None for p in self.processes))
    monkeypatch.setattr(Together, "start", lambda self, workers, first=0: None)  # drafts stay until they are released
    found, engine = run(True, (5, 50), dtype)
    (draft,) = (code for code in engine._kernels.values() if code.graph.name == "spread")
    before = draft.address
    held.append(True)
    finish(engine)
    (code,) = (code for code in engine._kernels.values() if code.graph.name == "spread")
    assert code.address != before
    sites = [site for place in engine._prepared.values() for site in sites_of(place)]
    assert sites
    assert before not in sites
    assert found == run(False, (5, 50), dtype)[0]
    assert run(True, (5, 50, 7), dtype)[0] == run(False, (5, 50, 7), dtype)[0]


def sites_of(prepared: Any) -> list[int]:
    commands = prepared.binding.commands
    return [c.present for c in commands if getattr(c, "site", None) is not None and c.label == "spread"]


@pytest.mark.slow
def test_processes_replace_drafts_during_a_run(cold: None) -> None:
    found, engine = run(True, (3, 20_000, 4), wait=2)
    finish(engine)
    assert found == run(False, (3, 20_000, 4))[0]


def test_nothing_is_tuned_while_drafts_are_used() -> None:
    used = [True]
    clock = iter(range(100))
    tuner = Tuner([], -1, lambda: float(next(clock)), 1, lambda: not used)
    tuner._waits = True
    tuner.rounds[0] = 5
    tuner.turn()
    assert tuner.due[0] > 5
    assert tuner._waits
    assert tuner._spent == 0
    assert not tuner.tuned
    used.clear()
    tuner.rounds[0] = tuner.due[0]
    tuner.turn()
    assert not tuner._waits
    assert not tuner.tuned

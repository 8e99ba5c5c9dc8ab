"""Reflections of layers: the stored levels of `benchmarks.waves.reflections`, and the theory of a sponge."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
STORED: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / "reflections.json").read_text())
SLOW = [(part, scheme) for part in "123" for scheme in STORED[part]]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    found = importlib.import_module("benchmarks.waves.reflections")
    found.traces.cache_clear()
    return found


def test_the_page_shows_what_is_stored(measured: Any) -> None:
    said = measured.markdown(STORED)
    assert said in (ROOT / "docs" / "waves.md").read_text(), "run `python -m benchmarks.waves.reflections`"
    assert not STORED["quick"]
    for part in STORED.keys() & measured.AXES.keys():
        assert [*STORED[part]] == [*measured.schemes_of(int(part))]
        assert all([*found] == measured.names_of(scheme, int(part)) for scheme, found in STORED[part].items())


def test_a_sponge_returns_what_is_stored(measured: Any) -> None:
    """And what damping leaves of a wave that goes through it, is reflected at its end, and comes back."""
    name = "sponge = 40, strength = 0.16"
    level = measured.level("isotropic", 1, 30.0, name)
    assert level == pytest.approx(STORED["1"]["isotropic"][name][1], abs=0.02)
    steps = 2 * measured.H / (measured.SPEED * measured.DT)  # in a cell, on the way out and on the way back
    exponent = steps * sum((0.16 * depth / 40) ** 2 for depth in range(1, 41))
    assert level == pytest.approx(-20 * exponent / math.log(10), abs=0.3)


@pytest.mark.slow
@pytest.mark.parametrize(("part", "scheme"), SLOW)
def test_all_layers_return_what_is_stored(measured: Any, part: str, scheme: str) -> None:
    for name, stored in STORED[part][scheme].items():
        found = [measured.level(scheme, int(part), f, name) for f in measured.FREQUENCIES[int(part)]]
        assert found == pytest.approx(stored, abs=0.02), name

"""The default strength of sponges, the reflection of sponges, and the note about it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.waves import Cpml, Faces, Free, Medium, PointSource, Receivers, Release, Ricker, Sponge
from minga.models.waves.elastic import ElasticMedium, elastic
from minga.models.waves.reflection import reflection

CELLS, H, SPEED, AWAY = 40, 10.0, 3000.0, 4


def returned(face: Any, frequency: float, dt: float = 1e-3, *, twice: int = 1) -> float:
    """Return the reflection at a point beside a layer on one axis, in dB of the wave that passes there."""
    found = []
    for more, boundary in ((150, Release()), (0, face)):
        place = H * (more + CELLS - 1 - AWAY)
        model = mg.fletcher(
            (CELLS + 2 * more,), H, dt=dt / twice, dtype="f8", medium=Medium(SPEED), boundary=boundary,
            sources=[PointSource((H * (more + CELLS // 2),), Ricker(frequency))], receivers=Receivers([(place,)]),
        )  # fmt: skip
        found.append(np.asarray(mg.run(model, 620 * twice, observe=1).receivers.values)[twice - 1 :: twice])
    whole, part = found
    return 20 * math.log10(np.abs(part - whole).max() / np.abs(whole).max())


def test_the_default_returns_little() -> None:
    """On one axis, where a point sends low frequencies too, for which no sponge is wide."""
    assert returned(Sponge(), 30.0) < -33


@pytest.mark.slow
def test_steps_of_any_length_return_the_same() -> None:
    assert returned(Sponge(20), 30.0, twice=2) == pytest.approx(returned(Sponge(20), 30.0), abs=0.3)
    assert returned(Sponge(40, 0.16), 30.0) > -22


def test_the_default_damps_by_time_and_not_by_step() -> None:
    one, two = (Sponge(20).strength_for(H, SPEED, dt) ** 2 for dt in (1e-3, 2e-3))
    assert two == pytest.approx(2 * one, rel=1e-12)
    assert Sponge(20).strength_for(2 * H, SPEED, 2e-3) == pytest.approx(math.sqrt(one), rel=1e-12)
    assert Sponge(20, 0.3).strength_for(H, SPEED, 1e-3) == 0.3


@pytest.mark.parametrize("cells", [10, 20, 40, 60])
def test_what_goes_through_and_back_follows_from_the_width(cells: int) -> None:
    """By the sum of the exponents of all cells, within the eighth by which the velocity is rounded up."""
    for speed in (1500.0, 2000.0, 3000.0, 4480.0):
        face = Sponge(cells)
        logarithms = np.log(face.factors(np.arange(1, cells + 1), H, speed, 1e-3))
        through = -2 * logarithms.sum() * H / (speed * 1e-3)
        expected = 0.85 * math.sqrt(cells) * (1 + 1.5 / cells)
        assert expected * (1 - 1e-3) < through < 1.13 * expected


def test_velocities_that_change_a_little_have_the_same_sponge() -> None:
    assert {Sponge().strength_for(H, v, 1e-3) for v in (2900.0, 3000.0, 3072.0)} == {
        Sponge().strength_for(H, 3000.0, 1e-3)
    }
    assert Sponge().strength_for(H, 3073.0, 1e-3) > Sponge().strength_for(H, 3000.0, 1e-3)


def test_what_is_expected_is_what_is_measured() -> None:
    """Levels on two axes as measured by `benchmarks.waves.reflections`, sponges of all strengths."""
    for face, frequency, measured in (
        (Sponge(40, 0.25), 15.0, -30), (Sponge(40, 0.25), 30.0, -45), (Sponge(40, 0.16), 30.0, -22),
        (Sponge(20, 0.16), 30.0, -10),
    ):  # fmt: skip
        assert reflection(face, H, SPEED, 1e-3, frequency) == pytest.approx(measured, abs=3)


def test_models_say_what_their_sponges_return() -> None:
    options: dict[str, Any] = {"dt": 1e-3, "medium": Medium(SPEED), "sources": [PointSource(None, Ricker(15.0))]}
    notes = dict(mg.fletcher((40, 40), H, boundary=Sponge(), **options).notes)
    expected = reflection(Sponge(), H, SPEED, 1e-3, 15.0)
    assert -33 < expected < -29
    assert notes["sponge"] == f"40 cells return about {expected:.0f} dB of waves of 15 Hz and 3000 m/s"
    narrow = mg.fletcher((40, 40), H, boundary=Faces(Sponge(8), z=(Free(), Sponge(20))), **options)
    assert "20 cells return about" in repr(narrow)
    assert "8 cells return about" in repr(narrow)
    assert "wider sponges return less" in repr(narrow)
    assert not mg.fletcher((40, 40), H, boundary=Cpml(), **options).notes
    rock = elastic((40, 40), H, dt=1e-3, medium=ElasticMedium(SPEED, 1700.0, 2200.0), boundary=Sponge())
    assert dict(rock.notes)["sponge"].startswith("40 cells return about -39 dB of waves of 13.3 Hz")

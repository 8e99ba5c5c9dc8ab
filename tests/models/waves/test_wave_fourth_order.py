"""Steps of fourth order with matched layers, attenuation and legacy sources: orders, reflections, stability, bits."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.errors import CaseError
from minga.models.waves import (
    Attenuation,
    Cpml,
    Faces,
    Free,
    Medium,
    PlaneSource,
    PointSource,
    Receivers,
    Release,
    Ricker,
    Shot,
    Sponge,
    linearised_shots,
    prepare,
    shot_born,
    shot_traces,
)

SHAPE = (14, 17)
Z, X = np.meshgrid(*(np.arange(float(n)) for n in SHAPE), indexing="ij")
MEDIA: dict[str, Medium] = {
    "isotropic": Medium(2000 + 20 * Z), "density": Medium(2000 + 9 * Z, rho=1500 + 20 * X),
    "vertical": Medium(2000 + 9 * Z, 0.2 + 0.002 * Z, 0.1 + 0.002 * X),
    "tilted": Medium(2000 + 9 * Z, 0.2 + 0.002 * Z, 0.1, 0.3 + 0.02 * X),
}  # fmt: skip


# Accuracy ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("injection", ["physical", "legacy"])
@pytest.mark.parametrize("q", [None, 30.0, 20.0 + Z], ids=["lossless", "uniform", "varying"])
@pytest.mark.parametrize("medium", [*MEDIA])
def test_errors_are_of_fourth_order(medium: str, q: Any, injection: Any) -> None:
    """Errors are differences from steps half as long; legacy sources have the same force in all, at the same time."""

    def waves(divisor: int) -> np.ndarray:
        dt = 1e-3 / divisor
        legacy = injection == "legacy"
        ricker = Ricker(25.0, 0.06 + (dt if legacy else 0.0), amplitude=dt * dt if legacy else 1.0)
        model = prepare(
            SHAPE, 10.0, dt=dt, medium=MEDIA[medium], order=4, time_order=4, dtype="f8", boundary=Release(),
            attenuation=None if q is None else Attenuation(q),
        )  # fmt: skip
        shot = Shot([PointSource((60.0, 70.0), ricker, injection=injection)], Receivers([(20.0, 100.0), (90.0, 40.0)]))
        return shot_traces(model, shot, 160 * divisor + 1)[::divisor]

    first, second, third = (waves(divisor) for divisor in (2, 4, 8))
    ratio = np.linalg.norm(first - second) / np.linalg.norm(second - third)
    assert math.log2(float(ratio)) == pytest.approx(4.0, abs=0.1)


@pytest.mark.parametrize("boundary", [Release(), Cpml(4)], ids=repr)
def test_a_legacy_source_is_a_physical_one_a_step_earlier(boundary: Any) -> None:
    dt, h, speed = 1e-3, 10.0, 2000.0
    waves = prepare((20, 20), h, dt=dt, medium=Medium(speed), order=4, time_order=4, dtype="f8", boundary=boundary)
    legacy = PointSource((100.0, 100.0), Ricker(25.0, 0.06), injection="legacy")
    physical = PointSource((100.0, 100.0), Ricker(25.0, 0.06 - dt, amplitude=(h / (dt * speed)) ** 2))
    first, second = (shot_traces(waves, Shot([s], Receivers([(30.0, 150.0)])), 200) for s in (legacy, physical))
    # The first value of the earlier wavelet is not 0 at its start, but 1e-8 of its peak.
    assert first == pytest.approx(second, abs=1e-6 * np.abs(second).max())


# Layers ------------------------------------------------------------------------------------------------------------
def reflection(time_order: int, medium: dict[str, Any], layer: Any, q: float | None = None) -> float:
    """Return the largest wave that a layer at the end of x returns, relative to that of a wall where p is 0, dB."""

    def traces(cells: int, end: Any) -> np.ndarray:
        shape = (90, cells)
        known = {**medium, "rho": np.full(shape, 1500.0)} if "rho" in medium else medium
        waves = prepare(
            shape, 10.0, dt=1.5e-3, medium=Medium(2000.0, **known), time_order=time_order, dtype="f8",
            boundary=Faces(Release(), x=(Release(), end)), attenuation=None if q is None else Attenuation(q),
        )  # fmt: skip
        shot = Shot([PointSource((450.0, 100.0), Ricker(20.0, 0.06))], Receivers([(450.0, 350.0), (250.0, 350.0)]))
        return shot_traces(waves, shot, 250)

    whole = traces(130, Release())
    wall, found = (float(np.abs(traces(50, end) - whole).max()) for end in (Release(), layer))
    return 20 * math.log10(found / wall)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("medium", "layer", "q"),
    [
        ({}, Cpml(12), None),
        ({}, Cpml(12), 30.0),
        ({"rho": 1.0}, Cpml(12), None),
        ({"epsilon": 0.2, "delta": 0.1}, Cpml(12), None),
        ({"epsilon": 0.2, "delta": 0.1, "theta": 0.5}, Cpml(12, experimental=True), None),
        ({"epsilon": 0.2, "delta": 0.1, "theta": 0.5}, Cpml(12, experimental=True), 30.0),
    ],
    ids=["isotropic", "attenuation", "density", "vertical", "tilted", "tilted-attenuation"],
)
def test_layers_reflect_as_little_as_in_steps_of_second_order(medium: Any, layer: Any, q: float | None) -> None:
    second, fourth = (reflection(order, medium, layer, q) for order in (2, 4))
    assert second < -65
    assert fourth < second + 1.0


@pytest.mark.slow
@pytest.mark.parametrize("q", [None, 50.0])
@pytest.mark.parametrize("medium", MEDIA)
def test_waves_do_not_grow_at_the_limit(medium: str, q: float | None) -> None:
    """Steps of the limit, dt2 omega2 = 6, are stable over hundreds of crossings; longer ones are refused."""
    tilted = medium == "tilted"
    common: dict[str, Any] = {
        "medium": MEDIA[medium], "boundary": Cpml(6, experimental=tilted), "time_order": 4, "dtype": "f8", "order": 4,
        "attenuation": None if q is None else Attenuation(q),
    }  # fmt: skip
    limit = mg.fletcher(SHAPE, 10.0, dt=1e-6, **common).parameters["dt_limit"]
    shot = Shot([PointSource((60.0, 70.0), Ricker(60.0))], Receivers([(20.0, 100.0), (90.0, 40.0)]))
    found = np.abs(shot_traces(prepare(SHAPE, 10.0, dt=0.9999 * limit, **common), shot, 20000))
    ends = [found[k : k + 4000].max() for k in range(0, 20000, 4000)]
    assert all(later <= 1.01 * sooner for sooner, later in itertools.pairwise(ends))  # at last roundings remain
    with pytest.raises(CaseError, match="stability limit"):
        prepare(SHAPE, 10.0, dt=1.0001 * limit, **common)


# Adjoints and bits -------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("q", [None, 20.0 + Z], ids=["lossless", "attenuation"])
@pytest.mark.parametrize("medium", ["isotropic", "density", "vertical"])
def test_gradients_with_legacy_sources(medium: str, q: Any) -> None:
    entries = {"vp": 2000 + 9 * Z} | ({"rho": 1500 + 20 * X} if medium == "density" else {})
    entries |= {"epsilon": 0.2 + 0.002 * Z, "delta": 0.1 + 0.002 * X} if medium == "vertical" else {}
    wrt = tuple(entries)
    options: dict[str, Any] = {
        "dt": 6e-4, "order": 4, "time_order": 4, "dtype": "f8", "boundary": Faces(Cpml(4), z=(Free(), Cpml(4))),
        "attenuation": None if q is None else Attenuation(q),
    }  # fmt: skip
    waves = prepare(SHAPE, 10.0, medium=Medium(**entries), **options)
    shot = Shot(
        [PointSource((43.0, 72.0), Ricker(30.0, 0.01), injection="legacy")],
        Receivers([(52.0, 81.0), (70.0, 68.0)], every=3), np.zeros((8, 2)),
    )  # fmt: skip
    jacobian, rng = linearised_shots([waves], [shot], wrt), np.random.default_rng(1)
    x, y = rng.standard_normal(jacobian.shape[1]), rng.standard_normal(jacobian.shape[0])
    there, back = jacobian.matvec(x), jacobian.rmatvec(y)
    assert abs(there @ y - x @ back) < 1e-12 * np.linalg.norm(there) * np.linalg.norm(y) != 0
    scale = {"vp": 30.0, "rho": 20.0}
    change = {name: scale.get(name, 0.01) * rng.standard_normal(SHAPE) for name in wrt}
    born, before = shot_born(waves, shot, change, 8), shot_traces(waves, shot, 8)

    def rest(h: float) -> float:
        more = Medium(**{name: entries[name] + h * change[name] for name in wrt})
        changed = prepare(SHAPE, 10.0, medium=more, extremes=waves.extremes, **options)
        return float(np.linalg.norm(shot_traces(changed, shot, 8) - before - h * born))

    sizes = [0.1 / 2**k for k in range(4)]
    assert np.polyfit(np.log(sizes), np.log([rest(h) for h in sizes]), 1)[0] == pytest.approx(2.0, abs=0.02)


@pytest.mark.slow
def test_bits_depend_neither_on_ranks_nor_on_an_interruption(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "dt": 6e-4, "order": 4, "time_order": 4, "boundary": Faces(Cpml(4), z=(Free(), Cpml(4))),
        "medium": MEDIA["density"], "attenuation": Attenuation(20.0 + Z),
    }  # fmt: skip
    sources = [PointSource((33.0, 52.0), Ricker(25.0)), PlaneSource("x", 50.0, injection="legacy")]
    shot = Shot(sources, Receivers([(22.0, 71.0), (80.0, 120.0)]))

    def traces(comm: Comm | None = None) -> bytes:
        return shot_traces(prepare(SHAPE, 10.0, **options), shot, 16, comm=comm).tobytes()

    alone = traces()
    for ranks in (2, 3, 4):
        assert set(mg.run_virtual(ranks, traces)) == {alone}
    model = mg.fletcher(SHAPE, 10.0, sources=sources, **options)
    whole = mg.run(model, 40, out=tmp_path / "whole")
    mg.run(model, 17, out=tmp_path / "run", checkpoint={"every": 7, "at_end": True})
    again = mg.run(model, 40, out=tmp_path / "run", resume=True)
    assert again.p.values.tobytes() == whole.p.values.tobytes()


# Refusals ----------------------------------------------------------------------------------------------------------
def test_mechanisms_that_steps_do_not_resolve_are_refused() -> None:
    attenuation = Attenuation(30.0, frequencies=[10.0, 500.0])
    options: dict[str, Any] = {"dt": 1e-3, "medium": Medium(2000.0), "boundary": Sponge(4), "attenuation": attenuation}
    prepare((20, 20), 10.0, time_order=2, **options)
    with pytest.raises(CaseError, match=r"a mechanism of attenuation of 500 Hz, above 0\.45 / dt = 450 Hz"):
        prepare((20, 20), 10.0, time_order=4, **options)

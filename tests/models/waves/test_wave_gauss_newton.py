"""Gauss-Newton, preconditioning and stages of frequencies: the Hessian, descent, the same bits, what they are worth."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.waves import (
    Faces,
    Free,
    Inversion,
    Medium,
    PointSource,
    Receivers,
    Ricker,
    Shot,
    Sponge,
    band_limited,
    linearised_shots,
    prepare,
    run_in_bands,
    shot_traces,
)
from minga.models.waves.born_normal import shot_normal
from minga.models.waves.illumination import shot_illumination
from minga.models.waves.inversion import Progress
from minga.models.waves.waves import Waves
from wave_physics import ENTRIES, PHYSICS, SHOT, prepared

SHAPE = (16, 20)
Z, X = np.meshgrid(*(np.arange(float(n)) for n in SHAPE), indexing="ij")
START = 1900 + 10 * Z
TRUE = START + 1.0 * np.exp(-((Z - 10) ** 2 + (X - 10) ** 2) / 8)
SPREAD = Receivers([(10.0, 10.0 * column) for column in range(20)])


def waves_of(values: Any, shot: Shot) -> Waves:
    boundary = Faces(Sponge(5), z=(Free(), Sponge(5)))
    return prepare(SHAPE, 10.0, dt=1e-3, medium=Medium(values["vp"]), order=4, boundary=boundary, dtype="f8")


@functools.cache
def shots() -> tuple[Shot, ...]:
    found = []
    for column in (3.0, 16.0):
        shot = Shot([PointSource((20.0, 10.0 * column), Ricker(25.0))], SPREAD)
        found.append(Shot(shot.sources, SPREAD, shot_traces(waves_of({"vp": TRUE}, shot), shot, 160)))
    return tuple(found)


def run(iterations: int, comm: Any = None, file: Path | None = None, callback: Any = None, **options: Any) -> Progress:
    given: dict[str, Any] = {"bounds": {"vp": (1500.0, 2500.0)}} | options
    return Inversion(shots(), waves_of, **given).run({"vp": START}, iterations, comm=comm, file=file, callback=callback)


def needed(share: float, iterations: int, **options: Any) -> int:
    """Simulations of shots until the misfit has fallen to a share of the first one."""
    seen: list[Progress] = []
    run(iterations, callback=seen.append, **options)
    return next(each.simulations for each in seen if each.misfits[-1] <= share * each.misfits[0])


@pytest.mark.slow
@pytest.mark.parametrize("physics", ["free", "matched", "tilted, free, fourth"])
def test_the_hessian_is_the_product_of_the_derivative_and_its_transpose(physics: str) -> None:
    wrt, _ = PHYSICS[physics]
    waves = prepared(physics, ENTRIES)
    shot = Shot(SHOT.sources, SHOT.receivers, np.zeros((12, 3)))
    jacobian = linearised_shots([waves], [shot], wrt)
    change = np.random.default_rng(3).standard_normal(jacobian.shape[1])
    product, squares = shot_normal(waves, shot, change, wrt)
    traces = jacobian.matvec(change)
    expected = jacobian.rmatvec(traces)
    assert np.linalg.norm(product - expected) < 1e-12 * np.linalg.norm(expected) != 0
    assert squares == pytest.approx(float(traces @ traces), rel=1e-12)


def test_the_illumination_is_the_sum_of_squares() -> None:
    """The receivers lie on cells, so that their traces give the sum of the squares of p there."""
    shot = shots()[0]
    traces = shot_traces(waves_of({"vp": START}, shot), shot, 160)
    light = shot_illumination(waves_of({"vp": START}, shot), shot, 160)
    assert light.shape == SHAPE
    assert light[1] == pytest.approx(np.square(traces).sum(axis=0), rel=1e-12)


@pytest.mark.slow
def test_preconditioned_changes_go_downhill_and_spare_the_sources() -> None:
    """The first change is along the gradient, weighted: the misfit falls along it, and less of it lies at sources."""
    _, slopes = Inversion(shots(), waves_of).gradient({"vp": START})
    near = np.minimum(np.hypot(Z - 2, X - 3), np.hypot(Z - 2, X - 16)) < 3
    share: dict[str, float] = {}
    for method in ("l-bfgs", "gauss-newton"):
        for weights in (None, "illumination"):
            found = run(1, method=method, precondition=weights, inner=1)
            change = found.values["vp"] - START
            assert float((change * slopes["vp"]).sum()) < 0
            assert found.misfits[1] < found.misfits[0]
            share[f"{method} {weights}"] = float(np.abs(change[near]).sum() / np.abs(change).sum())
    assert share["l-bfgs illumination"] == pytest.approx(0.41 * share["l-bfgs None"], rel=0.02)
    assert share["gauss-newton illumination"] == pytest.approx(0.58 * share["gauss-newton None"], rel=0.02)


@pytest.mark.slow
def test_fewer_simulations_reach_a_misfit() -> None:
    """An anomaly so weak that the problem is nearly linear: the numbers are those of docs/gradients.md."""
    assert needed(0.32, 1, method="gauss-newton", inner=4, damping=1e-6) == 30
    assert needed(0.32, 12) == 40
    assert needed(0.11, 1, method="gauss-newton", precondition="illumination", damping=1e-6) == 56
    assert needed(0.11, 22) == 68
    assert needed(0.11, 14, precondition="illumination") == 50


def test_gauss_newton_keeps_bounds_and_masks() -> None:
    mask = (Z > 5).astype(float)
    found = run(1, method="gauss-newton", inner=2, mask=mask, bounds={"vp": (1900.0, START + 0.2)})
    assert np.array_equal(found.values["vp"][:6], START[:6])
    assert (found.values["vp"] <= START + 0.2).all()
    assert (found.values["vp"] != START)[6:].any()
    assert found.simulations == 2 * (2 + 2 * 3 + 1)


OPTIONS: dict[str, dict[str, Any]] = {
    "l-bfgs": {"precondition": "illumination"},
    "gauss-newton": {"method": "gauss-newton", "inner": 2, "precondition": "illumination"},
}


@pytest.mark.few(1)
@pytest.mark.parametrize("method", OPTIONS)
def test_results_do_not_depend_on_the_ranks(method: str) -> None:
    shots()  # once, before the ranks, which are threads
    alone = run(1, **OPTIONS[method])
    for other in mg.run_virtual(3, lambda comm: run(1, comm=comm, **OPTIONS[method])):
        assert other.misfits == alone.misfits
        assert np.array_equal(other.values["vp"], alone.values["vp"])


# Stages ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("every", "lowest"), [(1, 0.0), (2, 20.0)])
def test_filtered_data_are_the_traces_of_the_filtered_wavelet(every: int, lowest: float) -> None:
    spread = Receivers([(10.0, 40.0), (90.0, 150.0)], every=every)
    shot = Shot([PointSource((60.0, 80.0), Ricker(25.0))], spread)
    waves = waves_of({"vp": START}, shot)
    band = band_limited(Shot(shot.sources, spread, shot_traces(waves, shot, 400)), 1e-3, 35.0, lowest)
    assert band.data is not None
    assert band.data.shape == (400, 2)
    traces = shot_traces(waves, band, 400)
    assert np.linalg.norm(traces - band.data) < 3e-3 * np.linalg.norm(traces) != 0
    spectrum = np.abs(np.fft.rfft(band.data * np.hanning(400)[:, None], axis=0)).max(axis=1)
    frequencies = np.fft.rfftfreq(400, 1e-3 * every)
    assert spectrum[frequencies > 100].max() < 2e-3 * spectrum.max()


class Interrupted(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("method", OPTIONS)
def test_stages_resume_with_the_same_bits(method: str, tmp_path: Path) -> None:
    inversion = Inversion(shots(), waves_of, bounds={"vp": (1500.0, 2500.0)}, **OPTIONS[method])
    stages = [(25.0, 2), (60.0, 3)]
    whole = run_in_bands(inversion, {"vp": START}, stages)
    count = iter(range(10))

    def interrupt(_: Progress) -> None:
        if next(count) == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        run_in_bands(inversion, {"vp": START}, stages, file=tmp_path / "vp.npz", callback=interrupt)
    assert {path.name for path in tmp_path.iterdir()} == {"vp-0.npz", "vp-1.npz"}
    resumed = run_in_bands(inversion, {"vp": START}, stages, file=tmp_path / "vp.npz")
    assert resumed[0].evaluations == 0
    assert 0 < resumed[1].evaluations < whole[1].evaluations
    for one, other in zip(whole, resumed, strict=True):
        assert one.misfits == other.misfits
        assert one.values["vp"].tobytes() == other.values["vp"].tobytes()


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"method": "newton"}, "method"),
        ({"precondition": "light"}, "precondition"),
        ({"floor": 0.0}, "floor"),
        ({"damping": -1.0}, "damping"),
        ({"inner": 0}, "inner"),
        ({"method": "gauss-newton", "misfit": "envelope"}, "sum of squares"),
    ],
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, Any], match: str) -> None:
    with pytest.raises(CaseError, match=match):
        Inversion(shots(), waves_of, **wrong)


def test_bands_that_cannot_be_are_refused() -> None:
    for highest, lowest, match in ((10.0, 20.0, "band"), (np.nan, 0.0, "band"), (40.0, 2.0, "shorter")):
        with pytest.raises(CaseError, match=match):
            band_limited(shots()[0], 1e-3, highest, lowest)
    with pytest.raises(CaseError, match="without stages"):
        run_in_bands(Inversion(shots(), waves_of), {"vp": START}, [])

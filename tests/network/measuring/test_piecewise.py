"""Fits on curves whose breaks are known."""

from __future__ import annotations

import numpy as np
import pytest

from minga.network.measuring.piecewise import fit_pieces
from minga.network.measuring.sampling import message_sizes
from minga.plan.links import Link, Segment

SIZES = np.array(message_sizes(neighbours=True))
NAMES = {"one frame": 1448, "eager limit": 65536}


def curve(*pieces: tuple[int, float, float]) -> np.ndarray:
    time = np.zeros(len(SIZES))
    for least, alpha, beta in pieces:
        time = np.where(least <= SIZES, alpha + beta * SIZES, time)
    return time


THREE = curve((0, 11e-6, 9e-9), (1449, 20e-6, 8.5e-8), (65537, 900e-6, 8.5e-8))


@pytest.mark.few(2)
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03])
def test_breaks_and_slopes_are_recovered(noise: float) -> None:
    time = THREE * (1 + noise * np.random.default_rng(5).standard_normal(len(SIZES)))
    fit = fit_pieces(SIZES, time, names=NAMES)
    assert [piece.least for piece in fit.pieces] == [0, 1449, 65537]
    assert [piece.name for piece in fit.pieces] == ["", "one frame", "eager limit"]
    assert fit.bandwidth == pytest.approx(1 / 8.5e-8, rel=0.01 + noise / 2)
    assert fit.pieces[0].alpha == pytest.approx(11e-6, rel=0.01 + noise / 2)


@pytest.mark.slow
def test_intervals_hold_the_truth() -> None:
    hits = 0
    for seed in range(14):
        time = curve((0, 11e-6, 8.5e-8)) * (1 + 0.02 * np.random.default_rng(seed).standard_normal(len(SIZES)))
        (piece,) = fit_pieces(SIZES, time, resamples=80, seed=seed).pieces
        hits += piece.beta_interval[0] <= 8.5e-8 <= piece.beta_interval[1]
    assert hits >= 11


def test_one_line_stays_one_line() -> None:
    for seed in range(10):
        time = curve((0, 50e-6, 1e-9)) * (1 + 0.03 * np.random.default_rng(seed).standard_normal(len(SIZES)))
        assert len(fit_pieces(SIZES, time, resamples=0).pieces) == 1


def test_single_bad_sizes_bend_nothing() -> None:
    time = THREE * (1 + 0.01 * np.random.default_rng(2).standard_normal(len(SIZES)))
    time[[5, 30, 60]] *= 3
    fit = fit_pieces(SIZES, time)
    assert [piece.least for piece in fit.pieces] == [0, 1449, 65537]
    assert fit.bandwidth == pytest.approx(1 / 8.5e-8, rel=0.01)
    assert fit.worst > 0.5
    assert any("off by" in said for said in fit.warnings)


def test_doubtful_sizes_count_less() -> None:
    time = curve((0, 20e-6, 8.5e-8))
    doubt = np.full(len(SIZES), 0.001)
    time[-6:] *= 1.5
    doubt[-6:] = 0.5
    assert fit_pieces(SIZES, time, doubt=doubt).bandwidth == pytest.approx(1 / 8.5e-8, rel=0.02)
    assert fit_pieces(SIZES, time).bandwidth < 0.8 / 8.5e-8


@pytest.mark.slow
def test_half_of_the_bandwidth() -> None:
    time = curve((0, 100e-6, 1e-8))
    assert fit_pieces(SIZES, time).half == pytest.approx(100e-6 / 1e-8, rel=0.01)  # alpha / beta, Hockney
    fit = fit_pieces(SIZES, THREE)
    reached = fit.half / float(fit.time([fit.half])[0])
    assert reached == pytest.approx(1 / (2 * 8.5e-8), rel=0.02)


def test_time_never_falls_with_size_and_a_flat_end_is_told() -> None:
    fit = fit_pieces([1, 100, 1000, 10_000], [4e-5, 3.9e-5, 3.8e-5, 3.7e-5])
    assert fit.pieces[-1].beta == 0
    assert fit.bandwidth == float("inf")
    assert any("bandwidth is unknown" in said for said in fit.warnings)


def test_a_burst_shows_as_negative_latency() -> None:
    time = np.maximum(11e-6, (SIZES - 16_000) / 12.5e6 + 11e-6)
    fit = fit_pieces(SIZES, time)
    assert fit.pieces[-1].alpha == pytest.approx(-16_000 / 12.5e6, rel=0.05)
    assert any("burst" in said for said in fit.warnings)


def test_a_link_is_never_faster_than_its_latency() -> None:
    """Pieces below zero, from large messages only or where measured protocols do not join."""
    fit = fit_pieces([4096, 8192, 16384, 65536], [1e-5, 5e-5, 1.3e-4, 6e-4], resamples=2)
    assert fit.pieces[0].alpha < 0
    assert fit.link().time([0, 64, 1000]).tolist() == [1e-5] * 3
    assert float(fit.link().time(65536)) == pytest.approx(6e-4, rel=0.1)
    broken = Link((Segment(0, 5e-5, 1e-8), Segment(65536, -1e-2, 1e-8)))
    assert float(broken.time(70_000)) == 5e-5


def test_the_link_of_a_planner_is_the_fit() -> None:
    fit = fit_pieces(SIZES, THREE)
    assert np.allclose(fit.link(0.5).time(SIZES), THREE, rtol=0.02)
    assert fit.link(0.5).overlap == 0.5


def test_too_little_to_fit() -> None:
    with pytest.raises(ValueError, match="two sizes"):
        fit_pieces([8, 8], [1e-5, 1e-5])
    with pytest.raises(ValueError, match="positive"):
        fit_pieces([8, 16], [1e-5, 0.0])

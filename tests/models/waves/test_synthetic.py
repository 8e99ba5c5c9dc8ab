"""Synthetic media: the same values for every box, sound rocks, axes that are normal to the layers."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from minga.errors import CaseError
from minga.models.waves.noise import arctan, arctan2, lattice, noise, ripple
from minga.models.waves.synthetic import KINDS, QUANTITIES, Layer, synthetic
from minga.space.box import Box

SHAPE, SPACING = (30, 34, 38), (12.5, 12.5, 12.5)


@pytest.mark.parametrize("kind", KINDS)
def test_any_box_has_the_values_of_the_whole(kind: str) -> None:
    medium = synthetic(kind, SHAPE, SPACING, seed=5, dip=12.0, azimuth=40.0)
    whole, box = medium.values(Box.of(SHAPE)), Box((7, 11, 3), (9, 30, 20))
    part = medium.values(box)
    for name in QUANTITIES:
        assert whole[name].dtype == np.float32
        assert np.array_equal(part[name], whole[name][box.slices((0, 0, 0))]), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2, 77])
def test_they_are_rocks(kind: str, seed: int) -> None:
    found = synthetic(kind, SHAPE, SPACING, seed=seed).values(Box.of(SHAPE))
    assert found["vp"].min() >= 1300
    assert found["vp"].max() <= 6000
    assert np.ptp(found["vp"]) > 500
    assert (found["epsilon"] >= found["delta"]).all()
    assert found["delta"].min() >= 0
    assert found["epsilon"].max() <= 0.3
    assert 0 <= found["theta"].min() <= found["theta"].max() < np.pi / 2
    assert np.abs(found["phi"]).max() <= np.float32(np.pi)


def test_seeds_choose_the_medium_and_bits_stay() -> None:
    def digest(seed: int) -> str:
        found = synthetic("salt", (20, 20, 20), (20.0,) * 3, seed=seed).values(Box.of((20, 20, 20)))
        return hashlib.sha256(b"".join(found[name].tobytes() for name in QUANTITIES)).hexdigest()[:16]

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)
    assert digest(1) == DIGEST  # arithmetic alone, so the bits are those of every machine


DIGEST = "a4f84c02b93261ea"


def test_salt_is_a_body_under_water_and_sediments() -> None:
    shape = (60, 60, 60)
    vp = synthetic("salt", shape, SPACING).values(Box.of(shape))["vp"]
    salt = vp == 4480
    assert (vp[0] == 1500).all()
    assert 0.02 < salt.mean() < 0.3
    assert not salt[:8].any()
    assert salt[33, 20:40, 20:40].mean() > 0.5


def test_the_axis_is_normal_to_the_layers() -> None:
    """Velocity changes along the axis, and not across: its gradient is parallel to n."""
    shape = (40, 40, 40)
    layers = [Layer(0.0, 2000.0, 1.0, 0.1, 0.05)]
    found = synthetic("layered", shape, (5.0,) * 3, layers=layers, dip=20.0, azimuth=35.0).values(Box.of(shape))
    inner = (slice(20, 30), slice(15, 25), slice(15, 25))
    gradient = [float(np.gradient(found["vp"].astype("f8"), 5.0, axis=axis)[inner].mean()) for axis in range(3)]
    theta, phi = float(found["theta"][inner].mean()), float(found["phi"][inner].mean())
    n = np.array([np.cos(theta), np.sin(theta) * np.sin(phi), np.sin(theta) * np.cos(phi)])
    assert np.allclose(np.array(gradient) / np.linalg.norm(gradient), n, atol=1e-3)
    assert theta == pytest.approx(np.radians(20.0))


def test_given_layers_lie_at_their_depths() -> None:
    medium = synthetic("layered", (20, 4, 4), (10.0,) * 3, layers=[Layer(0, 1500.0), Layer(95.0, 2500.0)])
    vp = medium.values(Box.of((20, 4, 4)))["vp"]
    assert (vp[:10] == 1500).all()
    assert (vp[10:] == 2500).all()


def test_anisotropy_can_be_left_out() -> None:
    found = synthetic("thrust", SHAPE, SPACING, anisotropy=0.0).values(Box.of(SHAPE))
    assert all(not found[name].any() for name in QUANTITIES if name != "vp")


@pytest.mark.parametrize(
    ("kind", "options", "text"),
    [
        ("slat", {}, "did you mean 'salt'"),
        ("salt", {"seed": -1}, "seed"),
        ("salt", {"anisotropy": 3.0}, "from 0 to 2"),
        ("layered", {"dip": 80.0}, "60 degrees"),
        ("layered", {"layers": [Layer(50.0, 1500.0), Layer(20.0, 2000.0)]}, "from the top down"),
        ("layered", {"layers": [Layer(0.0, -3.0)]}, "above 0"),
    ],
)
def test_what_cannot_be_meant(kind: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(CaseError, match=text):
        synthetic(kind, SHAPE, SPACING, **options)


def test_angles_are_those_of_the_library() -> None:
    slopes = np.linspace(-40, 40, 801)
    assert np.abs(arctan(slopes) - np.arctan(slopes)).max() < 1e-13
    y, x = np.random.default_rng(0).normal(size=(2, 500))
    assert np.abs(arctan2(y, x) - np.arctan2(y, x)).max() < 1e-13
    assert float(arctan2(np.zeros(1), np.zeros(1))[0]) == 0.0


def test_noise_is_smooth_and_bounded() -> None:
    x = np.linspace(-20, 20, 4001)
    values = noise(3, x, x * 0.7)
    assert np.abs(values).max() <= 1
    assert values.std() > 0.2
    assert np.abs(np.diff(values)).max() < 0.05
    draws = lattice(9, np.arange(-5000, 5000))
    assert abs(draws.mean()) < 0.03
    assert draws.std() == pytest.approx(3**-0.5, rel=0.05)
    assert np.allclose(ripple(x), ripple(x + 3), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_densities_follow_from_velocities(kind: str) -> None:
    medium = synthetic(kind, SHAPE, SPACING, anisotropy=0.0, density=True)
    found, plain = medium.values(Box.of(SHAPE)), synthetic(kind, SHAPE, SPACING, anisotropy=0.0).values(Box.of(SHAPE))
    assert medium.quantities == (*QUANTITIES, "rho")
    assert all(np.array_equal(found[name], plain[name]) for name in QUANTITIES)
    rocks = found["vp"] > 1500
    assert found["rho"][rocks] == pytest.approx(310 * found["vp"][rocks] ** 0.25, rel=1e-6)
    assert (found["rho"][~rocks] == 1000).all()
    with pytest.raises(CaseError, match=r"anisotropy = 0\.0"):
        synthetic(kind, SHAPE, SPACING, density=True)

"""The Fletcher model: what it stores for which medium, what it refuses, and the same bits however it is run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.waves import Cpml, Medium, PointSource, Random, Release, Ricker, Sponge
from minga.models.waves.medium import Sampler
from minga.models.waves.stability import extremes_of, phase_velocities, sampling
from minga.running.loop import drive
from minga.running.session import state_digest

SHAPE = (12, 14, 16)


def varying(lo: float, hi: float) -> Callable[[mg.Box], np.ndarray]:
    """A function of a box whose values vary smoothly with the place."""

    def values(box: mg.Box) -> np.ndarray:
        z, y, x = np.ogrid[tuple(slice(a, b) for a, b in zip(box.lo, box.hi, strict=True))]
        return lo + (hi - lo) * ((3 * z + 5 * y + 7 * x) % 11) / 11

    return values


HARD = Medium(varying(2000, 3000), varying(0.1, 0.3), varying(0, 0.2), varying(0, 1.5), varying(0, 3))
TTI = Medium(3000.0, 0.24, 0.1, math.pi / 4, 1.0)


def names(model: mg.Model) -> list[str]:
    return [field.name for field in model.fields]


@pytest.mark.parametrize(
    ("medium", "boundary", "expected"),
    [
        (HARD, Release(), ["p", "q", "vp2", "epsilon", "delta", "nz", "ny", "nx"]),
        (TTI, Release(), ["p", "q"]),
        (TTI, Random(4), ["p", "q", "vp2"]),
        (Medium(varying(2000, 3000)), Release(), ["p", "vp2"]),
        (Medium(3000.0, varying(0.1, 0.2), 0.05), Release(), ["p", "q", "epsilon"]),
        (Medium(3000.0, 0.1, 0.05, 0.3, varying(0, 3)), Release(), ["p", "q", "ny", "nx"]),
        (TTI, Sponge(4), ["p", "q", "sponge_z", "sponge_y", "sponge_x"]),
    ],
)
def test_only_what_varies_is_stored(medium: Medium, boundary: Any, expected: list[str]) -> None:
    model = mg.fletcher(SHAPE, dt=1e-3, medium=medium, boundary=boundary)
    assert names(model) == expected
    assert all(field.dtype == "f4" for field in model.fields)


def test_matched_layers_have_memories_in_their_boxes_alone() -> None:
    model = mg.fletcher(SHAPE, dt=1e-3, medium=Medium(3000.0), boundary=Cpml(5))
    memories = [field for field in model.fields if field.name.startswith(("psi", "zeta"))]
    assert len(memories) == 12
    assert all(field.on is not None and 5 + 4 in field.on.shape for field in memories)


def test_layers_lie_around_the_model() -> None:
    model = mg.fletcher(SHAPE, 10.0, dt=1e-3, medium=Medium(2500.0), boundary=Sponge(7))
    assert model.grid.shape == (26, 28, 30)
    assert model.parameters["inside"] == [[7, 7, 7], [19, 21, 23]]
    box = mg.Box((6, 7, 18), (8, 9, 23))
    medium = Medium(np.arange(np.prod(SHAPE), dtype=float).reshape(SHAPE))
    values = Sampler(medium, SHAPE, (7, 7, 7)).values("vp", box)
    inside = medium.vp
    assert (values[0] == values[1]).all()  # the layer continues the first plane
    assert (values[1, :, :5] == inside[0, :2, 11:16]).all()  # type: ignore[index]


def test_random_velocities_depend_on_the_cell_alone() -> None:
    model = mg.fletcher(SHAPE, dt=1e-3, medium=Medium(3000.0), boundary=Random(6, seed=5))
    of: Any = model.initial["vp2"]
    whole = np.sqrt(of(model.grid.box))
    part = mg.Box((3, 2, 1), (9, 8, 7))
    assert (np.sqrt(of(part)) == whole[part.slices((0, 0, 0))]).all()
    assert (whole[6:-6, 6:-6, 6:-6] == 3000).all()
    assert whole.max() <= 3000
    rim, next_to_it = whole[0], whole[5, 6:-6, 6:-6]
    assert 1300 < rim.mean() < 1700  # half of v_max at the rim
    assert 2600 < next_to_it.mean() < 3000
    other: Any = mg.fletcher(SHAPE, dt=1e-3, medium=Medium(3000.0), boundary=Random(6, seed=6)).initial["vp2"]
    assert (np.sqrt(other(model.grid.box)) != whole).mean() > 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dt": 1.7e-3}, "above the stability limit, 0.001672 s"),
        ({"dt": -1.0}, "time step is -1.0"),
        ({"dt": math.nan}, "time step is nan"),
        ({"medium": Medium(3000.0, 0.1, 0.24, 0.5), "sigma": math.inf}, "larger than epsilon"),
        ({"medium": Medium(3000.0, 0.1, 0.24), "sigma": 5.0}, "with sigma 5 waves grow there without limit"),
        ({"medium": Medium(3000.0, 0.461, -0.189), "sigma": 0.75}, "waves grow there"),
        ({"medium": Medium(3000.0, 0.1, 0.24, 0.5), "sigma": 11.0}, "larger than epsilon"),
        ({"sigma": 0.0}, "sigma is 0.0"),
        ({"medium": Medium(0.0)}, "vp is 0 at cell"),
        ({"medium": Medium(math.nan)}, "vp is nan"),
        ({"medium": Medium(3000.0, -0.6)}, "epsilon is -0.6"),
        ({"medium": Medium(np.ones((3, 3, 3)))}, "shape"),
        ({"medium": Medium(lambda box: np.ones((1, 1, 1)))}, "the function for vp returns"),
        ({"order": 7}, "no stencil of order 7"),
        ({"form": "rotated"}, "no form 'rotated'"),
        ({"boundary": Cpml(8)}, "tilted axis"),
        ({"boundary": Cpml(8), "medium": Medium(3000.0, 0.1, varying(0, 0.2))}, "delta exceeds epsilon"),
        (
            {"boundary": Cpml(8), "medium": Medium(3000.0), "shape": (3, 9, 9)},
            "3 cells along z, where the boundary Cpml",
        ),
        ({"shape": (10, 10, 10, 10)}, "one, two or three whole numbers"),
        ({"spacing": (1.0, -1.0, 1.0)}, "spacing"),
    ],
)
def test_what_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"shape": SHAPE, "dt": 1e-3, "medium": TTI} | arguments
    with pytest.raises(CaseError, match=message):
        mg.fletcher(given.pop("shape"), **given)


def test_the_remedy_for_a_large_step_is_below_the_limit() -> None:
    with pytest.raises(CaseError) as error:
        mg.fletcher(SHAPE, dt=2e-3, medium=TTI)
    assert error.value.remedy is not None
    assert "dt = 0.0015 or less" in error.value.remedy


def test_the_limit_of_the_time_step() -> None:
    def limit(medium: Medium, sigma: float = 0.75, **more: Any) -> float:
        return extremes_of(Sampler(medium, SHAPE, (0,) * 3), (12.5,) * 3, 8, sigma, **more).dt_limit

    assert limit(Medium(3000.0)) * 3000 / 12.5 == pytest.approx(0.45286, abs=1e-5)
    assert limit(TTI) == pytest.approx(1.672e-3, abs=1e-6)
    assert limit(TTI, math.inf) == pytest.approx(1.674e-3, abs=1e-6)
    assert limit(Medium(3000.0, 0.24, 0.1)) == pytest.approx(limit(TTI), rel=1e-3)
    assert limit(TTI, divergence=True) < limit(TTI)


def test_points_in_a_wave_length() -> None:
    found = extremes_of(Sampler(TTI, SHAPE, (0,) * 3), (12.5,) * 3, 8, 0.75)
    points = sampling(found, (12.5,) * 3, 40 / 3, 40.0)
    assert points.p_peak == pytest.approx(18.0)
    assert points.sv_peak == pytest.approx(7.8, abs=0.05)
    assert points.sv_highest == pytest.approx(2.6, abs=0.05)


def test_phase_velocities_are_thomsens() -> None:
    # L. Thomsen (1986), in the exact form of I. Tsvankin, Geophysics 61 (1996), eq. 1
    angle = np.linspace(0, np.pi / 2, 19)
    vp, epsilon, delta, sigma = 3000.0, 0.24, 0.1, 0.75
    f = 1 - abs(epsilon - delta) / sigma
    s2 = np.sin(angle) ** 2
    half = 1 + epsilon * s2 - f / 2
    root = f / 2 * np.sqrt((1 + 2 * epsilon * s2 / f) ** 2 - 2 * (epsilon - delta) * np.sin(2 * angle) ** 2 / f)
    p, sv = phase_velocities(angle, vp, epsilon, delta, sigma)
    assert p == pytest.approx(vp * np.sqrt(half + root), rel=1e-12)
    assert sv == pytest.approx(vp * np.sqrt(half - root), rel=1e-12)


HEAVY = {
    "tilted, random": (HARD, Random(5), "fletcher"),
    "tilted, sponge, selfadjoint": (HARD, Sponge(5), "selfadjoint"),
    "isotropic, matched": (Medium(varying(2000, 3000)), Cpml(5), "fletcher"),
    "vertical, matched": (Medium(varying(2000, 3000), 0.2, 0.1), Cpml(5), "fletcher"),
}


SLOW = ("tilted, random", "tilted, sponge, selfadjoint", "vertical, matched")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in SLOW else []) for kind in HEAVY]
)
def test_the_same_bits_on_any_ranks_with_any_halo_and_overlap(kind: str) -> None:
    medium, boundary, form = HEAVY[kind]
    model = mg.fletcher(
        SHAPE, dt=1e-3, medium=medium, boundary=boundary, form=form, order=4,  # type: ignore[arg-type]
        sources=[PointSource((61.0, 70.0, 90.0), Ricker(25.0, delay=0.01))],
    )  # fmt: skip

    def run(ranks: int, depth: int, overlap: bool) -> str:
        def body(comm: mg.SerialComm) -> str:
            layouts = model.layouts("bisection" if ranks == 3 else "slabs", ranks)
            with mg.Engine(layouts, comm=comm, halo_depth=depth, overlap=overlap) as engine:
                drive(model, engine, 12)
                return state_digest(engine, model, [f for f in model.fields if f.name in "pq"])

        return mg.run_virtual(ranks, body)[0]  # type: ignore[arg-type]

    alone = run(1, 1, False)
    assert run(2, 1, True) == alone
    assert run(3, 1, False) == alone
    assert run(2, 2, True) == alone

"""Gradients of misfits: published numbers, difference quotients for every physics, ranks, checkpoints and misfits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.waves import (
    Faces,
    Inversion,
    Medium,
    PointSource,
    Random,
    Receivers,
    Ricker,
    Shot,
    Sponge,
    linearised_shots,
    prepare,
    shot_born,
    shot_gradient,
    shot_traces,
)
from minga.models.waves.misfits import MISFITS
from minga.models.waves.waves import Waves
from wave_anomaly import START, TRUE, I, J, recorded, waves_in
from wave_physics import ENTRIES, PHYSICS, SHAPE, SHOT, prepared


@pytest.mark.slow
def test_the_gradient_of_two_shots_is_the_published_one() -> None:
    """60 x 60 cells, order 4, zeros beyond the ends: numbers by complex-step differentiation, of another program."""
    shots = recorded()
    found = [shot_gradient(waves_in(START), shot) for shot in shots]
    total, slope = sum(number for number, _ in found), sum(slopes["vp"] for _, slopes in found if slopes is not None)
    energy = sum(float(np.square(shot.data).sum()) for shot in shots if shot.data is not None)
    assert energy == pytest.approx(17.02667188304, rel=1e-11)
    assert total == pytest.approx(8.104288509866e-2, rel=1e-11)
    assert np.linalg.norm(slope) == pytest.approx(1.824349482736e-4, rel=1e-11)
    places = [(32, 28), (20, 30), (4, 15), (45, 10)]
    published = [-7.302116820330e-6, -6.623545289894e-6, -2.284752198925e-5, -3.864299440e-7]
    assert [slope[place] for place in places] == pytest.approx(published, rel=1e-9)
    assert float((slope * (TRUE - START)).sum()) == pytest.approx(-0.1701429989520, rel=1e-11)


@pytest.mark.slow
def test_the_gradient_in_a_tilted_medium_is_the_published_one() -> None:
    """60 x 60 cells, order 8, a sponge of 10 cells inside them, a legacy source."""
    vp, epsilon, delta = 2200 + 6 * I, 0.2 + 0.05 * np.sin(I / 9), 0.08 + 0.02 * np.cos(J / 7)
    theta = 0.5 + 0.2 * np.sin((I + J) / 15)
    spread = Receivers([(20.0, 10.0 * (column - 10)) for column in range(12, 45, 4)])
    shot = Shot([PointSource((40.0, 200.0), Ricker(15.0, 0.07), injection="legacy")], spread)
    inside = slice(10, 50), slice(10, 50)

    def waves(vp: np.ndarray, epsilon: np.ndarray) -> Waves:
        """The layers have values of their own, which are set in place of those that repeat the model."""
        made = prepare(
            (40, 40), 10.0, dt=8e-4, dtype="f8", boundary=Sponge(10, 0.3),
            medium=Medium(*(a[inside] for a in (vp, epsilon, delta, theta))),
        )  # fmt: skip
        whole = {"vp": vp, "epsilon": epsilon, "delta": delta, "theta": theta}
        object.__setattr__(made, "sampler", _Whole(whole))
        return made

    true_vp = vp + 150 * np.exp(-((I - 32) ** 2 + (J - 28) ** 2) / 50)
    true_epsilon = epsilon + 0.05 * np.exp(-((I - 25) ** 2 + (J - 35) ** 2) / 40)
    data = shot_traces(waves(true_vp, true_epsilon), shot, 301)
    wrt = ("vp", "epsilon", "delta", "theta")
    number, found = shot_gradient(waves(vp, epsilon), Shot(shot.sources, spread, data), wrt)
    assert found is not None
    assert number == pytest.approx(2.9888249762e-2, rel=1e-9)
    published = {
        ("vp", 32, 28): 2.9586795483e-6, ("vp", 25, 35): -6.1324376e-6, ("epsilon", 25, 35): 4.3880559e-3,
        ("delta", 25, 35): 8.6100750e-3, ("theta", 25, 35): -1.1115445e-3,
    }  # fmt: skip
    for (name, i, j), expected in published.items():
        assert found[name][i - 10, j - 10] == pytest.approx(expected, rel=1e-7)


class _Whole:
    """A medium with values of its own in all cells of the grid."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    def values(self, name: str, box: mg.Box) -> np.ndarray:
        return self.arrays[name][box.slices((0, 0))] if name in self.arrays else np.zeros(box.shape)


# Difference quotients ------------------------------------------------------------------------------------------------
def gradient(physics: str, entries: dict[str, np.ndarray], dtype: str = "f8", **options: Any) -> tuple[float, Any]:
    shot = Shot(SHOT.sources, SHOT.receivers, np.zeros((16, 3)))
    options.setdefault("wrt", PHYSICS[physics][0])
    return shot_gradient(prepared(physics, entries, dtype), shot, **options)


@pytest.mark.few(1)
@pytest.mark.parametrize("physics", PHYSICS)
def test_gradients_are_exact_for_every_physics(physics: str) -> None:
    """Half the energy of the traces, whose gradient includes cells beside layers, sources and surfaces."""
    _, found = gradient(physics, ENTRIES)
    rng = np.random.default_rng(2)
    for name in PHYSICS[physics][0]:
        direction = rng.standard_normal(SHAPE) * (100.0 if name == "vp" else 0.02)

        def at(s: float, name: str = name, direction: np.ndarray = direction) -> float:
            changed = ENTRIES | {name: ENTRIES[name] + s * direction}
            traces = shot_traces(prepared(physics, changed), SHOT, 16)
            return 0.5 * float(np.square(traces).sum())

        h = 1e-3
        quotient = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
        slope = float((found[name] * direction).sum())
        assert slope == pytest.approx(quotient, rel=1e-7, abs=1e-9 * np.linalg.norm(found[name]))


def test_single_precision_is_near() -> None:
    _, exact = gradient("free", ENTRIES)
    _, found = gradient("free", ENTRIES, "f4")
    assert np.linalg.norm(found["vp"] - exact["vp"]) < 1e-4 * np.linalg.norm(exact["vp"])


def test_slowness_is_the_reciprocal_of_velocity() -> None:
    waves = prepared("free", ENTRIES)
    shot = Shot(SHOT.sources, SHOT.receivers, np.zeros((16, 3)))
    _, found = shot_gradient(waves, shot, ("vp", "slowness"))
    assert found is not None
    assert found["slowness"] == pytest.approx(-(ENTRIES["vp"] ** 2) * found["vp"], rel=1e-13)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("physics", "ranks", "memory"),
    [
        ("fourth", 1, 1), ("tilted", 2, 1 << 30), ("tilted", 1, 1), ("tilted", 3, 20_000), ("free", 2, 1),
        ("matched", 1, 1), ("matched", 2, 1 << 30), ("self-adjoint", 1, 1),
    ],
)  # fmt: skip
def test_bits_depend_neither_on_ranks_nor_on_memory(physics: str, ranks: int, memory: int) -> None:
    """With much memory, values that the reversal needs are stored, with less the state, or parts of it."""
    number, found = gradient(physics, ENTRIES, wrt=("vp",))

    def body(comm: Any) -> Any:
        return gradient(physics, ENTRIES, wrt=("vp",), comm=comm, memory=memory)

    again, other = mg.run_virtual(ranks, body)[0]
    assert again == number
    assert all(np.array_equal(other[name], values) for name, values in found.items())


@pytest.mark.parametrize("name", MISFITS)
def test_misfits_have_exact_derivatives(name: str) -> None:
    rng = np.random.default_rng(5)
    found, data, direction = (rng.standard_normal((40, 3)) for _ in range(3))
    _, slope = MISFITS[name](found, data)
    h = 1e-4
    quotient = (MISFITS[name](found + h * direction, data)[0] - MISFITS[name](found - h * direction, data)[0]) / (2 * h)
    assert float((slope * direction).sum()) == pytest.approx(quotient, rel=1e-6)
    same, none = MISFITS[name](data, data)
    assert same == pytest.approx(0.0, abs=1e-12)
    assert none == pytest.approx(0.0, abs=1e-12)


def test_the_normalised_misfit_does_not_depend_on_amplitudes() -> None:
    found = np.random.default_rng(5).standard_normal((40, 3))
    assert MISFITS["normalised"](7.0 * found, found)[0] == pytest.approx(0.0, abs=1e-12)
    silent = found * [1.0, 0.0, 1.0]
    number, slope = MISFITS["normalised"](silent, found)
    assert np.isfinite(number)
    assert not slope[:, 1].any()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"wrt": ("qp",)}, "there is no quantity 'qp'"),
        ({"wrt": ("rho",)}, "rho is one number"),
        ({"wrt": ("epsilon",)}, "epsilon is one number"),
        ({"wrt": ("phi",)}, "phi is one number"),
        ({"misfit": "l1"}, "there is no misfit 'l1'"),
        ({"data": np.zeros((5, 2))}, r"shape \(5, 2\), for 3 receivers"),
        ({"data": np.full((5, 3), np.nan)}, "not finite"),
        ({"boundary": Random(4)}, "random layers have no gradient"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    waves = prepare(
        SHAPE, 10.0, dt=6e-4, order=4, medium=Medium(ENTRIES["vp"]), boundary=options.get("boundary", Sponge(4))
    )
    shot = Shot(SHOT.sources, SHOT.receivers, options.get("data", np.zeros((5, 3))))
    with pytest.raises(CaseError, match=said):
        shot_gradient(waves, shot, options.get("wrt", ("vp",)), misfit=options.get("misfit", "l2"))


def test_random_layers_are_refused_before_anything_is_computed() -> None:
    """Their velocities follow from the largest one of the model: in every way to a derivative by the medium."""
    waves = prepare(SHAPE, 10.0, dt=6e-4, order=4, medium=Medium(ENTRIES["vp"]), boundary=Faces(Sponge(4), x=Random(4)))
    shot = Shot(SHOT.sources, SHOT.receivers, np.zeros((5, 3)))
    change, jacobian = {"vp": np.ones(SHAPE)}, linearised_shots([waves], [shot])
    search = Inversion([shot], lambda values, shot: waves)
    newton = Inversion([shot], lambda values, shot: waves, method="gauss-newton")
    ways: list[Callable[[], object]] = [
        lambda: shot_gradient(waves, shot), lambda: shot_born(waves, shot, change, 5), lambda: search.run(change, 1),
        lambda: newton.run(change, 1), lambda: search.gradient(change),
        lambda: jacobian.matvec(np.ones(jacobian.shape[1])), lambda: jacobian.rmatvec(np.ones(jacobian.shape[0])),
    ]  # fmt: skip
    for way in ways:
        with pytest.raises(CaseError, match="random layers have no gradient") as error:
            way()
        assert error.value.remedy is not None
        assert "Sponge()" in error.value.remedy


def test_a_shot_has_receivers() -> None:
    waves = prepare(SHAPE, 10.0, dt=6e-4, order=4, medium=Medium(ENTRIES["vp"]), boundary=Sponge(4))
    with pytest.raises(CaseError, match="without receivers"):
        shot_traces(waves, Shot(SHOT.sources, Receivers([])), 3)
    with pytest.raises(CaseError, match="without receivers"):
        shot_gradient(waves, Shot(SHOT.sources, Receivers([]), np.zeros((3, 0))))

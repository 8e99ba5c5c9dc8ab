"""The adjoint step is the transpose of the step: for the operator alone, and from sources to receivers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.waves import Medium, Random, Receivers, Release, prepare
from minga.models.waves.adjoint import adjoint_fields, record_adjoint_step
from minga.models.waves.boundary import Face
from minga.models.waves.receivers import Taps

SHAPE = (13, 14, 15)
NUMBERS = np.random.default_rng(7)


def somewhere(lo: float, hi: float) -> np.ndarray:
    return NUMBERS.uniform(lo, hi, SHAPE)


MEDIA = {
    "tilted": Medium(somewhere(2000, 3000), somewhere(0.1, 0.3), somewhere(0, 0.2), somewhere(0, 1), somewhere(0, 3)),
    "tilted everywhere alike": Medium(somewhere(2000, 3000), 0.24, 0.1, 0.7, 1.0),
    "vertical": Medium(somewhere(2000, 3000), somewhere(0.1, 0.3), somewhere(0, 0.2)),
    "isotropic": Medium(somewhere(2000, 3000)),
    "density": Medium(somewhere(2000, 3000), rho=somewhere(1000, 2500)),
}
CASES = [*((name, "fletcher") for name in MEDIA), ("tilted", "selfadjoint")]


END = Release()


def waves_of(name: str, form: Any, dtype: str = "f8", order: int = 4, boundary: Face = END) -> Any:
    return prepare(SHAPE, dt=1e-3, medium=MEDIA[name], form=form, order=order, boundary=boundary, dtype=dtype)


def products(
    name: str, form: str, dtype: str, order: int = 4, boundary: Face = END, *, wrong: bool = False
) -> tuple[float, float]:
    """<A u, v> and <u, A' v> for random u and v, by |A u| |v|."""
    waves = waves_of(name, form, dtype, order, boundary)
    fields = waves.fields if wrong else adjoint_fields(waves)
    forward, backward = mg.Program("forward"), mg.Program("backward")
    waves.record_kernel(forward)
    waves.record_kernel(backward) if wrong else record_adjoint_step(backward, waves, fields)
    shape = (len(waves.fields), *waves.grid.shape)
    u, v = NUMBERS.standard_normal((2, *shape)).astype(dtype)

    def right_side(program: mg.Program, over: Any, values: np.ndarray, rotated: bool) -> np.ndarray:
        with mg.Engine(mg.Layout.single(waves.grid.box, 1), grid=waves.grid) as engine:
            for field, start in waves.start().items():
                engine.set(next(f for f in waves.medium if f.name == field), start)
            for field, value in zip(over, values, strict=True):
                engine.set(field, value)
                engine.set(field.previous, 2 * value)  # what leapfrog adds up to is then the right side alone
            engine.run(program)
            slots = [f.now if rotated else f.previous for f in over]
            return np.stack([np.asarray(engine.gather(slot), "f8") for slot in slots])

    au = right_side(forward, waves.fields, u, False)
    av = right_side(backward, fields, v, not wrong)
    scale = float(np.linalg.norm(au) * np.linalg.norm(v))
    return float((au * v).sum()) / scale, float((u * av).sum()) / scale


SLOW = (*CASES[1:3], CASES[-1])


@pytest.mark.parametrize(
    ("name", "form"), [pytest.param(*c, marks=[pytest.mark.slow] if c in SLOW else []) for c in CASES]
)
def test_the_operator_and_its_adjoint(name: str, form: str) -> None:
    one, other = products(name, form, "f8")
    assert abs(one - other) < 1e-14
    assert abs(one) > 1e-6


@pytest.mark.parametrize(
    ("name", "form"),
    [pytest.param(*c, marks=[] if c[0] == "isotropic" else [pytest.mark.slow]) for c in CASES],
)
def test_with_random_layers(name: str, form: str) -> None:
    """They are part of the medium of the waves, so that the transpose knows them."""
    one, other = products(name, form, "f8", boundary=Random(3))
    assert abs(one - other) < 1e-14
    assert abs(one) > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("order", [8, 12, 16])
@pytest.mark.parametrize(("name", "form"), CASES)
def test_of_higher_orders(name: str, form: str, order: int) -> None:
    one, other = products(name, form, "f8", order)
    assert abs(one - other) < 1e-14


@pytest.mark.slow
def test_in_single_precision_too() -> None:
    one, other = products("tilted", "fletcher", "f4", 8)
    assert abs(one - other) < 1e-7


def test_the_operator_is_not_its_own_adjoint() -> None:
    one, other = products("tilted", "fletcher", "f8", wrong=True)
    assert abs(one - other) > 1e-5


@pytest.mark.parametrize("boundary", [END, Random(3)], ids=repr)
def test_from_sources_to_receivers(boundary: Face) -> None:
    steps = 25
    waves = waves_of("tilted", "fletcher", boundary=boundary)
    adjoint = adjoint_fields(waves)
    places = [[(40.0, 61.0, 77.0), (90.0, 50.0, 110.0)], [(101.0, 99.0, 60.0), (30.0, 120.0, 90.0), (75.0, 75.0, 75.0)]]
    at_sources, at_receivers = (Taps.of(Receivers(points).placed(waves.domain)) for points in places)
    pushed, data = NUMBERS.standard_normal((steps, 2)), NUMBERS.standard_normal((steps, 3))

    def propagate(adjoint_too: bool) -> np.ndarray:
        """Samples at the receivers of what the sources push; or at the sources of what the receivers push."""
        fields = adjoint if adjoint_too else waves.fields
        step = mg.Program("step")
        record_adjoint_step(step, waves, fields) if adjoint_too else waves.record_kernel(step)
        if not adjoint_too:
            step.rotate(*fields)
        look = mg.Program("look")
        for field in fields:
            look.refresh(field, 8)
        found = []
        with mg.Engine(mg.Layout.single(waves.grid.box, 1), grid=waves.grid) as engine:
            for field, start in waves.start().items():
                engine.set(next(f for f in waves.medium if f.name == field), start)
            for field in fields:
                engine.set(field, 0.0)
                engine.set(field.previous, 0.0)
            for number in range(steps):
                if adjoint_too:
                    at_receivers.inject(engine, fields[:1], data[::-1][number])
                else:
                    at_sources.inject(engine, fields, pushed[number])
                engine.run(look)
                found.append(
                    sum(at_sources.sample(engine, field) for field in fields)
                    if adjoint_too
                    else at_receivers.sample(engine, fields[0])
                )
                engine.run(step)
        return np.array(found)

    recorded, back = propagate(False), propagate(True)[::-1]
    one, other = float((recorded * data).sum()), float((pushed * back).sum())
    assert abs(one - other) < 1e-13 * np.linalg.norm(recorded) * np.linalg.norm(data)
    assert abs(one) > 1e-6 * np.linalg.norm(recorded) * np.linalg.norm(data)

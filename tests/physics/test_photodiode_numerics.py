"""Photodiodes: breakdown by ionisation integrals, order of the discretisation, the same bits however it is run."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.solver.coefficient_values import neutral_potential
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import CHARGE, VACUUM
from minga.models.photodiode.structure.ionisation import IonisationSet, coefficient, shipped_sets
from minga.output.checkpoint.keeper import Checkpointing
from thinned import thinned

from .evidence import Evidence
from .photodiodes import apd, silicon, solved

Floats = NDArray[np.float64]
SECTION = "photodiode: breakdown of InP by ionisation integrals"


def alphas(name: str, field: Floats) -> tuple[Floats, Floats]:
    found: IonisationSet = shipped_sets()[name]
    return coefficient(found.electrons, field), coefficient(found.holes, field)


def uniform_breakdown(name: str, width: float) -> float:
    """V of a constant field over `width` cm: w = ln(beta/alpha)/(beta - alpha)."""
    low, high = 1e5, 2e6
    for _ in range(100):
        field = math.sqrt(low * high)
        alpha, beta = (float(a[0]) for a in alphas(name, np.array([field])))
        needed = math.log(beta / alpha) / (beta - alpha) if beta > 0.0 and alpha > 0.0 else math.inf
        low, high = (field, high) if needed > width else (low, field)
    return low * width


def one_sided_breakdown(name: str, doping: float, points: int = 4001) -> float:
    """V of an abrupt junction whose one side is depleted: holes through the whole field, integral 1."""

    def integral(peak: float) -> tuple[float, float]:
        width = peak * 12.5 * VACUUM / (CHARGE * doping)
        x = (np.arange(points) + 0.5) * width / points
        alpha, beta = alphas(name, peak * (1.0 - x / width))
        step = width / points
        # Holes start where the field ends, and travel to its peak.
        change = (beta - alpha)[::-1] * step
        reached = np.cumsum(change) - 0.5 * change
        return float((beta[::-1] * np.exp(-reached)).sum() * step), 0.5 * peak * width

    low, high = 1e5, 2e6
    for _ in range(60):
        peak = math.sqrt(low * high)
        low, high = (peak, high) if integral(peak)[0] < 1.0 else (low, peak)
    return integral(low)[1]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("width", "cook", "umebu"), [(0.2e-4, 13.1, 13.5), (0.5e-4, 25.3, 27.8), (1e-4, 44.0, 49.0), (2e-4, 77.9, 87.6)]
)
def test_breakdown_in_a_constant_field(width: float, cook: float, umebu: float, evidence: Evidence) -> None:
    for name, volts in (("cook", cook), ("umebu", umebu)):
        found = uniform_breakdown(name, width)
        evidence.absolute(SECTION, f"p-i-n of {1e4 * width:g} um, {name}, V", found, volts, 0.06)


@pytest.mark.few(2)
@pytest.mark.parametrize(("doping", "cook", "umebu"), [(1e15, 479, 584), (1e16, 87, 106), (1e17, 21.1, 22.5)])
def test_breakdown_of_a_one_sided_junction(doping: float, cook: float, umebu: float, evidence: Evidence) -> None:
    for name, volts in (("cook", cook), ("umebu", umebu)):
        evidence.relative(SECTION, f"p+n of {doping:g}, {name}, V", one_sided_breakdown(name, doping), volts, 0.006)


def test_second_order_in_the_spacing(evidence: Evidence) -> None:
    """A potential of our choice, and the doping that it solves Poisson's equation with."""
    errors = []
    for nodes in (51, 101):
        device = silicon(nodes)
        x = device.nodes[0] / device.nodes[0][-1]
        thermal = device.thermal_voltage
        middle = -0.5 * (device.theta_n + device.theta_p)
        # At both ends its curvature is 0, so that they are neutral.
        potential = middle + 3.0 + 4.0 * np.sin(math.pi * x) - 2.0 * x
        bend = -4.0 * (math.pi / device.nodes[0][-1]) ** 2 * np.sin(math.pi * x)
        doping = 2.0 * device.nie * np.sinh(potential - middle) - device.permittivity * VACUUM * thermal / CHARGE * bend
        made = replace(device, doping=doping)
        assert neutral_potential(made)[[0, -1]] == pytest.approx(potential[[0, -1]], abs=1e-12)
        found = solved(made, Problem((0.0,), ionisation=False))[0]["fields"]["potential"] / thermal
        errors.append(float(np.abs(found - potential).max()))
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    evidence.between("photodiode: orders", "of the potential in the spacing", orders[-1], 1.9, 2.1)


PROBLEM = Problem((-1.0, -51.0), ("lit",))


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "threads"), thinned([(2, 1), (3, 2)], (2, 1)))
def test_the_same_bits_on_ranks_and_threads(ranks: int, threads: int) -> None:
    alone = solved(apd(10), PROBLEM)
    found = solved(apd(10), PROBLEM, ranks=ranks, threads=threads)
    for one, other in zip(alone, found, strict=True):
        fields, others = one.pop("fields"), other.pop("fields")
        assert {k: v for k, v in one.items() if v == v} == {k: v for k, v in other.items() if v == v}
        for name, values in fields.items():
            assert values.tobytes() == others[name].tobytes(), name
        one["fields"] = fields


@pytest.mark.slow
def test_the_same_bits_after_an_interruption(tmp_path: Path) -> None:
    model = photodiode(apd(10), replace(PROBLEM, bias=(-1.0, -20.0, -51.0, -52.0)))
    whole = mg.run(model, steps=4)
    mg.run(model, steps=2, out=tmp_path / "run", checkpoint=Checkpointing(steps=2, at_end=True))
    rest = mg.run(model, steps=4, out=tmp_path / "run", checkpoint=Checkpointing(steps=2, at_end=True), resume=True)
    assert rest.attrs["digest"] == whole.attrs["digest"]
    assert rest["J_lit"].values.tobytes() == whole["J_lit"].values.tobytes()
    table = (tmp_path / "run" / "iv.csv").read_text().splitlines()
    assert table[0] == "V,J_lit"
    assert [float(line.partition(",")[0]) for line in table[1:]] == [-1.0, -20.0, -51.0, -52.0]

"""Surface energy of growing deposits: same bits on ranks and after resumption, refused cases, and notes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.compile.explain import kernel
from minga.engine.model import Model
from minga.errors import CaseError
from minga.lang.cell import CellReader
from minga.models.electrodeposition import curvature
from minga.models.electrodeposition.electrolytes import bath
from minga.models.electrodeposition.equilibrium import equilibrium_of
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Constants, Growth, Steps
from minga.space.grid import Grid
from thinned import thinned

from ...model_runs import Left, assert_same, resume_model, run_model
from .test_growth import SIDE, cell
from .test_programs import model_of

PLANE: dict[str, Any] = {"width": "1 mm", "voltage": 0.1, "time": {"end": "1 s"}}


def growing(energy: float) -> Model:
    return electrodeposition(
        cell(growth=Growth("Cu", 7.1e-6, porosity=0.9994, radius=2.0 * SIDE, surface_energy=energy))
    )


@pytest.fixture(scope="module")
def bent() -> Left:
    """A deposit whose surface energy is large enough to matter at this size."""
    return run_model(growing(3e5), 4)


@pytest.mark.slow
def test_ranks_and_resumption_change_no_bit(bent: Left, tmp_path: Path) -> None:
    assert bent.observables["deposit_cells"] > 4
    assert_same(run_model(growing(3e5), 4, ranks=3), bent)
    assert_same(resume_model(growing(3e5), 4, 2, tmp_path), bent)


@pytest.mark.slow
def test_surface_energy_smooths_a_deposit(bent: Left) -> None:
    """At equal charge the highest tip is not as far from the mean front as without it."""
    plain = run_model(growing(0.0), 4)
    assert bent.observables["deposit_charge"] == pytest.approx(plain.observables["deposit_charge"], rel=1e-6)
    tops = [
        np.where(s.any(0), 12 - np.argmax(s[::-1], 0), 0) for s in (left.fields["kind"] == 1 for left in (bent, plain))
    ]
    assert tops[0].std() < 0.8 * tops[1].std()


@pytest.mark.slow
@pytest.mark.parametrize("mixed", [False, True])
def test_a_uniform_curvature_is_a_shift_of_the_voltage(mixed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By gamma V_m k / (z F), for free ions and for bisulphate and pairs in local equilibrium."""
    shift, bent = 0.01, 1e4

    @kernel
    def same_everywhere(_metal: CellReader, value: CellReader) -> None:
        value[0, 0] = bent

    monkeypatch.setattr(curvature, "bend", lambda *_: same_everywhere)
    energy = 2.0 * Constants().faraday * shift / (7.1e-6 * bent)
    species = bath("CuSO4", 100.0, "H2SO4", 20.0)
    solution = equilibrium_of(species, Constants()) if mixed else None
    grid = Grid((6, 2), spacing=(SIDE, SIDE), axes=("y", "x"), periodic=(False, True))
    seen = []
    for gamma, voltage in ((0.0, 0.03), (energy, 0.03 + shift), (energy, 0.03)):
        problem = cell(
            growth=Growth("Cu", 7.1e-6, porosity=0.0, radius=2.0 * SIDE, surface_energy=gamma), current=None,
            voltage=voltage, steps=Steps(end=30.0, every=10.0, first=10.0, adaptive=False, order=1),
        )  # fmt: skip
        seen.append(run_model(electrodeposition(replace(problem, grid=grid, species=species, solution=solution)), 3))
    assert seen[1].observables["deposit_cells"] == 0
    assert seen[1].observables["current"] == pytest.approx(seen[0].observables["current"], rel=1e-6)
    assert seen[2].observables["current"] < 0.8 * seen[0].observables["current"]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("growth", "said", "message"),
    thinned(
        [
            ({"surface_energy": 1.0}, {}, "needs a length over which it is measured"),
            ({"surface_energy": 1.0, "radius": "0.2 mm"}, {"cathode": "held"}, "has no equilibrium"),
            (
                {"surface_energy": 1.0, "radius": "0.2 mm"},
                {"cathode": {"Cu": {"exchange": 30.0}, "stern": "1 nm"}},
                "has a Stern layer",
            ),
        ]
    ),
)
def test_what_it_needs_is_said(growth: dict[str, Any], said: dict[str, Any], message: str) -> None:
    with pytest.raises(CaseError, match=message) as caught:
        model_of((12, 6), growth=growth, **PLANE, **said)
    assert caught.value.key == "electrodeposition.growth.surface_energy"


def test_its_potential_is_said_before_the_run() -> None:
    notes = dict(model_of((12, 6), growth={"surface_energy": 1.4, "radius": "1 um"}, **PLANE).notes)
    assert "the surface energy shifts the potential by 51.5 uV" in notes["deposit"]

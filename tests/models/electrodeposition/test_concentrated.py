"""Tables of concentrated solutions: what they determine, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.engine.engine import Engine
from minga.errors import CaseError
from minga.models.electrodeposition.concentrated import Rows, solution_of
from minga.models.electrodeposition.electrolytes import bath
from minga.models.electrodeposition.groups import Salt
from minga.models.electrodeposition.problem import Constants, Species
from minga.models.electrodeposition.speciation import pairs_at, rows_of
from minga.running.loop import drive
from minga.schema import validate

COPPER, CONSTANTS = bath("CuSO4", 100.0, None, 0.0), Constants()
TABLE = {
    "concentration": [10.0, 300.0], "diffusivity": [6e-10, 5e-10], "conductivity": [0.15, 1.9],
    "transference": [0.4, 0.38],
}  # fmt: skip


def load(**said: Any) -> Any:
    """The model of a case."""
    grid = validate(GridSettings, {"shape": [8]}, "grid")
    bath_ = {"electrolyte": "CuSO4", "concentration": "0.1 M", "length": "1 cm", "voltage": 0.1, "time": {"end": 1.0}}
    return load_model("electrodeposition", {"electrodeposition": {**bath_, **said}}, grid, Path(said.pop("at", ".")))


def test_ions_reproduce_the_tables() -> None:
    salt = Species("M", 2, 1e-9, 50.0), Species("X", -1, 1e-9, 100.0)
    c, d, k, t, q = np.array([[20.0, 80.0], [9e-10, 8e-10], [0.4, 1.2], [0.35, 0.3], [0.8, 0.7]])
    found = solution_of(Rows(c, d, k / c, t, q), salt, CONSTANTS)
    assert found.counts == {0: 1, 1: 2}
    for row, place in enumerate(c):
        charges = (2, -1)
        assert found.conductivity(charges, CONSTANTS, place) == pytest.approx(k[row], rel=1e-12)
        assert found.transference(charges, place) == pytest.approx(t[row], rel=1e-12)
        assert found.salt_diffusivity(charges, place) == pytest.approx(d[row], rel=1e-12)
        spread = found.diffusivities[0][row + 1] - found.diffusivities[1][row + 1]
        mobile = found.mobilities[0][row + 1] - found.mobilities[1][row + 1]
        assert spread == pytest.approx(q[row] * mobile, rel=1e-12)


@pytest.mark.slow
def test_activities_are_the_integral_of_the_factor() -> None:
    rows = rows_of(COPPER, CONSTANTS)
    salt = Salt.of(COPPER)
    assert rows is not None
    assert salt is not None
    found = solution_of(rows, COPPER, CONSTANTS)
    c = np.exp(np.linspace(np.log(20.0), np.log(200.0), 2001))
    factor = np.array([pairs_at(salt, float(value), CONSTANTS).factor for value in c])
    exact = float(np.trapezoid(factor - 1.0, np.log(c)))
    assert found.activity_at(0, 200.0) - found.activity_at(0, 20.0) == pytest.approx(exact, rel=2e-3)


def test_the_factor_of_pairs_is_that_of_their_activity() -> None:
    """q = d ln(f g) / d ln c, from the equilibrium K g^2 f^2 = p."""
    salt = Salt.of(COPPER)
    assert salt is not None
    low, middle, high = (pairs_at(salt, c, CONSTANTS) for c in (99.9, 100.0, 100.1))
    # ln(f g) is half of ln(p/K).
    found = 0.5 * (np.log(high.fraction * 100.1) - np.log(low.fraction * 99.9)) / np.log(100.1 / 99.9)
    assert middle.factor == pytest.approx(found, rel=1e-5)


def test_a_file_is_the_same_as_lists(tmp_path: Path) -> None:
    names = list(TABLE)
    lines = [",".join(names), *(",".join(map(str, row)) for row in zip(*TABLE.values(), strict=True))]
    (tmp_path / "bath.csv").write_text("\n".join(lines))
    one, other = load(solution=TABLE), load(solution={"file": str(tmp_path / "bath.csv")})
    assert dict(one.notes) == dict(other.notes)
    assert "38" in dict(one.notes)["salt"] or "39" in dict(one.notes)["salt"]


ACID = {"acid": "H2SO4", "acid_concentration": "0.1 M"}


@pytest.mark.parametrize(
    ("solution", "more", "said"),
    [
        ({**TABLE, "transference": [0.4, 1.0]}, {}, "value 2 of transference is 1"),
        ({**TABLE, "transference": [0.4]}, {}, "1 values of transference"),
        ({**TABLE, "concentration": [300.0, 10.0]}, {}, "increasing order"),
        ({**TABLE, "concentration": [0.0, 300.0]}, {}, "above 0"),
        ({**TABLE, "concentration": [10.0, 20.0]}, {}, "the table ends at 20"),
        ({**TABLE, "diffusivity": [6e-10, -5e-10]}, {}, "value 2 of diffusivity"),
        ({**TABLE, "diffusivity": [1e-11, 1e-12]}, {}, "less than its conductivity"),
        ({"concentration": [10.0, 300.0]}, {}, "'diffusivity' is missing"),
        ({"file": "nowhere.csv"}, {}, "cannot read"),
        ({"file": "nowhere.csv", **TABLE}, {}, "both file and concentration"),
        ("pairs", ACID | {"cathode": {"reactions": [{"oxidised": "Cu"}]}}, "lists of reactions take free ions"),
        ("pairs", {"concentration": "1 M"}, "known up to 497"),
        (TABLE, ACID, "one cation and one anion"),
        ("pairs", {"scheme": "relaxation"}, "has no solution"),
        ("pairs", {"debye": "1 mm"}, "resolve the Debye length"),
        ("dilute", {"debye": "1 mm", "cathode": {"Cu": "held", "capacity": 0.2}}, "resolve the Debye length"),
        ("dilute", {"cathode": {"Cu": "held", "capacity": -1}}, "negative capacity"),
        ("dilute", {"cathode": {"Cu": "held", "capacity": "1 m"}}, "F/m2"),
        ("dilute", {"cathode": {"Cu": "held", "capacity": 1, "stern": 1e-9}}, "both a Stern layer and a capacity"),
    ],
)  # fmt: skip
def test_what_is_refused(solution: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(CaseError, match=said):
        load(solution=solution, **more)


@pytest.mark.slow
@pytest.mark.parametrize(("last", "told"), [(101.0, True), (300.0, False)])
def test_a_solution_beyond_its_table_is_told(last: float, told: bool) -> None:
    """The anode enriches the solution beside it."""
    model = load(
        solution={**TABLE, "concentration": [10.0, last]}, voltage=None, current=1.0, time={"end": 600, "every": 300}
    )
    with Engine(model.layouts("slabs", 1)) as engine:
        result = drive(model, engine, model.steps or 0)
    texts = [finding.text for finding in result.findings]
    assert any("properties of the solution are not known" in text and "Cu 101 mol/m3" in text for text in texts) == told
    assert result.observables["greatest_concentration"] > 101.0

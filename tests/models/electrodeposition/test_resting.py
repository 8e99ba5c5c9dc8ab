"""Half cells at metals in acid baths: the path of the composition against differences of whole equilibria."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from minga.compile.numpy import BoundArray, evaluate
from minga.lang.cell import CellReader
from minga.lang.expr import as_node
from minga.lang.kernel import FieldType, Kernel, Signature
from minga.lang.types import as_dtype
from minga.models.electrodeposition.electrolytes import bath
from minga.models.electrodeposition.equilibrium import Equilibrium, equilibrium_of
from minga.models.electrodeposition.problem import Constants, Species

from ...acid_baths import MOBILE, TOTALS, forms, path

Floats = NDArray[np.float64]
METAL = np.array([1e-6, 1e-3, 0.1, 0.3])
ACID = np.array([1e-3, 0.02, 0.5])


def solution_of(metal: bool) -> Equilibrium:
    """Copper sulphate with acid, or acid alone."""
    species = bath("CuSO4", 100.0, "H2SO4", 20.0)
    species = tuple(s for s in species if metal or s.name != "Cu")
    if not metal:
        species = tuple(Species(s.name, s.charge, s.diffusivity, {"H": 40.0, "SO4": 20.0}[s.name]) for s in species)
    found = equilibrium_of(species, Constants())
    assert found is not None
    return found


def beside(
    metal: Floats, hydrogen: Floats, name: str, solution: Equilibrium, left: float | None = None
) -> tuple[Floats, Floats]:
    """Return the change of the potential at the edge by ln(c_e/c), and the ratio of the flux, of one ion at a metal."""
    part = None if left is None else as_node(left)
    known = [forms(m, h, m + 0.5 * h) for m, h in zip(metal, hydrogen, strict=True)]
    c = np.array([base for base, _ in known]).T
    whole = {"Cu": metal, "H": hydrogen, "SO4": metal + 0.5 * hydrogen}
    free = np.divide(c[0], metal, out=np.ones_like(metal), where=metal > 0)
    fields = [free, c[1] / hydrogen, c[2] / whole["SO4"], c[3] / whole["SO4"], np.array([i for _, i in known])]
    totals = [1e3 * whole[n] for n in solution.names]
    results = [np.empty(metal.shape) for _ in range(2)]

    def ratios(values: list[CellReader], totals: list[CellReader], edge: CellReader, moved: CellReader) -> None:
        found = solution.beside(solution.names.index(name), [v[0] for v in values], [t[0] for t in totals])
        edge[0], moved[0] = found.to_edge(1.0, part), found.moved(1.0)

    one = FieldType(as_dtype("f8"), (0,))
    graph = Kernel(ratios).graph(Signature(1, ((one,) * len(fields), (one,) * len(totals), one, one)))
    arrays = [*fields, *totals, *results]
    evaluate(graph, ((0,), metal.shape), [BoundArray(np.ascontiguousarray(a), (0,)) for a in arrays])
    return results[0], results[1]


@pytest.mark.parametrize(("name", "number", "charge"), [("Cu", 0, 2), ("H", 1, 1)])
def test_the_path_is_that_of_whole_equilibria(name: str, number: int, charge: int) -> None:
    metal, hydrogen = (grid.ravel() for grid in np.meshgrid(METAL, 2 * ACID))
    edge, moved = beside(metal, hydrogen, name, solution_of(metal=True))
    assert_paths(edge, moved, metal, hydrogen, number, charge)


def test_pure_acid_has_a_path_too() -> None:
    hydrogen = 2 * ACID
    edge, moved = beside(0.0 * hydrogen, hydrogen, "H", solution_of(metal=False))
    assert_paths(edge, moved, 0.0 * hydrogen, hydrogen, 1, 1)


def test_the_last_copper_leaves_acid_as_it_is() -> None:
    hydrogen = 2 * ACID
    for metal in (0.0, 1e-12):
        edge, moved = beside(metal + 0.0 * hydrogen, hydrogen, "Cu", solution_of(metal=True))
        assert edge == pytest.approx(0.0, abs=1e-8)
        assert moved == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize(("metal", "hydrogen"), [(0.013, 0.0475), (0.03, 0.046), (0.05, 0.98)])
def test_the_way_to_an_edge_with_little_copper(metal: float, hydrogen: float) -> None:
    """By steps of the middle; the tangent would be wrong by 50 to 150 %."""
    left, steps = 0.005 / metal, 5
    edge, _ = beside(np.array([metal]), np.array([hydrogen]), "Cu", solution_of(metal=True), left)
    logs, whole, h = np.linspace(math.log(metal), math.log(0.005), steps + 1), 0.0, hydrogen
    for low, high in itertools.pairwise(logs):
        start, by = path(math.exp(low), h), float(high - low)
        middle = path(math.exp(0.5 * float(low + high)), h + 0.5 * by * float(start.totals[1]))
        whole += by * (2.0 * middle.potential + middle.activity - 1.0)
        h += by * float(middle.totals[1])
    assert edge[0] * math.log(left) == pytest.approx(whole, rel=3e-2)


def assert_paths(edge: Floats, moved: Floats, metal: Floats, hydrogen: Floats, number: int, charge: int) -> None:
    """Assert that these are the ratios of the paths on which the other totals rest."""
    for found, ratio, m, h in zip(edge, moved, metal, hydrogen, strict=True):
        c, _ = forms(m, h, m + 0.5 * h)
        at = path(m, h, number)
        mean = (MOBILE * TOTALS[number] * c).sum() / (TOTALS[number] * c).sum()
        assert found == pytest.approx(charge * at.potential + at.activity - 1.0, rel=1e-7, abs=1e-9)
        assert (1.0 + ratio) * mean == pytest.approx(at.diffusivity, rel=1e-8)

"""Errors of the current due to the mesh, and adapted meshes: against solutions on much finer ones."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest

from minga.case.load import load_model, read_settings
from minga.case.settings import GridSettings
from minga.errors import CaseError
from minga.models.photodiode.adaptation import adapted, estimate, measured
from minga.models.photodiode.case_layers import meshes_of_case, stack_of
from minga.models.photodiode.prolongation import prolonged
from minga.models.photodiode.solver.changes import Changes
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.build import device_from
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.mesh import Mesh, graded, split, uniform
from minga.models.photodiode.structure.stack import Stack
from minga.models.photodiode.varied import Varied

from .photodiodes import EXAMPLES, merged, solved, table
from .test_photodiode_slopes import COARSE, avalanche, frozen, lowered, surfaces, tunnelling

FORWARD, REVERSE, LIT = Problem((0.5,)), Problem((-1.0,)), Problem((2.0,), ("lit",))


def start(name: str) -> tuple[Mesh, Stack]:
    """A coarse mesh, and the device without a mesh."""
    tables = {
        "si-1": merged(table("si-1"), {"mesh": COARSE}), "msm": merged(table("msm"), {"mesh": {"nodes": 41}}),
        "apd": avalanche(), "tunnelling": tunnelling(), "surfaces": surfaces(), "frozen": frozen(),
        "lowered": lowered(mesh={"nodes": 41}),
    }  # fmt: skip
    settings = read_settings("photodiode", tables[name])
    stack = stack_of(settings, EXAMPLES)
    (mesh,) = meshes_of_case(settings, stack)
    return mesh, stack


def halved(mesh: Mesh, times: int) -> Mesh:
    """The mesh with all distances divided by two; only for devices whose boundaries lie on nodes."""
    return split(mesh, np.full(mesh.lengths.size, 2**times))


def current(device: Device, problem: Problem) -> float:
    return float(solved(device, problem)[-1]["J_lit" if problem.curves == ("lit",) else "J"])


def test_a_divided_mesh() -> None:
    mesh = graded([0.0, 1e-4, 2e-4], 1e-6, 1.3, 1e-5, [False, True, False], [False, True, False])
    parts = np.ones(mesh.lengths.size, np.int64)
    parts[[0, 3]] = 2, 3
    found = split(mesh, parts)
    assert found.nodes.size == mesh.nodes.size + 3
    assert np.diff(found.nodes) == pytest.approx(found.lengths, rel=1e-9)
    assert found.lengths[:2] == pytest.approx(mesh.lengths[0] / 2, rel=1e-15)
    assert set(mesh.nodes) <= set(found.nodes)
    assert found.volumes.sum() == pytest.approx(2e-4, rel=1e-14)


@pytest.mark.slow
def test_currents_of_a_prolonged_solution_are_those_of_the_solution() -> None:
    """From plane to plane, with an offset between materials, and where levels change by many kT/q."""
    mesh, stack = start("apd")
    device = device_from(stack, mesh)
    problem = Problem((-5.0,), ionisation=False)
    (solution,) = Changes(device, problem).solution()
    parts = np.where(np.arange(mesh.lengths.size) % 2 == 0, 2, 3)
    finer = device_from(stack, split(mesh, parts))
    potential, electron, hole = prolonged(solution.state, parts, finer)
    at = np.concatenate(([0], np.cumsum(parts)))
    for old, new in zip(solution.state, (potential, electron, hole), strict=True):
        assert np.array_equal(new[at], old)
    for level, theta, mobility, sign in (
        (electron, finer.theta_n, finer.mobility_n, 1.0), (hole, finer.theta_p, finer.mobility_p, -1.0)
    ):  # fmt: skip
        height = sign * (potential + theta)
        drift = np.diff(height)
        weight = np.where(np.abs(drift) < 1e-12, 1.0, drift / np.expm1(np.where(np.abs(drift) < 1e-12, 1.0, drift)))
        mobile = 0.5 * (mobility[1:] + mobility[:-1]) / finer.lengths[0][1:-1]
        # exp(height - sign level) is the density: its flux of Scharfetter and Gummel.
        carried = mobile * np.exp(height[1:] - sign * level[1:]) * weight
        flux, known = carried * np.expm1(sign * np.diff(level)), 1e-15 * carried * np.abs(level).max()
        for cell in range(parts.size):
            own = slice(at[cell], at[cell + 1])
            assert flux[own] == pytest.approx(flux[own][0], rel=1e-9, abs=known[own].max()), cell


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "problem", "halvings"), [("si-1", FORWARD, 0), ("si-1", REVERSE, 1), ("msm", LIT, 0), ("apd", None, 1)]
)
def test_the_estimate_is_the_error(name: str, problem: Problem | None, halvings: int) -> None:
    problem = problem or Problem((-60.0,))
    mesh, stack = start(name)
    if name == "apd":  # three materials: boundaries stay between nodes if distances are divided by three
        mesh, fine = split(mesh, np.full(mesh.lengths.size, 3)), split(mesh, np.full(mesh.lengths.size, 27))
    else:
        mesh, fine = halved(mesh, halvings), halved(mesh, halvings + 5)
    found = estimate((mesh,), stack, problem)
    seen = current(device_from(stack, mesh), problem)
    assert found.currents == pytest.approx((seen,), rel=1e-9)
    true = current(device_from(stack, fine), problem) / seen - 1.0
    assert found.errors[0].shape == (1, mesh.lengths.size)
    assert 1 / 2 < found.errors[0].sum() / true < 2, (found.errors[0].sum(), true)
    assert found.relative == abs(found.errors[0].sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "problem", "times"),
    [
        ("surfaces", FORWARD, 2), ("frozen", Problem((0.7,)), 2), ("lowered", Problem((2.0,)), 2),
        ("apd", Problem((-56.0,), ("lit",)), 3), ("apd", Problem((-60.0,), ("lit",)), 3),
    ],
)  # fmt: skip
def test_the_estimated_and_measured_error_is_not_too_small(name: str, problem: Problem, times: int) -> None:
    """Also where the barrier at a contact follows the field, which makes the error one of first order."""
    mesh, stack = start(name)
    fine = split(mesh, np.full(mesh.lengths.size, 27 if times == 3 else 32))
    found = measured(estimate((mesh,), stack, problem), (mesh,), stack, problem)
    true = current(device_from(stack, fine), problem) / found.currents[0] - 1.0
    assert 0.8 < found.relative / abs(true) < 4.0, (found.relative, found.measured, true)


@pytest.mark.slow
def test_an_estimate_that_is_small_by_chance_does_not_end_the_adaptation() -> None:
    """Contributions of both signs cancel to 5e-4, where the currents differ by 1 % from those on a finer mesh."""
    mesh, stack = start("tunnelling")
    problem = Problem((-20.0,))
    first = estimate((mesh,), stack, problem)
    assert first.relative < 1e-3
    found = adapted((mesh,), stack, problem, 5e-3, 3000)
    assert found.meshes[0].nodes.size > mesh.nodes.size
    assert found.found.relative <= 5e-3
    exact = current(device_from(stack, split(mesh, np.full(mesh.lengths.size, 27))), problem)
    assert abs(exact / found.found.currents[0] - 1.0) < 5e-3
    assert abs(exact / first.currents[0] - 1.0) > 1e-2


@pytest.mark.slow
def test_carriers_that_drift_fast_are_prolonged_without_round_off() -> None:
    """Each distance drops 50 kT/q at -60 V: shares of it next to 0 and 1 both matter; otherwise contributions of 10 %
    of the current appear at every node.
    """
    mesh, stack = start("apd")
    found = estimate((mesh,), stack, Problem((-60.0,), ("lit",)))
    device = device_from(stack, mesh)
    mult = next(layer for layer in device.layers if layer.name == "Mult")
    inside = found.errors[0][0, mult.first + 2 : mult.last - 2]
    assert np.abs(inside).max() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(("name", "problem", "error"), [("si-1", FORWARD, 1e-4), ("si-1", REVERSE, 1e-3)])
def test_an_adapted_mesh_has_fewer_nodes(name: str, problem: Problem, error: float) -> None:
    mesh, stack = start(name)
    exact = current(device_from(stack, halved(mesh, 7)), problem)
    found = adapted((mesh,), stack, problem, error, 5000)
    assert abs(exact / current(device_from(stack, found.meshes[0]), problem) - 1.0) <= 1.2 * error
    assert found.found.relative <= error
    assert set(mesh.nodes) <= set(found.meshes[0].nodes)
    ratios = found.meshes[0].lengths[1:] / found.meshes[0].lengths[:-1]
    assert 0.3 < ratios.min() < ratios.max() < 3.1
    for even in (uniform(float(mesh.nodes[-1]), 3 * found.meshes[0].nodes.size), halved(mesh, 1)):
        assert abs(exact / current(device_from(stack, even), problem) - 1.0) > error, even.nodes.size


@pytest.mark.slow
def test_offsets_between_materials_stay_between_nodes() -> None:
    mesh, stack = start("apd")
    found = adapted((mesh,), stack, Problem((-60.0,)), 3e-3, 5000)
    assert found.meshes[0].nodes.size > mesh.nodes.size
    devices = (device_from(stack, own) for own in (mesh, found.meshes[0]))
    for before, after in zip(*(one.layers[1:] for one in devices), strict=True):
        places = []
        for nodes, layer in ((mesh.nodes, before), (found.meshes[0].nodes, after)):
            low, high = nodes[layer.first - 1], nodes[layer.first]
            places.append((layer.start - low) / (high - low))
        assert places[1] == pytest.approx(places[0], abs=1e-6)


@pytest.mark.slow
def test_a_boundary_next_to_the_first_node() -> None:
    """The first layer has a single node, so that the boundary lies in the first of all distances."""
    layers = [{"material": "Si", "thickness": 0.02, "p": 1e16}, {"material": "Si", "thickness": 1.5, "n": 1e15}]
    said = {"contacts": {"anode": "ohmic", "cathode": "ohmic"}, "bias": [-0.5], "mesh": {"nodes": 31}, "layers": layers}
    settings = read_settings("photodiode", said)
    stack = stack_of(settings, EXAMPLES)
    (mesh,) = meshes_of_case(settings, stack)
    found = adapted((mesh,), stack, Problem((-0.5,)), 3e-2, 100)
    assert found.found.relative <= 3e-2
    assert found.meshes[0].nodes.size > mesh.nodes.size
    assert found.meshes[0].nodes[1] == pytest.approx(mesh.nodes[1] / 3, rel=1e-12)


def model(**changes: Any) -> Any:
    said = copy.deepcopy(merged(table("si-1"), {"mesh": COARSE} | changes))
    return load_model("photodiode", {"photodiode": said}, GridSettings(), EXAMPLES)


@pytest.mark.slow
def test_a_case_with_an_adapted_mesh() -> None:
    made = model(bias=[0.0, 0.5], mesh=COARSE | {"adapt": {"error": 1e-2}})
    assert re.fullmatch(
        r"6\d nodes after \d solutions; the mesh changes J at 0.5 V by about 0.00\d+ of it",
        dict(made.notes)["adaptation"],
    )
    assert 60 <= made.grid.shape[0] < 70
    few = dict(model(bias=[0.5], mesh=COARSE | {"adapt": {"error": 1e-6, "most": 80}}).notes)["adaptation"]
    assert few.endswith("of it, more than 1e-06: allow more nodes than 80 (most)")
    assert "adaptation" not in dict(model(bias=[0.5]).notes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scheme": "gummel"}, "with scheme = 'gummel'"),
        ({"width": 2.0, "columns": 2}, "with columns, whose outermost nodes are not at the ends"),
        ({"bias": None, "current": [1e-3]}, "with imposed currents"),
        ({"bias": [0.5, 0.0]}, "where no current flows"),
        ({"mesh": {"adapt": {"error": 0.0}}}, "photodiode.mesh.adapt.error"),
        ({"mesh": {"adapt": {"error": "small"}}}, "photodiode.mesh.adapt.error"),
        ({"mesh": {"adapt": {"most": 2}}}, "photodiode.mesh.adapt.most"),
        ({"mesh": {"adapt": {"errors": 1e-2}}}, "unknown key 'photodiode.mesh.adapt.errors'"),
    ],
)
def test_what_cannot_be_adapted_is_refused(changes: dict[str, Any], words: str) -> None:
    changes = {"mesh": {"adapt": {"error": 1e-2}}} | changes
    said = {k: v for k, v in (merged(table("si-1"), {"bias": [0.5]}) | changes).items() if v is not None}
    with pytest.raises(CaseError, match=re.escape(words)):
        load_model("photodiode", {"photodiode": said}, GridSettings(), EXAMPLES)


def test_a_device_that_varies_has_no_adapted_mesh() -> None:
    with pytest.raises(CaseError, match="the mesh must move along with the device"):
        Varied(table("si-1") | {"mesh": {"adapt": {}}}, ["layers.p.p"])([1e17])


def test_a_search_for_breakdown_has_no_voltages_to_derive_currents_at() -> None:
    search = {name: value for name, value in table("pin-inp").items() if name != "bias"} | {"mode": "breakdown"}
    with pytest.raises(CaseError, match="chooses its voltages during a run"):
        _ = Varied(search, ["temperature"]).problem

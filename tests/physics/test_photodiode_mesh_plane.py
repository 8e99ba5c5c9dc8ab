"""Adapted meshes with two axes: against one axis, and the estimate against solutions on finer meshes."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.load import load_model, read_settings
from minga.case.settings import GridSettings
from minga.engine.comm import Comm
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.photodiode.adaptation import adapted, estimate, halved, measured
from minga.models.photodiode.case import problem_of
from minga.models.photodiode.case_layers import meshes_of_case, stack_of
from minga.models.photodiode.solver.changes import Changes
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.build import device_from
from minga.models.photodiode.structure.mesh import Mesh, split
from minga.models.photodiode.structure.stack import Stack
from minga.models.photodiode.transients.model import transient
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.waveform import Waveform
from minga.output.checkpoint.keeper import Checkpointing

from .adapted_planes import DEVICES, PIN, ROUND
from .photodiodes import EXAMPLES, merged, table
from .test_photodiode_slopes import COARSE
from .transients import PHYSICS, interrupted, loaded

Meshes = tuple[Mesh, ...]
ACROSS = {"first": "200 nm", "growth": 2.0, "cap": "1 um"}


def start(said: dict[str, Any]) -> tuple[Meshes, Stack, Problem]:
    """Coarse meshes, the device without a mesh, and its problem."""
    settings = read_settings("photodiode", said)
    stack = stack_of(settings, EXAMPLES)
    return meshes_of_case(settings, stack), stack, problem_of(settings)


def current(meshes: Meshes, stack: Stack, problem: Problem) -> float:
    (found,) = Changes(device_from(stack, *meshes), problem).solution()
    return found.current


def model(**changes: Any) -> Model:
    said = merged(merged(PIN, {"mesh": {"adapt": {"error": 0.2}}}), changes)
    return load_model("photodiode", {"photodiode": said}, GridSettings(), EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", ["plane", "cylinder"])
def test_a_device_that_is_uniform_across_has_the_lines_of_one_axis(symmetry: str) -> None:
    said = merged(table("si-1"), {"mesh": COARSE, "bias": [0.5]})
    wide = merged(said, {"width": 2.0, "symmetry": symmetry, "mesh": {"across": ACROSS}})
    found = []
    for own in (said, wide):
        meshes, stack, problem = start(own)
        found.append((meshes, adapted(meshes, stack, problem, 5e-3, 5000)))
    (_, line), (first, plane) = found
    assert line.meshes[0].nodes.size > first[0].nodes.size
    assert np.array_equal(plane.meshes[0].nodes, line.meshes[0].nodes)
    assert np.array_equal(plane.meshes[1].nodes, first[1].nodes)
    assert plane.rounds == line.rounds
    assert plane.found.currents == pytest.approx(line.found.currents, rel=1e-10)
    assert plane.found.relative == pytest.approx(line.found.relative, rel=1e-6)
    assert np.abs(plane.found.errors[1]).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pin", "round", "polygon"])
def test_contributions_of_each_axis_are_the_difference_to_the_mesh_that_is_finer_along_it(name: str) -> None:
    """After one level of halving, where the linearisation holds; errors are 2 times the difference in these devices."""
    meshes, stack, problem = start(DEVICES[name])
    meshes = halved(meshes, stack)
    found = estimate(meshes, stack, problem)
    everywhere = measured(found, meshes, stack, problem).measured
    total = sum(float(own.sum()) for own in found.errors)
    assert total == pytest.approx(float(everywhere[0]), rel=0.4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "error", "nodes"), [("pin", 1e-2, 1450), ("round", 6e-4, 1518), ("polygon", 1.5e-2, 1326)]
)
def test_an_adapted_mesh_reaches_the_error_with_fewer_nodes(name: str, error: float, nodes: int) -> None:
    """Compare the current with that on a mesh three times as fine along both axes."""
    meshes, stack, problem = start(DEVICES[name])
    found = adapted(meshes, stack, problem, error, 6000)
    count = math.prod(mesh.nodes.size for mesh in found.meshes)
    assert count == nodes
    assert found.found.relative <= error
    exact = current(tuple(split(mesh, np.full(mesh.lengths.size, 3)) for mesh in found.meshes), stack, problem)
    true = abs(exact / found.found.currents[0] - 1.0)
    assert true <= found.found.relative
    even = halved(meshes, stack)
    assert math.prod(mesh.nodes.size for mesh in even) > count
    assert abs(exact / current(even, stack, problem) - 1.0) > true
    for before, after in zip(meshes, found.meshes, strict=True):
        assert all(np.isclose(after.nodes, place, rtol=1e-12, atol=0.0).any() for place in before.nodes)


@pytest.mark.slow
def test_a_case_with_two_axes_says_what_the_mesh_does() -> None:
    made = model()
    rows, columns = made.grid.shape
    assert re.fullmatch(
        rf"{rows} x {columns} = [\d,]+ nodes after \d solutions; the mesh changes J at -2 V by about 0.1\d* of it",
        dict(made.notes)["adaptation"],
    )
    few = dict(model(mesh={"adapt": {"error": 1e-4, "most": 500}}).notes)["adaptation"]
    assert re.search(r"^25 x 18 = 450 nodes .* more than 0.0001: allow more nodes than 500 \(most\)$", few)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode", [{"mode": "cv"}, {"mode": "ac", "ac": {"frequencies": [1e6]}}, {"mode": "noise", "light": ROUND["light"]}]
)
def test_other_modes_run_on_an_adapted_mesh_with_the_same_bits_on_ranks(mode: dict[str, Any]) -> None:
    made = model(**mode)

    def work(comm: Comm) -> list[bytes]:
        with mg.Engine(made.layouts("slabs", comm.size), comm=comm, threads=1) as engine:
            for slot, value in made.start_values():
                engine.set(slot, value)
            for register, number in made.registers.items():
                engine.write(register, number)
            assert engine.run(made.step).ok
            assert made.observe is not None
            engine.run(made.observe)
            whole = [engine.gather(made.field(name)) for name in made.output]
            return [b"" if item is None else np.asarray(item).tobytes() for item in whole]

    single = mg.run_virtual(1, work)[0]
    assert mg.run_virtual(2, work)[0] == single
    assert made.grid.shape == model(**mode).grid.shape


@pytest.mark.slow
@pytest.mark.parametrize("linear", ["sparse", "krylov"])
def test_the_same_bits_after_an_interruption(linear: str, tmp_path: Path) -> None:
    """A checkpoint after the second voltage of three, of a device in light on an adapted mesh."""
    changes = {"symmetry": "cylinder", "linear": linear, "curves": ["dark", "lit"], "light": ROUND["light"]}
    made = model(**changes, bias=[0.0, -1.0, -2.0])
    whole = mg.run(made)
    kept: dict[str, Any] = {"out": tmp_path / "run", "checkpoint": Checkpointing(steps=2, at_end=True)}
    mg.run(made, steps=2, **kept)
    rest = mg.run(model(**changes, bias=[0.0, -1.0, -2.0]), resume=True, **kept)
    assert rest.attrs["digest"] == whole.attrs["digest"]
    for name in ("V", "J", "J_lit", "uniformity"):
        assert rest[name].values.tobytes() == whole[name].values.tobytes()
    assert whole["V"].values.tolist()[-3:] == [0.0, -1.0, -2.0]


@pytest.mark.slow
def test_a_transient_has_the_same_bits_after_an_interruption(tmp_path: Path) -> None:
    """The device has a ring as its anode, an adapted mesh, and a load."""
    meshes, stack, problem = start(ROUND)
    device = device_from(stack, *adapted(meshes, stack, problem, 0.2, 5000).meshes)
    light = Waveform((1e-12, 1e-12), (0.0, 1.0))
    made = transient(
        device, PHYSICS, Transient(4e-12, Waveform((0.0,), (-2.0,)), light, loaded(5e-5), tolerance=0.05, first=1e-14)
    )
    interrupted(made, tmp_path / "run", every=5, steps=12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"contacts": {"cathode": {"at": "top", "y": [8.0, 12.0]}}}, "with contacts on the same side"),
        ({"mesh": {"graded": None, "spacing": 0.5}}, "with two axes and rows of a spacing"),
        ({"mesh": {"across": None}, "columns": 6}, "with columns, whose outermost nodes are not at the ends"),
    ],
)
def test_what_cannot_be_adapted_with_two_axes_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CaseError, match=re.escape(words)):
        model(**changes)

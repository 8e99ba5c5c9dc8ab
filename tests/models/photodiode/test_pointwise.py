"""The pointwise scheme: its iterations, its fixed point, and its bits on any layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import minga as mg
from minga.engine.begin import start
from minga.engine.engine import Engine
from minga.errors import CaseError, LayoutError
from minga.models.photodiode.bands import with_bands
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.pointwise.scheme import Pointwise, pointwise
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device
from minga.plan.balance import Balancer, RankTimes
from minga.plan.planner import make_plan
from minga.plan.work.recorded import work_of
from minga.studies.bounanos.cuts import equal
from minga.studies.bounanos.workload import paper_device, profile, solve
from rank_groups import group_of
from thinned import thinned

from .pointwise_runs import cut, found, run, same, started

ENDS = (0, 20, 50, 60, 91)
"""Segments of the mesh of 91 nodes."""


@pytest.fixture(scope="module")
def device() -> Device:
    return paper_device(20)


def short(device: Device, how: Pointwise, voltage: float = -5.0, *, ionisation: bool = False) -> mg.Model:
    """The model of a few iterations, lit."""
    return pointwise(device, Problem((voltage,), ("lit",), ionisation), replace(how, limit=60))


@pytest.mark.slow
def test_iterations_are_those_of_the_reference(device: Device) -> None:
    assert solve(device, -60.0, "dark", Pointwise()).iterations == 3179


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coarsen", "curve", "expected"), [(10, "dark", 11604), (10, "lit", 11612), (5, "dark", 42178)]
)
def test_iterations_grow_with_the_square_of_the_nodes(coarsen: int, curve: str, expected: int) -> None:
    """Rounding of the elementary functions shifts the last of many iterations by a few."""
    seen = solve(paper_device(coarsen), -60.0, curve, Pointwise()).iterations  # type: ignore[arg-type]
    assert abs(seen - expected) <= 2e-4 * expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("segments", "expected"), [(2, 11822), (4, 11842), (8, 12088), (16, 12553), (37, 13780), (91, 16905), (181, 22088)]
)
def test_old_boundaries_cost_iterations(segments: int, expected: int) -> None:
    ends = tuple(equal(182, segments).tolist())
    seen = solve(paper_device(10), -60.0, "lit", Pointwise(segments=ends)).iterations
    assert abs(seen - expected) <= 4e-4 * expected


@pytest.mark.slow
def test_over_relaxation_saves_iterations(device: Device) -> None:
    assert solve(device, -60.0, "dark", Pointwise(weight=1.5)).iterations < 0.55 * 3179


@pytest.mark.slow
def test_inner_sweeps_save_iterations(device: Device) -> None:
    assert solve(device, -60.0, "dark", Pointwise(inner_sweeps=20)).iterations < 0.1 * 3179


@pytest.mark.slow
def test_the_solution_is_that_of_newtons_method(device: Device) -> None:
    model = photodiode(device, Problem((-60.0,), ("dark",), ionisation=False))
    with started(model, cut(model, (0, 91), 1)) as engine:
        assert engine.run(model.step).ok
        newton = found(engine, model)
    ours = solve(device, -60.0, "dark", Pointwise()).fields
    for name in ("potential", "electron_level", "hole_level"):
        assert np.abs(ours[name] - newton[name]).max() < 2e-4  # V
    assert np.abs(ours["field"] - newton["field"]).max() < 1e-5 * np.abs(newton["field"]).max()


@pytest.mark.slow
@pytest.mark.parametrize("segments", thinned([((0, 10, 91),), (tuple(range(92)),)], ((0, 10, 91),)))
def test_the_solution_does_not_depend_on_segments(device: Device, segments: tuple[int, ...]) -> None:
    one, several = (solve(device, -60.0, "dark", Pointwise(segments=s)) for s in (None, segments))
    assert several.iterations >= one.iterations  # a cut where carriers hold the potential costs nothing
    assert np.abs(one.fields["potential"] - several.fields["potential"]).max() < 1e-3


@pytest.mark.slow
def test_exact_sweeps_have_the_bits_of_one_process(device: Device) -> None:
    model = short(device, Pointwise(), -60.0, ionisation=True)
    alone = run(model)
    assert same(alone, run(model, ENDS, 3))
    assert same(alone, run(model, (0, 45, 91), 2))


@pytest.mark.slow
def test_segments_have_the_same_bits_on_all_layouts(device: Device) -> None:
    """With cuts where segments end, blocks need not wait for one another, however many a rank has."""
    alone = run(short(device, Pointwise(segments=ENDS), -60.0, ionisation=True))
    model = short(device, Pointwise(segments=ENDS, across="block"), -60.0, ionisation=True)
    assert same(alone, run(model, ENDS, 4))
    assert same(alone, run(model, ENDS, 2))
    assert not same(alone, run(short(device, Pointwise(), -60.0, ionisation=True)))


TENS = (*range(0, 90, 10), 91)


@pytest.fixture(scope="module")
def segmented(device: Device) -> mg.Model:
    """As a case has it, with bands."""
    return with_bands(short(device, Pointwise(segments=TENS, across="block")), device, ("lit",))


@pytest.mark.slow
def test_words_and_plans_cut_rows_where_segments_end(segmented: mg.Model) -> None:
    layouts = [segmented.layouts(word, 3)[segmented.grid] for word in ("slabs", "blocks:2", "bisection", "cartesian")]
    layouts += [make_plan(work_of(segmented), group_of("1x3", speeds)).layout for speeds in ([1e3], [3e3, 1e3, 2e3])]
    assert all(set(layout.cuts[0]) <= set(TENS) for layout in layouts)
    assert layouts[0].cuts == ((0, 30, 60),)
    assert same(run(segmented), run(segmented, (*layouts[0].cuts[0], 91), 3))


def test_a_balancer_moves_cuts_to_where_segments_end(segmented: mg.Model) -> None:
    balancer = Balancer(work_of(segmented), group_of("1x3", [1e3]), every=10)
    layout, pace = cut(segmented, (0, 30, 60, 91), 3)[segmented.grid], np.array([1.0, 7.0, 2.0])
    moved = []
    for _ in range(8):
        seconds = pace * layout.cells()
        proposal = balancer.decide(layout, RankTimes(seconds, {}, float(seconds.max()), 10), 100_000)
        if proposal is not None:
            layout = proposal.layout
            moved.append(layout.cuts[0])
    assert moved
    assert all(set(cuts) <= set(TENS) for cuts in moved)


def test_other_cuts_of_segmented_rows_are_refused(device: Device) -> None:
    model = short(device, Pointwise(segments=ENDS, across="block"))
    with Engine(cut(model, (0, 45, 91), 1), threads=1) as engine, pytest.raises(LayoutError, match="'x' at 45"):
        start(model, engine)
    with_sums = short(device, Pointwise(segments=(0, 20, 64, 91), across="block", test="paper"))
    assert with_sums.places == ((64,),)
    assert short(device, Pointwise(segments=ENDS)).places == (None,)


@pytest.mark.slow
def test_blocks_migrate_without_a_trace(device: Device) -> None:
    """Many blocks a rank, dealt out anew half-way."""
    how = Pointwise(segments=ENDS, across="block", limit=60)
    model = pointwise(device, Problem((-5.0, -6.0), ("lit",), ionisation=False), how)

    def body(move: bool) -> object:
        def on(comm: mg.Comm) -> object:
            with started(model, cut(model, ENDS, 2), comm) as engine:
                engine.run(model.step)
                if move:
                    layouts = cut(model, (0, 20, 50, 91), 2)
                    engine.relayout(layouts)
                    engine.relayout(cut(model, ENDS, 2))
                engine.run(model.step)
                return found(engine, model)

        return mg.run_virtual(2, on)[0]

    assert same(body(False), body(True))  # type: ignore[arg-type]


@pytest.mark.slow
def test_synthetic_cost_changes_nothing_but_the_cost(device: Device) -> None:
    plain = run(short(device, Pointwise()))
    slow = run(short(device, Pointwise(cost="synthetic", heavy=(60, 66), growth=4.0, expected=60)))
    steps, more = plain.pop("newton_steps_lit"), slow.pop("newton_steps_lit")
    assert same(plain, slow)
    light = np.ones(91, bool)
    light[60:66] = False
    assert (steps[light] == more[light]).all()
    assert (more[60:66] > 5 * steps[60:66]).all()
    # exp(4 (2 k/60 - 1)) from half of 60 iterations on: seven times on average, more where early ones were few.
    assert (more[60:66] < 8 * steps[60:66]).all()


@pytest.mark.parametrize(
    ("test", "fewest"),
    [
        pytest.param("residual", 2000, marks=pytest.mark.slow),
        pytest.param("paper", 2000, marks=pytest.mark.slow),
        pytest.param("current", 3179, marks=pytest.mark.slow),
    ],
)
def test_other_tests_of_convergence(device: Device, test: str, fewest: int) -> None:
    found_ = solve(device, -60.0, "dark", Pointwise(test=test))  # type: ignore[arg-type]
    assert found_.iterations >= fewest
    assert abs(found_.fields["field"][30] - solve(device, -60.0, "dark", Pointwise()).fields["field"][30]) < 1.0


def test_a_current_of_rounding_only_is_even(device: Device) -> None:
    """Without a voltage currents differ by what rounding makes of them, which no iteration makes less."""
    how = Pointwise(test="current", limit=5000)
    plain = solve(device, 0.0, "dark", Pointwise(limit=5000)).iterations
    assert plain <= solve(device, 0.0, "dark", how).iterations < plain + 10


@pytest.mark.slow
def test_rows_with_mobile_charge_in_a_small_gap_cost_most(device: Device) -> None:
    layers = profile(device, -5.0, "lit", Pointwise(), 2000, 8).of_layers(device)
    assert layers["Absorp"][-1] == pytest.approx(2.0, abs=0.05)
    assert layers["Hole"][-1] == pytest.approx(2.0, abs=0.05)
    assert all(layers[name][-1] < 1.5 for name in ("Inp1", "Mult", "Charge", "Doping", "Inp2"))


def test_too_few_iterations_name_a_layer(device: Device) -> None:
    model = short(device, Pointwise())
    with started(model, cut(model, (0, 91), 1)) as engine:
        assert engine.run(model.step).reason == "limit"
        assert model.explain is not None
        error = model.explain(engine)
    assert "60 iterations" in str(error)
    assert any(layer.name in str(error) for layer in device.layers)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"directions": (1, 0, 1)}, "directions"),
        ({"weight": 2.5}, "weight"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"inner_sweeps": 0}, "inner_sweeps"),
        ({"segments": (0, 50, 40, 91)}, "91 nodes"),
        ({"segments": (0, 92)}, "91 nodes"),
        ({"heavy": (60, 95)}, "heavy nodes 60 to 95"),
    ],
)
def test_wrong_options_are_refused(device: Device, options: dict[str, object], words: str) -> None:
    with pytest.raises(CaseError, match=words):
        pointwise(device, Problem((-1.0,)), Pointwise(**options))  # type: ignore[arg-type]


def test_what_it_does_not_solve_is_refused(device: Device) -> None:
    for other in (replace(device, statistics="fermi-dirac"), replace(device, field_mobility=True)):
        with pytest.raises(CaseError, match="pointwise scheme does not solve"):
            pointwise(other, Problem((-1.0,)))
    with pytest.raises(CaseError, match="gain"):
        pointwise(device, Problem((-1.0,), ("dark", "lit"), gain=True))
    with pytest.raises(CaseError, match="capacitance"):
        pointwise(device, Problem((-1.0,), quasistatic_capacitance=True))
    with pytest.raises(CaseError, match="imposed current"):
        pointwise(device, Problem(current=(-1e-6,)))

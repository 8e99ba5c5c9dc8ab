"""Deposits that grow: what is deposited, where, what becomes of the ions, and that nothing depends on the ranks."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.begin import start as begin_with
from minga.engine.comm import Comm, run_virtual
from minga.engine.model import Model
from minga.engine.observables import observe
from minga.engine.program import Program
from minga.engine.state import state_of
from minga.errors import CaseError
from minga.models.electrodeposition.deposits import first_deposit
from minga.models.electrodeposition.groups import Salt, charge_balance
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import (
    ANODE,
    CATHODE,
    FLUID,
    INSULATOR,
    Electrode,
    Growth,
    Problem,
    Reversible,
    Species,
    Steps,
)
from minga.models.electrodeposition.race import Race, look_at_cell
from minga.models.electrodeposition.two_stages import REST, WEIGHT
from minga.models.electrodeposition.vacate import Vacating
from minga.output.cells import gather_cells
from minga.output.checkpoint.head import Head, heads_of
from minga.output.checkpoint.restore import restore
from minga.output.checkpoint.slots import begin, complete, write_slots
from minga.running.loop import Result, drive
from minga.space.boundary import fixed
from minga.space.cuts import slabs
from minga.space.field import STEP, Field, Register
from minga.space.grid import Grid
from thinned import thinned

from ...model_runs import Left, assert_same, run_model
from .test_programs import model_of

SIDE = 1e-3 / 12
PER_MOL = 7.1e-6 / 0.0006
COPPER = Species("Cu", 2, 7.33e-10, 100.0), Species("SO4", -2, 1.07e-9, 100.0)
CURRENT, STEPS = 100.0, 4


def cell(**options: Any) -> Problem:
    """A millimetre of copper sulphate between copper plates, periodic along x, under a given current."""
    grid = Grid((12, 8), spacing=(SIDE, SIDE), axes=("y", "x"), periodic=(False, True))
    metal = Electrode({"Cu": Reversible(100.0)})
    settings: dict[str, Any] = {
        "steps": Steps(end=12.0, every=3.0, first=0.2, tolerance=2e-2), "cathode": metal, "anode": metal,
        "current": CURRENT, "growth": Growth("Cu", 7.1e-6, porosity=0.9994), "seed": 3,
    }  # fmt: skip
    return Problem(grid, COPPER, **(settings | options))


@pytest.fixture(scope="module")
def grown() -> Left:
    """What a run on one rank leaves."""
    return run_model(electrodeposition(cell()), STEPS)


@pytest.mark.slow
def test_errors_are_controlled_through_deposits(grown: Left) -> None:
    """Steps after a deposit resolve what it sets off; the next ones know how long they may be, and are not rejected."""
    seen = grown.observables
    assert seen["steps_taken"] > 3 * seen["deposit_cells"]
    assert seen["steps_rejected"] <= 0.1 * seen["steps_taken"]


@pytest.mark.slow
def test_mass_follows_from_charge_by_faradays_law(grown: Left) -> None:
    seen = grown.observables
    area = 8 * SIDE
    assert seen["deposit_charge"] == pytest.approx(CURRENT * area * seen["time"], rel=1e-9)
    volume = seen["deposit_charge"] / (2 * 96485.33212) * PER_MOL
    # What is left fills no cell yet, or does before the next time step.
    assert 0 <= volume - seen["deposit_volume"] < 2 * SIDE * SIDE
    assert seen["deposit_cells"] == np.count_nonzero(grown.fields["kind"] == CATHODE) >= 3
    assert seen["deposit_volume"] == pytest.approx(seen["deposit_cells"] * SIDE * SIDE, rel=1e-12)
    rows = np.flatnonzero((grown.fields["kind"] == CATHODE).any(axis=1))
    assert seen["deposit_height"] == pytest.approx((rows.max() + 1) * SIDE)
    assert seen["front_speed"] == pytest.approx(seen["deposit_height"] / seen["time"])


@pytest.mark.slow
@pytest.mark.parametrize("voltage", [0.5, 2.0])
def test_currents_of_growing_deposits_are_as_exact_as_their_steps(voltage: float) -> None:
    """Passes end earlier than where nothing grows; the deposit is so compact that no cell is full."""
    metal, tolerance = Electrode({"Cu": Reversible(100.0)}), 1e-3
    grid = Grid((24, 2), spacing=(SIDE / 2, SIDE / 2), axes=("y", "x"), periodic=(False, True))
    problem = Problem(
        grid, COPPER, Steps(end=10.0, every=2.0, first=0.05, tolerance=tolerance), cathode=metal, anode=metal,
        voltage=voltage, growth=Growth("Cu", 7.1e-6, porosity=0.0),
    )  # fmt: skip
    found, exact = (
        run_model(electrodeposition(problem, **options), 5).observables for options in ({}, {"agreement": 1e-9})
    )
    assert found["deposit_cells"] == exact["deposit_cells"] == 0
    assert found["passes"] < exact["passes"]
    assert found["current"] == pytest.approx(exact["current"], rel=tolerance)
    assert found["deposit_charge"] == pytest.approx(exact["deposit_charge"], rel=tolerance)


@pytest.mark.slow
def test_ions_make_room_and_none_is_lost(grown: Left) -> None:
    solid = grown.fields["kind"] == CATHODE
    whole = 100.0 * 96 * SIDE * SIDE
    assert grown.observables["total_SO4"] == pytest.approx(whole, rel=1e-12)
    for name in ("Cu", "SO4"):
        assert not grown.fields[name][solid].any()
        assert (grown.fields[name][~solid] > 0).all()
    assert not grown.fields["potential"][solid].any()


@pytest.mark.slow
def test_ranks_and_threads_change_no_bit(grown: Left) -> None:
    assert_same(run_model(electrodeposition(cell()), STEPS, ranks=3, threads=2), grown)


@pytest.mark.slow
def test_a_run_that_moves_and_resumes_while_it_grows_changes_no_bit(grown: Left, tmp_path: Path) -> None:
    model = electrodeposition(cell())
    state = state_of(model)

    def first(comm: Comm) -> Any:
        with mg.Engine(model.layouts("slabs", 2), comm=comm) as engine:
            begin_with(model, engine)
            engine.run(model.step)
            engine.relayout(model.layouts_like(slabs(model.grid.box, 2, weights=[3, 1])))
            engine.run(model.step)
            if comm.rank == 0:
                begin(tmp_path / "a")
            comm.barrier()
            blocks = write_slots(tmp_path / "a", engine, state)
            if comm.rank == 0:
                dtypes = {name: slot.field.dtype for name, slot in state.changing.items()}
                head = Head(2, 0.0, (), state.registers(engine), dtypes, blocks, {}, {}, {}, "")
                complete(tmp_path / "a", head)
            comm.barrier()
            return observe(model, engine)["deposit_cells"]

    def second(comm: Comm) -> Left:
        with mg.Engine(model.layouts("slabs", 3), comm=comm) as engine:
            begin_with(model, engine)
            engine.prepare(model.step)
            (head,), _ = heads_of(tmp_path)
            restore(tmp_path / head.slot, head, engine, state)
            engine.run(model.step, STEPS - 2)
            fields = {name: gather_cells(engine, model, name) for name in model.output}
            return Left(fields, observe(model, engine))

    assert 0 < run_virtual(2, first)[0] < grown.observables["deposit_cells"]
    assert_same(run_virtual(3, second)[0], grown)


def run(model: Model, steps: int) -> tuple[Result, np.ndarray[Any, Any]]:
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        return drive(model, engine, steps), engine.gather(model.field("kind"))


@pytest.mark.slow
def test_a_deposit_that_reaches_the_anode_ends_the_run() -> None:
    kinds = np.zeros((12, 8), np.uint8)
    kinds[:-1, 2] = CATHODE
    result, after = run(electrodeposition(cell(kinds=kinds, current=20.0, steps=Steps(60.0, 6.0, 0.1))), 10)
    assert result.ended.reason == "over"
    assert str(result.ended).startswith("the deposit reached the anode at t = ")
    assert result.outcome.ok
    assert result.steps < 10
    assert result.observables["time"] <= result.steps * 6.0
    assert (after[-1] == CATHODE).sum() == 1


@pytest.mark.slow
def test_a_deposit_along_one_axis_ends_the_run_before_the_anode() -> None:
    """The last cell of solution has none beside it that could take its ions: it stays, and the run is over."""
    grid = Grid((8,), axes=("y",), spacing=20e-6, units="m")
    both = Electrode({"Cu": Reversible(100.0)})
    deposit = Growth("Cu", 7.1e-6, porosity=0.9994)
    problem = Problem(
        grid, COPPER, Steps(60.0, 6.0, 0.1, tolerance=2e-2), cathode=both, anode=both, voltage=0.2, growth=deposit
    )
    result, after = run(electrodeposition(problem), 10)
    assert (result.ended.reason, result.steps < 10) == ("over", True)
    assert after.tolist() == [CATHODE] * 7 + [FLUID]
    whole = 8 * 20e-6 * 100.0
    seen = result.observables
    assert seen["total_SO4"] == pytest.approx(whole, rel=1e-12)
    assert seen["deposit_volume"] == pytest.approx(7 * 20e-6, rel=1e-12)
    volume = seen["deposit_charge"] / (2 * 96485.33212) * PER_MOL
    # What is left would fill the cell that stays, and a part of another by the end of the step.
    assert 0 <= volume - seen["deposit_volume"] < 2 * 20e-6
    assert seen["steps_taken"] > 2 * seen["deposit_cells"] == 14
    assert seen["steps_rejected"] <= 0.15 * seen["steps_taken"]


# The draw and the turn alone ----------------------------------------------------------------------------------------
def frequencies(grid: Grid, flux: np.ndarray[Any, Any], exponent: float, draws: int) -> np.ndarray[Any, Any]:
    """How often each cell is drawn."""
    lengths, kind, count = Lengths(grid), Field("kind", grid, "u1", boundary=fixed(INSULATOR)), Field("count", grid)
    flows = Field("flux", grid)

    @mg.kernel
    def add(count: Any, *, place: Any) -> None:
        mine = mg.index(0) * grid.shape[1] + mg.index(1) == place
        count[0, 0] = count[0, 0] + mg.where(mine, 1.0, 0.0)

    program, race = Program("draws"), Race(lengths, exponent)
    with program.repeat(draws):
        race.start(program, kind, flows)
        program.apply(add, count, place=race.draw(program, kind).place)
        program.let(STEP, STEP + 1)
    with mg.Engine({grid: slabs(grid.box, 1)}) as engine:
        engine.write(mg.SEED, 11)
        for item, values in ((kind, 0), (count, 0.0), (flows, flux), *lengths.initial.items()):
            engine.set(item, values)
        engine.run(program)
        return np.asarray(engine.gather(count))


@pytest.mark.slow
@pytest.mark.parametrize(("exponent", "stretched"), thinned([(0.0, False), (1.0, True), (2.0, False)], (1.0, True)))
def test_cells_are_drawn_in_proportion_to_their_flux_by_volume(exponent: float, stretched: bool) -> None:
    widths = np.array([1.0, 2.0, 4.0]) if stretched else 2.0
    grid = Grid((3, 4), spacing=(widths, 1.0), axes=("y", "x"), periodic=(False, True))
    flux = np.array([[1.0, 2.0, 0.0, 3.0], [0.5, 0.0, 4.0, 1.0], [1.0, -1.0, 2.0, 1.0]]) * 1e-12
    draws = 4000
    found = frequencies(grid, flux, exponent, draws)
    density = flux / grid.widths("y")[:, None]
    weights = np.where(flux > 0, np.maximum(density, 1e-300) ** exponent, 0.0)
    expected = draws * weights / weights.sum()
    assert not found[flux <= 0].any()
    assert found.sum() == draws
    there = expected > 0
    # Of chi squared with 8 degrees of freedom, once in ten million.
    assert ((found - expected)[there] ** 2 / expected[there]).sum() < 47.0


@pytest.mark.slow
def test_a_cell_that_turns_gives_its_ions_to_the_solution_beside_it() -> None:
    rng = np.random.default_rng(1)
    grid = Grid((4, 3, 5), spacing=(np.array([1.0, 2.0, 3.0, 5.0]), 0.5, 2.0), axes=("y", "z", "x"))
    kinds = np.zeros(grid.shape, np.uint8)
    kinds[0, 1, 2], kinds[1, 1, 1], kinds[1, 2, 2] = CATHODE, CATHODE, INSULATOR
    place = int(np.ravel_multi_index((1, 1, 2), grid.shape))
    c = np.where(kinds == FLUID, rng.uniform(1, 2, grid.shape), 0.0)
    boundary: Any = {"y": (fixed(CATHODE), fixed(ANODE)), "z": fixed(INSULATOR), "x": fixed(INSULATOR)}
    lengths, kind = Lengths(grid), Field("kind", grid, "u1", boundary=boundary)
    ions, rates, phi = Field("ions", grid, slots=3), Field("rates", grid, slots=2), Field("phi", grid, slots=3)
    race, program, number = Race(lengths, 1.0), Program("turn"), Register("number", "i8")
    found: Any = program.apply(look_at_cell(lengths), kind, lengths.fields, place=number)
    race.mark(program, number)
    state: Any = SimpleNamespace(kind=kind, concentration=(ions,), potential=phi, velocity=())
    Vacating(state, lengths, [rates], race.turning).record(program)
    with mg.Engine({grid: slabs(grid.box, 1)}) as engine:
        engine.write(number, place)
        values = {kind: kinds, ions.now: c, ions.previous: 2 * c, rates.now: 3 * c, race.turning: 0}
        for item, value in {**values, phi.now: 1.0, phi.previous: 1.0, **lengths.initial}.items():
            engine.set(item, value)
        engine.run(program)
        size, touches = engine.read(found.size), engine.read(found.touches)
        after, twice, solid = engine.gather(ions.now), engine.gather(ions.previous), engine.gather(kind)
        thrice, potential = engine.gather(rates.now), engine.gather(phi.now)
    sizes = grid.widths("y")[:, None, None] * np.full(grid.shape, 0.5 * 2.0)
    assert size == 2.0
    assert touches == 0
    assert solid[1, 1, 2] == CATHODE
    assert (solid != kinds).sum() == 1
    assert potential[1, 1, 2] == 0.0
    assert potential.sum() == grid.size - 1
    beside = [(2, 1, 2), (1, 0, 2), (1, 1, 3)]
    room = sum(sizes[where] for where in beside)
    expected = c.copy()
    expected[1, 1, 2] = 0.0
    for where in beside:
        expected[where] += c[1, 1, 2] * 2.0 / room
    np.testing.assert_allclose(after, expected, rtol=1e-15)
    np.testing.assert_allclose(twice, 2 * expected, rtol=1e-15)
    np.testing.assert_allclose(thrice, 3 * expected, rtol=1e-15)
    assert (after * sizes).sum() == pytest.approx((c * sizes).sum(), rel=1e-15)


def test_two_stages_are_of_second_order_and_damp_what_is_fast() -> None:
    def step(stiffness: float) -> float:
        """y after a step of length 1 of y' = -stiffness y, y(0) = 1, by the formula of `TwoStages.record`."""
        rate = 1.0 / WEIGHT
        first = rate / (rate + stiffness)
        return (rate * (1.0 - REST) + rate * REST * first) / (rate + stiffness)

    errors = [abs(step(1.0 / n) ** n - np.exp(-1.0)) for n in (10, 20, 40)]
    assert 3.8 < errors[0] / errors[1] < 4.2
    assert 3.9 < errors[1] / errors[2] < 4.1
    assert abs(step(1e9)) < 1e-8


@pytest.mark.parametrize(("spacing", "rounds"), [((0.5, 0.5), (2, 2)), ((0.5, 1.0), (2, 1)), ((1.0, 0.4), (1, 4))])
def test_fluxes_are_averaged_over_a_radius(spacing: tuple[float, float], rounds: tuple[int, int]) -> None:
    """Rounds of weights 1, 2, 1 along each axis, against NumPy; beyond walls there is nothing.

    A round adds half a cell width squared to the variance along its axis, which is to be half the radius squared.
    """
    rng = np.random.default_rng(2)
    grid = Grid((5, 8), spacing=spacing, axes=("y", "x"), periodic=(False, True))
    flux, kinds = rng.uniform(-1.0, 1.0, grid.shape), (rng.uniform(size=grid.shape) < 0.2).astype(np.uint8)
    lengths, kind, flows = Lengths(grid), Field("kind", grid, "u1", boundary=fixed(INSULATOR)), Field("flux", grid)
    race, program = Race(lengths, 1.0, radius=1.0), Program("average")
    assert race.rounds == rounds
    race.start(program, kind, flows)
    with mg.Engine({grid: slabs(grid.box, 1)}) as engine:
        for item, values in ((kind, kinds), (flows, flux), *lengths.initial.items()):
            engine.set(item, values)
        engine.run(program)
        found = [engine.gather(item.now) for item in race.mean]
    draws = (kinds == FLUID) & (flux > 0)
    for seen, given in zip(found, (np.where(draws, flux, 0.0), np.where(draws, math.prod(spacing), 0.0)), strict=True):
        for _ in range(rounds[0]):
            wide = np.pad(given, ((1, 1), (0, 0)))
            given = 0.5 * given + 0.25 * (wide[:-2] + wide[2:])
        for _ in range(rounds[1]):
            given = 0.5 * given + 0.25 * (np.roll(given, 1, 1) + np.roll(given, -1, 1))
        np.testing.assert_allclose(seen, given, rtol=1e-13, atol=1e-16)


PLANE: dict[str, Any] = {"width": "1 mm", "voltage": 0.1, "time": {"end": "1 s"}}


def test_a_radius_needs_cells_of_equal_width() -> None:
    with pytest.raises(CaseError, match="cells of equal width only") as caught:
        model_of((12, 6), growth={"radius": "0.2 mm"}, stretched={"y": {"geometric": 1.2}}, **PLANE)
    assert caught.value.key == "electrodeposition.growth.radius"


def test_the_note_of_a_porosity_says_where_it_is_a_bound() -> None:
    hydrogen = {"Cu": "reversible", "H": {"exchange": 2e-3, "tafel": True, "reference": 1000.0}}
    acid = {"acid": "H2SO4", "acid_concentration": "0.1 M"}
    notes = dict(model_of((8, 6), growth=True, cathode=hydrogen, **acid, **PLANE).notes)
    assert "an upper bound where other reactions carry a part" in notes["deposit"]
    notes = dict(model_of((8, 6), growth={"volume": 1.0}, **PLANE).notes)
    assert "porosity 0, by charge balance, as the bath contains as much metal" in notes["deposit"]


@pytest.mark.slow
def test_a_flat_deposit_becomes_porous_at_sands_time() -> None:
    """The concentration at a flat cathode falls as 1 - sqrt(t / T), T Sand's time: to 5 % at .9025 T."""
    current, faraday = 200.0, 96485.33212
    salt = Salt.of(COPPER)
    assert salt is not None
    sand = salt.sand(current, faraday)
    both = Electrode({"Cu": Reversible(100.0)})
    problem = Problem(
        Grid((80,), axes=("y",), spacing=1e-5, units="m"), COPPER, Steps(18.0, 1.0, 0.01, tolerance=1e-3),
        cathode=both, anode=both, current=current, growth=Growth("Cu", 7.1e-6, porosity=0.9988, onset=0.05),
    )  # fmt: skip
    result, after = run(electrodeposition(problem), 18)
    seen = result.observables
    assert sand == pytest.approx(288.94 / 16.0, rel=1e-3)
    assert seen["onset_time"] == pytest.approx(0.9025 * sand, rel=0.01)
    # Before, metal would not fill a hundredth of a cell; afterwards it fills cells.
    assert seen["deposit_cells"] == (after == CATHODE).sum() >= 1
    brought = seen["deposit_charge"] / (2 * faraday) * 7.1e-6
    before = current * seen["onset_time"] / (2 * faraday) * 7.1e-6
    assert seen["deposit_volume"] + 1e-5 > before + (brought - before) / (1 - 0.9988) > seen["deposit_volume"]


def test_porosity_follows_from_the_balance_of_the_metal() -> None:
    copper = COPPER[0]
    share = 0.733 / (0.733 + 1.07)
    assert charge_balance(COPPER, copper, 7.09e-6) == pytest.approx(1.0 - 100.0 * 7.09e-6 / (1.0 - share), rel=1e-12)
    assert charge_balance(COPPER, copper, 7.09e-6) == pytest.approx(0.99881, abs=5e-6)
    # A bath that contains more metal than the deposit could leaves no room for pores.
    assert charge_balance(COPPER, copper, 1.0) == 0.0


def test_what_is_solid_at_the_start_is_no_deposit() -> None:
    kinds = np.zeros((12, 8), np.uint8)
    kinds[:3, 4], kinds[5, 1] = CATHODE, INSULATOR
    first = first_deposit(cell(kinds=kinds))
    assert (first.cells, first.height) == (3, pytest.approx(3 * SIDE))
    assert first.volume == pytest.approx(3 * SIDE * SIDE)

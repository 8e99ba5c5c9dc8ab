"""Tables of values at points: native code, Python and any number of ranks store and add the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine import time_blocks
from minga.engine.command import Kernel
from minga.engine.helpers import wave_function
from minga.errors import ProgramError
from minga.models.waves import Receivers
from minga.models.waves.boundary import Sponge, domain_of, faces_of
from minga.models.waves.point_table import PointTable
from minga.models.waves.receivers import Taps
from minga.space.cuts import parse_layout

DOMAIN = domain_of((11, 14), (10.0, 10.0), faces_of(Sponge(3), 2))
POINTS = [(20.0, 30.0), (55.0, 61.0), (100.0, 130.0), (43.7, 90.0), (55.2, 60.9)]
GRID = mg.Grid(DOMAIN.cells, axes=("z", "x"))


def _grow(u: Any, new: Any) -> None:
    new[0, 0] = 0.9 * u[0, 0] + 0.05 * (u[1, 0] + u[0, -1])


def run(
    dtype: str, native: bool, comm: Any = None, ranks: int = 1, threads: int = 1, steps: int = 5
) -> tuple[np.ndarray, np.ndarray, int]:
    """Samples of every second step; the field after steps that add the samples, last ones first; bound waves."""
    u = mg.Field("u", GRID, dtype, slots=2, boundary=mg.fixed(0.0))
    taps = Taps.of(Receivers(POINTS).placed(DOMAIN))
    table = PointTable(taps, 1 + steps // 2, 2)
    sampling, step, adding = mg.Program("sample"), mg.Program("step"), mg.Program("add")
    sampling.refresh(u, taps.reach)
    sampling.call(table.sampling(u), reads=(u,))
    step.apply(mg.kernel(_grow), u, u.next)
    step.rotate(u)
    step.include(sampling)
    adding.call(table.injection(u), reads=(u,), writes=(u,))
    adding.apply(mg.kernel(_grow), u, u.next)
    adding.rotate(u)
    with mg.Engine({GRID: parse_layout("slabs", GRID.box, ranks)}, comm=comm, native=native, threads=threads) as engine:
        engine.set(u, lambda box: np.sin(np.arange(GRID.box.size).reshape(GRID.shape))[box.slices((0, 0))])
        engine.run(sampling)
        engine.run(step, steps)
        table.combine(engine.comm)
        engine.run(adding, table.steps + 1)
        commands = [command for known in engine._prepared.values() for command in known.binding.commands]
        waves = sum(isinstance(c, Kernel) and c.function == wave_function() for c in commands)
        return table.values.copy(), np.array(engine.gather(u)), waves


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_native_code_has_the_bits_of_python(dtype: str, in_python: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    other = run(dtype, True)
    assert {label: in_python.count(label) for label in in_python} == {"receivers": 6, "residuals": 5}
    monkeypatch.undo()
    samples, field, _ = run(dtype, True)
    assert samples.all()
    assert np.array_equal(samples, other[0])
    assert np.array_equal(field, other[1])


@pytest.mark.parametrize("ranks", [2, 3])
def test_bits_do_not_depend_on_ranks(ranks: int) -> None:
    samples, field, _ = run("f4", True)
    other = mg.run_virtual(ranks, lambda comm: run("f4", True, comm, ranks))[0]
    assert np.array_equal(samples, other[0])
    assert np.array_equal(field, other[1])


@pytest.mark.parametrize(("bands", "threads"), [((2, 2, 4), 1), ((3, 3, 8), 3)])
def test_blocks_of_rounds_have_the_bits_of_single_rounds(
    bands: tuple[int, int, int], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples, field, none = run("f4", True, steps=21)
    assert none == 0
    monkeypatch.setattr(time_blocks, "SHORTEST", 2)
    monkeypatch.setattr(time_blocks, "best_bands", lambda *_, **__: bands)
    other = run("f4", True, threads=threads, steps=21)
    assert other[2] >= 2  # both loops have blocks
    assert np.array_equal(samples, other[0])
    assert np.array_equal(field, other[1])
    interpreted = run("f4", False, steps=21)
    assert np.array_equal(samples, interpreted[0])
    assert np.array_equal(field, interpreted[1])


def test_points_beyond_the_halo_are_refused() -> None:
    """A call without a refresh: its points lie near the ends of ranks."""
    u = mg.Field("u", GRID, "f8", boundary=mg.fixed(0.0))
    table = PointTable(Taps.of(Receivers(POINTS).placed(DOMAIN)), 1, 1)
    sampling = mg.Program("sample")
    sampling.call(table.sampling(u), reads=(u,))

    def body(comm: Any) -> None:
        with mg.Engine(parse_layout("slabs", GRID.box, 3), grid=GRID, comm=comm) as engine:
            engine.run(sampling)

    with pytest.raises(ProgramError, match="beyond its halo"):
        mg.run_virtual(3, body)


def test_samples_are_weighted_sums_of_cells() -> None:
    samples, _, _ = run("f8", True)
    cells = np.sin(np.arange(GRID.box.size).reshape(GRID.shape))
    for number, point in enumerate(Receivers(POINTS).placed(DOMAIN)):
        weights = point.products.reshape(point.box.shape)
        assert samples[0, number] == pytest.approx((weights * cells[point.box.slices((0, 0))]).sum(), abs=1e-14)


def test_rows_of_zeros_leave_the_field_as_it_is() -> None:
    """Adding 0 would make 0 of -0."""
    u = mg.Field("u", GRID, "f8", boundary=mg.fixed(0.0))
    table = PointTable(Taps.of(Receivers(POINTS).placed(DOMAIN)), 1, 1)
    adding = mg.Program("add")
    adding.call(table.injection(u), reads=(u,), writes=(u,))
    with mg.Engine(parse_layout("slabs", GRID.box, 1), grid=GRID) as engine:
        engine.set(u, -0.0)
        engine.run(adding)
        assert np.signbit(np.array(engine.gather(u))).all()

"""Tables of values at points: native code, Python and any number of ranks store and add the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
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


def run(dtype: str, native: bool, comm: Any = None, ranks: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Samples of every second of five steps; the field after the samples were added to it again, last ones first."""
    u = mg.Field("u", GRID, dtype, slots=2, boundary=mg.fixed(0.0))
    taps = Taps.of(Receivers(POINTS).placed(DOMAIN))
    table = PointTable(taps, 3, 2)
    sampling, step, adding = mg.Program("sample"), mg.Program("step"), mg.Program("add")
    sampling.refresh(u, taps.reach)
    sampling.call(table.sampling(u), reads=(u,))
    step.apply(mg.kernel(_grow), u, u.next)
    step.rotate(u)
    step.include(sampling)
    adding.call(table.injection(u), reads=(u,), writes=(u,))
    with mg.Engine({GRID: parse_layout("slabs", GRID.box, ranks)}, comm=comm, native=native) as engine:
        engine.set(u, lambda box: np.sin(np.arange(GRID.box.size).reshape(GRID.shape))[box.slices((0, 0))])
        engine.run(sampling)
        engine.run(step, 5)
        table.combine(engine.comm)
        engine.run(adding, 5)
        return table.values.copy(), np.array(engine.gather(u))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_native_code_has_the_bits_of_python(dtype: str) -> None:
    samples, field = run(dtype, True)
    assert samples.all()
    other = run(dtype, False)
    assert np.array_equal(samples, other[0])
    assert np.array_equal(field, other[1])


@pytest.mark.parametrize("ranks", [2, 3])
def test_bits_do_not_depend_on_ranks(ranks: int) -> None:
    samples, field = run("f4", True)
    other = mg.run_virtual(ranks, lambda comm: run("f4", True, comm, ranks))[0]
    assert np.array_equal(samples, other[0])
    assert np.array_equal(field, other[1])


def test_samples_are_weighted_sums_of_cells() -> None:
    samples, _ = run("f8", True)
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

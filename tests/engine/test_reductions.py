"""Reductions: every kind and type, exactly, on any layout."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.program import Program
from minga.errors import LayoutError
from minga.space.cuts import blocks, cartesian, slabs
from minga.space.layout import Layout
from thinned import thinned

from .running import check, eagerly, on_layouts, random_array, some_layouts


@mg.kernel
def everything(u):
    v = u[0, 0]
    return {"max": mg.max(v), "min": mg.min(v), "argmax": mg.argmax(v), "argmin": mg.argmin(v), "many": mg.count(v > 3)}


@mg.kernel
def total(u):
    return mg.sum(u[0, 0])


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", thinned(["u1", "i2", "i4", "i8", "u4", "u8", "f4", "f8"], "u1", "i8", "f4", "f8"))
def test_against_numpy(dtype: str) -> None:
    grid = mg.Grid((7, 9))
    u = mg.Field("u", grid, dtype)
    values = random_array(u) if dtype[0] == "f" else random_array(u) % 7
    program = Program("observe")
    found = program.apply(everything, u)
    names = ("max", "min", "argmax", "argmin", "many")
    registers = [getattr(found, name) for name in names]
    expected = [values.max(), values.min(), values.argmax(), values.argmin(), (values > 3).sum()]
    for layout in some_layouts(grid):
        left = on_layouts(layout, [(program, 1)], {u: values}, registers)
        assert list(left.registers.values()) == [v.item() for v in expected]


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["bool", "u1", "i4", "i8", "u8"])
def test_integer_sums_wrap(dtype: str) -> None:
    grid = mg.Grid((7, 9))
    u = mg.Field("u", grid, dtype)
    values = random_array(u)
    if dtype in ("i8", "u8"):
        values = (values + 1) * (1 << 62)
    program = Program("observe")
    register = program.apply(total, u)
    assert register.dtype == ("i8" if dtype[0] == "i" else "u8")
    expected = int(values.astype(register.dtype).sum())
    for layout in some_layouts(grid):
        assert on_layouts(layout, [(program, 1)], {u: values}, [register]).registers[register.key] == expected


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_float_sums_are_the_same_on_all_aligned_layouts(dtype: str) -> None:
    grid = mg.Grid((5, 300))
    u = mg.Field("u", grid, dtype)
    values = random_array(u) * np.exp(random_array(u, 2) * 8).astype(dtype)
    program = Program("observe")
    register = program.apply(total, u)
    layouts = [
        *some_layouts(grid, granule=64),
        slabs(grid.box, 4, 1),
        cartesian(grid.box, (2, 3)),
        blocks(grid.box, 3, 4),
    ]
    left = check([(program, 1)], {u: values}, layouts, registers=[register], threads=2)
    exact = sum(map(Fraction, values.ravel().tolist()))
    assert abs(Fraction(float(left.registers[register.key])) - exact) <= abs(exact) * Fraction(1, 2**40)


def test_sums_are_exact_over_runs() -> None:
    """What one run of 64 cells loses, two keep: run sums are added without rounding."""
    grid = mg.Grid((2, 128))
    u = mg.Field("u", grid)
    values = np.zeros(grid.shape)
    values[0, 0], values[0, 64], values[1, 127] = 1e300, 1.0, -1e300
    program = Program("observe")
    register = program.apply(total, u)
    for layout in some_layouts(grid, granule=64):
        assert on_layouts(layout, [(program, 1)], {u: values}, [register]).registers[register.key] == 1.0


@mg.kernel
def descend(u, new):
    new[0, 0] = 0.5 * u[0, 0] + 0.25 * (u[0, -1] + u[1, 0])
    return {"sum": mg.sum(u[0, 0] * u[0, 1]), "max": mg.max(new_value(u))}


def new_value(u: Any) -> Any:
    return abs(u[0, 0] - u[0, -1])


@pytest.mark.few(2)
@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("depth", [1, 3])
def test_sums_of_a_split_operation(overlap: bool, depth: int) -> None:
    """Shells are computed before interiors; no run of cells is cut for that."""
    grid = mg.Grid((6, 200), periodic=True)
    u = mg.Field("u", grid, slots=2)
    program = Program("step")
    sums = program.apply(descend, u, u.next)
    program.rotate(u)
    layouts = [slabs(grid.box, 3, 1), cartesian(grid.box, (2, 2)), slabs(grid.box, 3)]
    for threads in (1, 2):
        settings = {"overlap": overlap, "halo_depth": depth, "threads": threads}
        check([(program, 4)], {u: random_array(u)}, layouts, registers=[sums.sum, sums.max], **settings)


@pytest.mark.parametrize("centre", ["", "x", "y"])
def test_layouts_that_cut_runs_are_refused(centre: str) -> None:
    grid = mg.Grid((4, 200))
    u = mg.Field("u", grid, centre=centre)
    program = Program("observe")
    program.apply(total, u)
    with pytest.raises(LayoutError, match="whole runs of 64 cells along 'x'") as error:
        on_layouts(slabs(grid.box, 2, 1, granule=1), [(program, 1)], {u: 1.0})
    assert "cuts that axis at 100" in str(error.value)
    assert "granule=64" in str(error.value)
    on_layouts(slabs(grid.box, 2, 0, granule=1), [(program, 1)], {u: 1.0})
    on_layouts(slabs(grid.box, 2, 1), [(program, 1)], {u: 1.0})


def test_integer_sums_and_extremes_may_be_cut_anywhere() -> None:
    grid = mg.Grid((4, 50))
    k = mg.Field("k", grid, "i4")
    program = Program("observe")
    register = program.apply(total, k)
    check([(program, 1)], {k: random_array(k)}, some_layouts(grid), registers=[register])


def test_regions() -> None:
    grid = mg.Grid((6, 150))
    u = mg.Field("u", grid)
    program = Program("observe")
    part = program.apply(total, u, region=mg.Box((1, 3), (5, 140)))
    most = program.apply(everything, u, region=mg.Box((2, 70), (3, 75)))
    check([(program, 1)], {u: random_array(u)}, some_layouts(grid, 64), registers=[part, most.argmax, most.min])


def test_ties_take_the_first_cell() -> None:
    grid = mg.Grid((5, 6))
    u = mg.Field("u", grid, "i4")
    values = np.zeros(grid.shape, "i4")
    values[2, 3] = values[4, 1] = values[3, 0] = 5
    program = Program("observe")
    found = program.apply(everything, u)
    for layout in some_layouts(grid):
        left = on_layouts(layout, [(program, 1)], {u: values}, [found.argmax, found.argmin])
        assert list(left.registers.values()) == [2 * 6 + 3, 0]


def test_into_registers_and_use_in_later_operations() -> None:
    @mg.kernel
    def divide(u, new, *, by):
        new[0, 0] = u[0, 0] / by

    grid = mg.Grid((5, 6))
    u = mg.Field("u", grid, slots=2)
    most = mg.Register("most")
    program = Program("step")
    program.apply(
        everything,
        u,
        into={
            **{n: mg.Register(n, "i8") for n in ("argmax", "argmin", "many")},
            "max": most,
            "min": mg.Register("least"),
        },
    )
    program.apply(divide, u, u.next, by=most * 2)
    program.rotate(u)
    left = check([(program, 2)], {u: random_array(u)}, some_layouts(grid), registers=[most])
    assert left.arrays[u][0].max() == 0.5


def test_signed_zeros_and_subnormals() -> None:
    grid = mg.Grid((2, 64))
    u = mg.Field("u", grid)
    values = np.full(grid.shape, -0.0)
    program = Program("observe")
    found, both = program.apply(everything, u), program.apply(total, u)
    for cell, most in ((None, -0.0), ((1, 7), 0.0)):
        if cell:
            values[cell] = 0.0
        for layout in some_layouts(grid, 64)[:3]:
            left = on_layouts(layout, [(program, 1)], {u: values}, [found.max, both])
            assert np.signbit(left.registers[found.max.key]) == np.signbit(most)
            assert not np.signbit(left.registers[both.key])
    values[...] = 5e-324
    left = on_layouts(slabs(grid.box, 2), [(program, 1)], {u: values}, [both])
    assert left.registers[both.key] == 128 * 5e-324


@pytest.mark.few(2)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_ends_the_program_with_its_place(value: float) -> None:
    grid = mg.Grid((5, 130))
    u = mg.Field("u", grid, slots=2)
    after = mg.Register("after", "i8")
    program = Program("observe")
    program.apply(total, u)
    program.let(after, after + 1)
    values = np.ones(grid.shape)
    initial = {u: values}
    for layout in some_layouts(grid, 64):
        values[3, 77] = 1.0
        assert on_layouts(layout, [(program, 3)], initial, [after]).registers[after.key] == 3
        values[3, 77] = value
        left = on_layouts(layout, [(program, 3)], initial, [after])
        assert left.outcomes == [("not finite", "total: value")] == eagerly([(program, 3)], initial).outcomes
        assert left.registers[after.key] == 0


def test_unchecked_reductions_that_are_not_finite_are_values() -> None:
    """On any layout; what is recorded afterwards is checked again."""
    grid = mg.Grid((5, 130))
    u = mg.Field("u", grid)
    found, lost, after = mg.Register("found"), mg.Register("lost", "i8"), mg.Register("after", "i8")
    program = Program("attempt")
    with program.unchecked():
        program.apply(total, u, into=found)
    program.let(lost, lost + mg.where(found < 1e300, 0, 1))
    again = Program("again")
    again.apply(total, u)
    again.let(after, after + 1)
    values = np.ones(grid.shape)
    values[3, 77] = np.nan
    for layout in some_layouts(grid, 64)[:3]:
        left = on_layouts(layout, [(program, 2), (again, 1)], {u: values}, [found, lost, after])
        assert np.isnan(left.registers[found.key])
        assert (left.registers[lost.key], left.registers[after.key]) == (2, 0)
        assert left.outcomes[0] == eagerly([(program, 2)], {u: values}).outcomes[0]
        assert left.outcomes[-1] == ("not finite", "total: value")


def test_an_empty_region_has_no_extreme_and_is_not_an_error() -> None:
    grid = mg.Grid((3, 4))
    u = mg.Field("u", grid)
    program = Program("observe")
    found = program.apply(everything, u, region=mg.Box((1, 2), (1, 4)))
    left = on_layouts(
        slabs(grid.box, 2, granule=1), [(program, 1)], {u: 1.0}, [found.max, found.min, found.argmax, found.many]
    )
    assert list(left.registers.values()) == [-np.inf, np.inf, -1, 0]
    assert left.outcomes == [("finished", "")]


def test_sixteen_ranks() -> None:
    grid = mg.Grid((40, 130), periodic=True)
    u = mg.Field("u", grid, slots=2)
    program = Program("step")
    sums = program.apply(descend, u, u.next)
    program.rotate(u)
    layouts = [slabs(grid.box, 16), cartesian(grid.box, (8, 2)), Layout.single(grid.box, 16, 7)]
    check([(program, 3)], {u: random_array(u)}, layouts, registers=[sums.sum, sums.max])

"""Cells behind a mask: which ones are left out, and that nobody can tell from the results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minga as mg
from fake_device import FakeDevice
from minga.engine import masks
from minga.engine.comm import Comm, run_virtual
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.space.box import Box
from minga.space.cuts import cartesian, slabs
from minga.space.field import Field, Register
from minga.space.grid import Grid
from minga.space.layout import Layout
from thinned import thinned

from .eager import Wall, fixed_number
from .running import check, random_array

PIECE = 64


@pytest.fixture(autouse=True)
def _leave_out_whatever_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little is gained, so that small grids do as large ones."""
    monkeypatch.setattr(masks, "PRICE", 0)


# Which cells are left out ---------------------------------------------------------------------------------------------
def rise(ndim: int, **options: Any) -> Any:
    """A kernel that breaks the promise, so that it shows how often a cell was done."""
    here = (0,) * ndim

    def count_up(n: Any) -> None:
        n[here] = n[here] + 1

    return mg.Kernel(count_up, **options) if options else mg.kernel(count_up)


def rounds_done(
    mask: np.ndarray, layout: Layout, kernel: Any, centre: Any = (), rounds: int = 3, **options: Any
) -> Any:
    """How often each point was done in so many rounds."""
    grid = Grid(mask.shape)
    solid = Field("solid", grid, "u1")
    counts = Field("counts", grid, "i8", centre=centre)
    program = Program("counting")
    with program.masked(solid), program.repeat(rounds):
        program.apply(kernel, counts)

    def body(comm: Comm) -> Any:
        with mg.Engine({grid: layout}, comm=comm, **options) as engine:
            engine.set(solid, mask)
            engine.run(program)
            return engine.gather(counts)

    return run_virtual(layout.ranks, body)[0]


def pieces_behind(mask: np.ndarray) -> np.ndarray:
    """Cells whose whole piece of a row is behind a mask."""
    behind = np.zeros(mask.shape, bool)
    for low in range(0, mask.shape[-1], PIECE):
        piece = (..., slice(low, low + PIECE))
        behind[piece] = (mask[piece] != 0).all(axis=-1, keepdims=True)
    return behind


def random_mask(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Pieces of rows that are solid, fluid, or some of both."""
    rng = np.random.default_rng(seed)
    what = np.repeat(rng.integers(0, 3, (*shape[:-1], -(-shape[-1] // PIECE))), PIECE, axis=-1)[..., : shape[-1]]
    return np.where(what == 2, rng.integers(0, 2, shape), 3 * what).astype(np.uint8)


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", [(300,), (9, 200), (5, 6, 70), (3, 4, 5, 130)])
def test_whole_pieces_of_rows_are_left_out_after_the_first_round(shape: tuple[int, ...]) -> None:
    mask = random_mask(shape)
    expected = np.where(pieces_behind(mask), 1, 3)
    assert len(np.unique(expected)) == 2
    box = Box((0,) * len(shape), shape)
    kernel = rise(len(shape))
    for layout in (
        slabs(box, 1),
        slabs(box, 2, granule=PIECE if len(shape) == 1 else 1),
        slabs(box, 2, len(shape) - 1),
    ):
        np.testing.assert_array_equal(rounds_done(mask, layout, kernel, threads=2), expected)


def test_functions_for_masks_are_compiled_for_programs_that_have_masks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[None] = []
    compiled = masks.mask_functions
    monkeypatch.setattr(masks, "mask_functions", lambda: asked.append(None) or compiled())
    grid = Grid((4, 256))
    counts, solid = Field("counts", grid, "i8"), Field("solid", grid, "u1")
    with mg.Engine({grid: slabs(Box((0, 0), grid.shape), 1)}) as engine:
        plain, masked = Program("plain"), Program("masked")
        plain.apply(rise(2), counts)
        engine.run(plain)
        assert not asked
        with masked.masked(solid):
            masked.apply(rise(2), counts)
        engine.run(masked)
        assert asked


def test_a_face_is_done_if_a_cell_beside_it_is() -> None:
    mask = random_mask((7, 5, 70), 1)
    behind = pieces_behind(mask)
    for axis in (0, 1):
        found = rounds_done(mask, slabs(Box((0, 0, 0), mask.shape), 1), rise(3), (axis,))
        wide = np.pad(behind, [(1, 1) if a == axis else (0, 0) for a in range(3)], constant_values=True)
        below, above = (np.take(wide, range(k, mask.shape[axis] + 1 + k), axis) for k in (0, 1))
        np.testing.assert_array_equal(found, np.where(below & above, 1, 3))
    along = rounds_done(mask, slabs(Box((0, 0, 0), mask.shape), 1), rise(3), (2,))
    needed = np.ones((7, 5, 71), bool)
    needed[..., 1:-1] = ~((mask != 0)[..., 1:] & (mask != 0)[..., :-1])
    needed[..., 0], needed[..., -1] = mask[..., 0] == 0, mask[..., -1] == 0
    assert (along[needed] == 3).all()
    assert (along == 1).any()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_where_cells_are_done_in_order_whole_lines_are_left_out(axis: int) -> None:
    mask = random_mask((7, 5, 150), 2)
    mask[:, 2] = mask[3] = 1
    mask[2:4, 1, :PIECE] = mask[:, 1, :PIECE] = 1
    for ranks in (1, 2):
        layout = slabs(Box((0, 0, 0), mask.shape), ranks, 1)
        expected = np.ones(mask.shape, int)
        for block in range(ranks):
            cells = layout.box(block).slices((0, 0, 0))
            expected[cells][~pieces_behind(mask[cells]).all(axis=axis, keepdims=True) & (mask[cells] < 9)] = 3
        found = rounds_done(mask, layout, rise(3, order={axis: 1}))
        np.testing.assert_array_equal(found, expected)
        assert len(np.unique(found)) == 2


def test_what_does_not_remain_where_it_is_is_done_everywhere() -> None:
    """Slots that rotate, places of extremes, other grids, deep halos' frames, GPUs."""
    grid, other = Grid((6, 128)), Grid((6, 128), label="other")
    solid, turned = Field("solid", grid, "u1"), Field("turned", grid, "i8", slots=2)
    placed, beside = Field("placed", grid, "i8"), Field("beside", other, "i8")

    @mg.kernel
    def onto(n: Any, new: Any) -> None:
        new[0, 0] = n[0, 0] + 1

    @mg.kernel
    def place(n: Any) -> Any:
        before = n[0, 0]
        n[0, 0] = before + 1
        return {"at": mg.argmax(before)}

    program = Program("dense")
    with program.masked(solid), program.repeat(3):
        program.apply(onto, turned, turned.next)
        program.rotate(turned)
        program.apply(place, placed)
        program.apply(rise(2), beside)
    with mg.Engine({g: slabs(g.box, 1) for g in (grid, other)}) as engine:
        engine.set(solid, 1)
        engine.run(program)
        for item in (turned, placed, beside):
            assert (engine.gather(item) == 3).all()
    with mg.Engine({grid: slabs(grid.box, 1)}, device=FakeDevice()) as engine:
        counts = Field("counts", grid, "i8")
        program = Program("device")
        with program.masked(solid), program.repeat(3):
            program.apply(rise(2), counts)
        engine.set(solid, 1)
        engine.run(program)
        assert (engine.gather(counts) == 3).all()


def test_a_mask_is_looked_at_when_a_program_begins_and_when_it_is_stored() -> None:
    grid = Grid((4, 64))
    solid, counts, row = Field("solid", grid, "u1"), Field("counts", grid, "i8"), Register("row", "i8")

    @mg.kernel
    def only(mask: Any, *, row: Any) -> None:
        mask[0, 0] = mg.where(mg.index(0) == row, 1, 0)

    program = Program("changing")
    with program.masked(solid):
        program.let(row, 0)
        with program.repeat(3):
            program.apply(only, solid, row=row)
            with program.repeat(5):
                program.apply(rise(2), counts)
            program.let(row, row + 1)
    with mg.Engine({grid: slabs(grid.box, 1)}) as engine:
        engine.run(program)
        np.testing.assert_array_equal(engine.gather(counts)[:, 0], [11, 11, 11, 15])
        engine.set(counts, 0)
        engine.run(program)
        np.testing.assert_array_equal(engine.gather(counts)[:, 0], [11, 11, 11, 15])


@pytest.mark.parametrize("item", [{"dtype": "f8"}, {"dtype": "u1", "centre": (0,)}, {"dtype": "u1", "axes": (1,)}])
def test_what_is_no_mask(item: dict[str, Any]) -> None:
    program = Program()
    with pytest.raises(ProgramError, match="is not a mask"), program.masked(Field("m", Grid((4, 8)), **item)):
        pass


# Results --------------------------------------------------------------------------------------------------------------
@mg.kernel
def spread(solid: Any, u: Any, new: Any, *, rate: Any) -> Any:
    """Diffusion between fluid cells; 0 in solid ones."""
    here = u[0, 0, 0]
    total = here * 0.0
    for offset in ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)):
        total = total + mg.where(solid[offset] == 0, u[offset] - here, 0.0)
    value = mg.where(solid[0, 0, 0] == 0, here + rate * total, 0.0)
    new[0, 0, 0] = value
    return {"sum": mg.sum(value * value), "most": mg.max(mg.abs(value)), "fluid": mg.count(solid[0, 0, 0] == 0)}


@mg.kernel
def slope(solid: Any, u: Any, face: Any) -> None:
    both = (solid[0, 0, 0] == 0) & (solid[-1, 0, 0] == 0)
    face[0, 0, 0] = mg.where(both, u[0, 0, 0] - u[-1, 0, 0], 0.0)


@mg.kernel
def back(solid: Any, new: Any, face: Any, u: Any) -> None:
    u[0, 0, 0] = mg.where(solid[0, 0, 0] == 0, new[0, 0, 0] + 0.01 * (face[1, 0, 0] - face[0, 0, 0]), 0.0)


@mg.kernel
def deposit(solid: Any, *, height: Any) -> None:
    solid[0, 0, 0] = mg.where(mg.index(0, "i8") < height + mg.index(1, "i8") % 2, 1, solid[0, 0, 0])


sweep = mg.Kernel(
    lambda solid, u: u.__setitem__((0, 0, 0), mg.where(solid[0, 0, 0] == 0, u[0, 0, 0] + 0.3 * u[0, -1, 0], 0.0)),
    name="sweep", order={1: 1},
)  # fmt: skip
checkered = mg.Kernel(
    lambda solid, u: u.__setitem__(
        (0, 0, 0), mg.where(solid[0, 0, 0] == 0, 0.5 * u[0, 0, 0] + 0.1 * (u[1, 0, 0] + u[0, 0, -1]), 0.0)
    ),
    name="checkered", order="red-black",
)  # fmt: skip


def growing() -> tuple[Program, dict[Field, Any], list[Wall], list[Register]]:
    """A mask that grows while operations of every kind leave out what is behind it."""
    grid = Grid((8, 4, 130))
    one, zero = fixed_number(1), fixed_number(0.0)
    solid = Field("solid", grid, "u1", boundary=one.condition)
    u, new = (Field(name, grid, boundary=zero.condition) for name in ("u", "new"))
    face = Field("face", grid, centre=(0,), boundary=zero.condition)
    height, total = Register("height", "i8"), Register("total")
    most, fluid = Register("most"), Register("fluid", "i8")
    program = Program("growing")
    program.let(height, 0)
    with program.masked(solid), program.repeat(3):
        program.apply(deposit, solid, height=height)
        with program.repeat(2):
            program.apply(spread, solid, u, new, rate=0.1, into={"sum": total, "most": most, "fluid": fluid})
            program.apply(slope, solid, new, face)
            program.apply(back, solid, new, face, u)
            program.apply(sweep, solid, u)
            program.apply(checkered, solid, u)
        program.let(height, height + 2)
    mask = random_mask(grid.shape, 3)
    values = np.where(mask == 0, random_array(u), 0.0)
    return program, {solid: mask, u: values, new: 0.0, face: 0.0}, [one, zero], [total, most, fluid]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    thinned(
        [{"threads": 2}, {"halo_depth": 2, "overlap": False}, {"native": False}],
        *[{"halo_depth": 2, "overlap": False}, {"native": False}],
    ),
)
def test_results_are_those_of_all_cells(options: dict[str, Any]) -> None:
    program, initial, walls, registers = growing()
    grid = next(iter(initial)).grid
    layouts = [layout for layout in _cut_across(grid) if "native" not in options or layout.ranks < 3]
    check([(program, 2)], initial, layouts, walls, registers, **options)


def _cut_across(grid: Grid) -> Iterator[Layout]:
    """Layouts that sums of floats allow, and sweeps along axis 1."""
    yield slabs(grid.box, 1)
    yield slabs(grid.box, 3)
    yield cartesian(grid.box, (2, 1, 2), granule=PIECE)

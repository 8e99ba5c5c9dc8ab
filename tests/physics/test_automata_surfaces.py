"""Klein bottles, cross-surfaces and spheres beside NumPy, diagrams of Golly's help, and Golly's bgolly."""

from __future__ import annotations

import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg
from fake_device import FakeDevice
from minga.models.automaton.bounds import parse_bounds
from minga.models.automaton.patterns import read_rle, write_rle
from minga.space.cuts import slabs
from minga.space.seams import lines_beyond

from .watching import watch

Cells = NDArray[np.uint8]

# Grids of letters with their borders, as golly.sourceforge.io/Help/bounded.html shows them; the two with a shift are
# those that bgolly 3.3 computes with, which shifts the other way than that page shows.
DIAGRAMS = {
    "K4*,3": "ILKJIL DABCDA HEFGHE LIJKLI ADCBAD",
    "K4,3*": "DIJKLA LABCDI HEFGHE DIJKLA LABCDI",
    "C4,3": "ALKJID LABCDI HEFGHE DIJKLA IDCBAL",
    "S3": "AADGC AABCG BDEFH CGHII GCFII",
    "K4*+1,3": "LKJILK DABCDA HEFGHE LIJKLI DCBADC",
    "K3,4*+1": "LJKLJ IABCG FDEFD CGHIA LJKLJ IABCG",
}


def soup_on(suffix: str) -> Cells:
    """A reproducible soup on a surface, in which at least one cell lives."""
    soup = (np.random.default_rng(3).random(parse_bounds(suffix).shape) < 0.4).astype(np.uint8)
    soup[0, 0] = 1
    return soup


def bordered(cells: NDArray[Any], suffix: str) -> NDArray[Any]:
    """The cells with one row and column around them, as rows and columns of NumPy."""
    around = np.pad(cells, 1)
    if suffix.startswith("S"):
        around[0, 1:-1], around[-1, 1:-1], around[1:-1, 0], around[1:-1, -1] = (
            cells[:, 0], cells[:, -1], cells[0], cells[-1],
        )  # fmt: skip
        around[0, 0], around[0, -1], around[-1, 0], around[-1, -1] = cells[[0, 0, -1, -1], [0, -1, 0, -1]]
        return around
    if suffix.startswith("C"):
        around[0, 1:-1], around[-1, 1:-1] = cells[-1, ::-1], cells[0, ::-1]
        around[1:-1, 0], around[1:-1, -1] = cells[::-1, -1], cells[::-1, 0]
        around[0, 0], around[0, -1], around[-1, 0], around[-1, -1] = cells[[0, 0, -1, -1], [0, -1, 0, -1]]
        return around
    if suffix.index("*") > suffix.index(","):
        columns, rows = suffix[1:].split(",")
        return bordered(cells.T, f"K{rows},{columns}").T
    turned = np.roll(cells[:, ::-1], -1 if "+1" in suffix else 0, axis=1)
    tall = np.concatenate([turned[-1:], cells, turned[:1]])
    return np.pad(tall, ((0, 0), (1, 1)), mode="wrap")


def life(cells: Cells, suffix: str, steps: int) -> Cells:
    """The cells after so many steps of Life, counted by NumPy."""
    rows, columns = cells.shape
    for _ in range(steps):
        wide = bordered(cells, suffix)
        near = sum(wide[i : i + rows, j : j + columns] for i in range(3) for j in range(3)) - cells
        cells = ((near == 3) | ((near == 2) & (cells == 1))).astype(np.uint8)
    return cells


def automaton(suffix: str, rule: Any = "B3/S23", **more: Any) -> mg.Model:
    soup = soup_on(suffix)
    return mg.automaton(rule, soup.shape, init=soup, boundary=parse_bounds(suffix).boundary, **more)


SUFFIXES = ["K30*,20", "K30,20*", "K31*,21", "K31,21*", "K30*+1,21", "K7,20*+1", "C30,20", "C31,21", "S30", "S31"]
SMALL = ["C5,4", "S2", "K2*,2", "K2*+1,1", "C2,1", "C1,3", "K1,4*", "S1", "K3*,1", "K1*,1", "C1,1"]


@pytest.mark.parametrize("suffix", DIAGRAMS)
def test_borders_are_those_of_diagrams(suffix: str) -> None:
    bounds = parse_bounds(suffix)
    rows, columns = bounds.shape
    letters = np.arange(rows * columns, dtype=np.uint8).reshape(rows, columns) + ord("A")
    around = np.pad(letters, 1)
    seam = mg.automaton("B3/S23", bounds.shape, init={"soup": 0.5}, boundary=bounds.boundary).grid.seam
    for line in lines_beyond(seam, bounds.shape):
        source = letters[line.source.slices((0, 0))].ravel()
        target = around[line.target.slices((-1, -1))]
        target[...] = (source[::-1] if line.reverse else source).reshape(target.shape)
    assert around.tobytes().decode() == DIAGRAMS[suffix].replace(" ", "")
    assert np.array_equal(around, bordered(letters, suffix))


@pytest.mark.parametrize("suffix", [*SUFFIXES, *SMALL])
def test_cells_are_those_of_numpy(suffix: str) -> None:
    history = mg.run(automaton(suffix), steps=40, every=20)
    for step, cells in zip((0, 20, 40), history.cell.values, strict=True):
        assert np.array_equal(cells, life(soup_on(suffix), suffix, step))


@pytest.mark.few(1)
@pytest.mark.parametrize("suffix", ["K30*,20", "K31,21*", "K30*+1,21", "C31,20", "S29"])
def test_results_depend_neither_on_ranks_nor_on_halos_and_threads(suffix: str) -> None:
    model = automaton(suffix)

    def digest(comm: Any = None, **options: Any) -> str:
        return str(mg.run(model, steps=37, comm=comm, **options).digest)

    alone = digest()
    for ranks, options in [(2, {}), (6, {"halo_depth": 3}), (5, {"overlap": False}), (4, {"threads": 2})]:
        assert set(mg.run_virtual(ranks, lambda comm: digest(comm, **options))) == {alone}
    populations = watch(model, range(38))
    assert populations[37]["population"] == life(soup_on(suffix), suffix, 37).sum()
    assert watch(model, range(38), ranks=5, layout="bisection", overlap=False) == populations


def test_a_rule_that_knows_directions_and_states() -> None:
    """Four states that take on the sum of the cell above and the one to the left."""

    @mg.rule(states=4, neighbourhood=mg.moore(1))
    def drift(cell: Any, near: Any) -> Any:
        return (near[-1, 0] + 2 * near[0, -1] + near[-1, 1] + cell) % 4

    for suffix in ("K8*,5", "C6,7", "S6"):
        cells = np.random.default_rng(1).integers(0, 4, parse_bounds(suffix).shape, dtype=np.uint8)
        model = mg.automaton(drift, cells.shape, init=cells, boundary=parse_bounds(suffix).boundary)
        found = mg.run(model, steps=5).cell.values[-1]
        for _ in range(5):
            wide = bordered(cells, suffix)
            cells = (wide[:-2, 1:-1] + 2 * wide[1:-1, :-2] + wide[:-2, 2:] + cells) % 4
        assert np.array_equal(found, cells)


def test_a_second_order_update_runs_backwards_on_a_sphere() -> None:
    model = automaton("S16", update="second-order")
    there = mg.run(model, steps=30, every=1).cell.values
    back = mg.automaton(
        "B3/S23", (16, 16), init=there[-2], before=there[-1], update="second-order", boundary="sphere"
    )  # fmt: skip
    assert np.array_equal(mg.run(back, steps=29).cell.values[-1], there[0])


@pytest.mark.skipif(shutil.which("bgolly") is None, reason="needs bgolly: apt-get install golly")
@pytest.mark.few(6)
@pytest.mark.parametrize("rule", ["B3/S23", "B36/S23", "B2-a/S12", "B2/S34H"])
@pytest.mark.parametrize("suffix", [*SUFFIXES, *SMALL])
def test_agrees_with_golly(rule: str, suffix: str, tmp_path: Path) -> None:
    """Cells after 300 generations, and the suffix that minga writes."""
    model = automaton(suffix, rule)
    name = f"{rule}:{suffix}"
    (tmp_path / "soup.rle").write_text(write_rle(soup_on(suffix), name))
    assert model.about["pattern_rule"].endswith(suffix)
    for steps in (1, 300):
        command = ["bgolly", "-a", "QuickLife", "-m", str(steps), "-r", name, "-o", "left.rle", "soup.rle"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
        golly = read_rle((tmp_path / "left.rle").read_text())
        found = mg.run(model, steps=steps).cell.values[-1]
        alive = np.argwhere(found)
        assert golly.population == len(alive)
        if len(alive):
            low, high = alive.min(axis=0), alive.max(axis=0) + 1
            assert np.array_equal(golly.cells, found[low[0] : high[0], low[1] : high[1]])


@pytest.mark.parametrize(
    ("change", "key", "message"),
    [
        ({"rule": "R2,C0,M1,S3..8,B5..9,NM"}, "grid.boundary", "2 cells away"),
        ({"boundary": "sphere", "shape": (4, 5)}, "grid", "4 x 5"),
        ({"boundary": ["twisted", "fixed"]}, "grid.boundary", "joins no ends"),
        ({"boundary": [{"twisted": 1}, "twisted"]}, "grid.boundary", "joins no ends"),
        ({"boundary": [{"twisted": 0.5}, "periodic"]}, "grid.boundary", "joins no ends"),
        ({"boundary": ["sphere", "periodic"]}, "grid.boundary", "joins no ends"),
        ({"boundary": ["twisted"]}, "grid.boundary", "joins no ends"),
        ({"shape": (4, 4, 4)}, "grid.boundary", "3 axes"),
        ({"shape": (8,), "rule": "W30"}, "grid.boundary", "1 axes"),
        ({"update": "coloured"}, "grid.boundary", "joined in reverse"),
        ({"storage": "bits"}, "automaton.storage", "joined in reverse"),
        ({"skip_quiet": True}, "automaton.skip_quiet", "joined in reverse"),
    ],
)
def test_what_a_surface_cannot_have(change: dict[str, Any], key: str, message: str) -> None:
    given = {"rule": "B3/S23", "shape": (6, 6), "boundary": "twisted", "init": {"soup": 0.5}} | change
    with pytest.raises(mg.CaseError, match=message) as found:
        mg.automaton(given.pop("rule"), given.pop("shape"), **given)
    assert found.value.key == key
    assert found.value.remedy


def test_kernels_that_read_what_is_not_beyond_a_seam_are_refused() -> None:
    grid = automaton("S8").grid
    u, row = mg.Field("u", grid, slots=2), mg.Field("row", grid, axes=(1,))

    def far(old: Any, new: Any) -> None:
        new[0, 0] = old[2, 0]

    def beside(old: Any, new: Any) -> None:
        new[0, 0] = old[-1]

    def own(old: Any, new: Any) -> None:
        new[0, 0] = old[0]

    def around(cell: Any) -> None:
        cell[0, 0] = cell[-1, 0] + cell[0, 1]

    with pytest.raises(mg.ProgramError, match="next cells, on a sphere"):
        mg.Program().apply(mg.kernel(far), u.now, u.next)
    with pytest.raises(mg.ProgramError, match="lacks axes of its grid, on a sphere"):
        mg.Program().apply(mg.kernel(beside), row, u.next)
    mg.Program().apply(mg.kernel(own), row, u.next)
    with pytest.raises(mg.ProgramError, match="cells of one colour meet"):
        mg.Program().apply(mg.kernel(around, order="red-black"), u)
    with pytest.raises(mg.LayoutError, match="cannot be coarsened"):
        grid.coarsen()
    with pytest.raises(mg.LayoutError, match="not periodic"):
        mg.Grid((8, 8), seam=grid.seam)


@pytest.mark.few(4)
@pytest.mark.parametrize("suffix", ["K6*,5", "K5,6*", "K6*+1,5", "C6,5", "S6"])
@pytest.mark.parametrize("cut", [pytest.param((6, 5), marks=pytest.mark.slow), (3, 2), (1, 5), (6, 1), (2, 2)])
def test_ranks_that_own_corners_and_single_cells(suffix: str, cut: tuple[int, int]) -> None:
    """Blocks of one cell, row or column, or corners of their own, with and without overlap."""
    model, cells = automaton(suffix), life(soup_on(suffix), suffix, 12)
    for overlap in (True, False):
        body = partial(mg.run, model, 12, layout="cartesian:{}x{}".format(*cut), overlap=overlap)
        found = mg.run_virtual(cut[0] * cut[1], lambda comm, body=body: body(comm=comm))
        assert np.array_equal(found[0].cell.values[-1], cells)


@pytest.mark.parametrize("suffix", ["K8*+1,9", "C8,9", "S9"])
@pytest.mark.parametrize("device", ["cpu", "fake"])
def test_work_moves_between_ranks_and_device_kernels_know_seams(suffix: str, device: str) -> None:
    cells = soup_on(suffix)
    grid = automaton(suffix).grid
    cell = mg.Field("cell", grid, "u1", slots=2)

    def rule(old: Any, new: Any) -> None:
        near = sum(old[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        new[0, 0] = mg.where((near == 3) | ((near == 2) & (old[0, 0] == 1)), 1, 0)

    step = mg.Program("step")
    step.apply(mg.kernel(rule), cell, cell.next)
    step.rotate(cell)

    def work(comm: Any) -> Any:
        on: Any = FakeDevice() if device == "fake" else "cpu"
        with mg.Engine(slabs(grid.box, 3), grid=grid, comm=comm, device=on) as engine:
            engine.set(cell, cells)
            engine.run(step, 5)
            engine.relayout({grid: slabs(grid.box, 3, 1, [1.0, 3.0, 2.0])})
            engine.run(step, 6)
            return engine.gather(cell)

    assert np.array_equal(mg.run_virtual(3, work)[0], life(cells, suffix, 11))

"""Transforms over all axes and what is solved with them: round trips, SciPy, exact equations, same bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.fft
from numpy.typing import NDArray

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.engine.live import dead_slots
from minga.solve.fft import portable
from minga.solve.fft.lines import LineTransform, transform_lines
from minga.solve.fft.symbols import cosines, sines

Values = NDArray[np.float64]


def run(
    model: mg.Model, wanted: Sequence[mg.Field], ranks: int = 1, layout: str = "cartesian", **options: Any
) -> list[Values]:
    """Whole fields after one step, from rank 0."""

    def work(comm: Comm | None) -> list[Any]:
        with mg.Engine(model.layouts(layout, ranks), comm=comm, **options) as engine:
            for slot, value in model.start_values():
                engine.set(slot, value)
            assert engine.run(model.step).ok
            return [engine.gather(item) for item in wanted]

    return work(None) if ranks == 1 else run_virtual(ranks, work)[0]


def noise(shape: Sequence[int], seed: int = 1) -> Values:
    return np.random.default_rng(seed).random(tuple(shape))


class Trial:
    """A model that transforms noise and transforms it back."""

    def __init__(self, shape: Sequence[int], periodic: Any = True, **options: Any) -> None:
        grid = mg.Grid(shape, periodic=periodic)
        self.fft = mg.solve.FFT(grid, **options)
        centre, dtype = options.get("centre", ()), options.get("dtype", "f8")
        count = 2 if options.get("complex") else 1
        self.u = [mg.Field(f"u{i}", grid, dtype, centre=centre) for i in range(count)]
        self.back = [mg.Field(f"back{i}", grid, dtype, centre=centre) for i in range(count)]
        self.modes = self.fft.spectrum("modes")
        step = mg.Program("step")
        self.fft.forward(step, self.u, self.modes)
        self.fft.inverse(step, self.modes, self.back)
        self.values = [noise(item.points.shape, i).astype(dtype) for i, item in enumerate(self.u)]
        fields = (*self.u, *self.back, *self.modes.fields, *self.fft.fields)
        initial = {item.name: values for item, values in zip(self.u, self.values, strict=True)}
        self.model = mg.Model("trial", grid, fields, step, initial, hierarchies=(self.fft,), output=("back0",))

    def run(self, ranks: int = 1, layout: str = "cartesian", **options: Any) -> list[Values]:
        return run(self.model, (*self.back, *self.modes.fields), ranks, layout, **options)


CASES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "1-D": ((12,), {}),
    "2-D": ((16, 24), {}),
    "3-D": ((8, 6, 10), {}),
    "complex": ((6, 5, 8), {"complex": True}),
    "walls": ((8, 7), {"periodic": False, "walls": {"y": ("dirichlet", "neumann"), "x": "neumann"}}),
    "one periodic axis": ((15, 9), {"periodic": (True, False), "walls": "dirichlet"}),
    "points on walls": ((8, 7, 4), {"periodic": (False, True, False), "walls": "dirichlet", "centre": "y"}),
    "single precision": ((16, 24), {"dtype": "f4"}),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CASES)
def test_round_trips_have_the_same_bits_on_any_number_of_ranks(name: str) -> None:
    shape, options = CASES[name]
    trial = Trial(shape, **options)
    found = trial.run()
    for values, back in zip(trial.values, found, strict=False):
        inside = values
        if trial.u[0].centre[0] and name == "points on walls":  # values on the walls have no modes
            inside = np.pad(values[1:-1], ((1, 1), (0, 0), (0, 0)))
        assert np.abs(back - inside).max() < (1e-6 if options.get("dtype") == "f4" else 2e-15)
    for ranks, layout in [(2, "slabs"), (3, "cartesian"), (4, "cartesian"), (7, "cartesian")]:
        for one, other in zip(found, trial.run(ranks, layout), strict=True):
            assert one.tobytes() == other.tobytes()


def test_threads_do_not_matter() -> None:
    trial = Trial((300, 128))
    assert [v.tobytes() for v in trial.run()] == [v.tobytes() for v in trial.run(threads=3)]


@pytest.mark.parametrize("shape", [(30,), (16, 24), (8, 6, 10)])
def test_spectra_are_those_of_scipy_axis_by_axis(shape: tuple[int, ...]) -> None:
    trial = Trial(shape)
    _, re, im = trial.run()
    composed = scipy.fft.rfft(trial.values[0], axis=-1)
    for axis in range(len(shape) - 2, -1, -1):
        composed = scipy.fft.fft(composed, axis=axis)
    assert np.array_equal(re + 1j * im, composed)
    weight = np.full(shape[-1] // 2 + 1, 2.0)
    weight[0] = weight[-1] = 1.0
    energy = (weight * (re**2 + im**2)).sum() / math.prod(shape)
    assert energy == pytest.approx((trial.values[0] ** 2).sum(), rel=1e-13)  # Parseval


def test_transforms_between_walls_are_those_of_scipy() -> None:
    trial = Trial((8, 7), periodic=False, walls={"y": ("dirichlet", "neumann"), "x": "neumann"})
    expected = scipy.fft.dst(scipy.fft.dct(trial.values[0], 2, axis=1), 4, axis=0)
    assert np.array_equal(trial.run()[1], expected)


@pytest.mark.parametrize("kind", ["fourier", "half", "sine-1", "cosine-1", "sine-2", "cosine-2", "sine-4", "cosine-4"])
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_are_inverted_in_pieces_of_any_size(kind: Any, axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    line = LineTransform(kind, axis, 9)
    given = [noise((9, 9), seed) for seed in range(2 if kind == "fourier" else 1)]
    if kind == "sine-1":
        given[0] = np.pad(np.moveaxis(given[0], axis, 0)[1:-1], ((1, 1), (0, 0)))
        given[0] = np.moveaxis(given[0], 0, axis)
    shape = tuple(line.modes if a == axis else 9 for a in range(2))
    seen = set()
    for piece in (1, 40, 1 << 14):
        monkeypatch.setattr("minga.solve.fft.lines._PIECE", piece)
        modes = [np.empty(shape) for _ in range(2 if kind in ("half", "fourier") else 1)]
        transform_lines(line, given, modes)
        back = [np.empty((9, 9)) for _ in given]
        transform_lines(line, modes, back, inverse=True, scale=line.scale)
        assert all(np.abs(a - b).max() < 1e-15 for a, b in zip(given, back, strict=True))
        seen.add(b"".join(each.tobytes() for each in (*modes, *back)))
    assert len(seen) == 1


def test_checkpoints_leave_the_workspace_out() -> None:
    trial = Trial((16, 24))
    assert dead_slots(trial.model) >= {item.now for item in (*trial.fft.fields, *trial.modes.fields)}


def test_sines_are_accurate() -> None:
    numerators = np.arange(-97, 98)
    assert np.abs(sines(numerators, 97) - np.sin(np.pi * numerators / 97)).max() < 4e-16
    assert np.abs(cosines(numerators, 97) - np.cos(np.pi * numerators / 97)).max() < 4e-16
    assert np.array_equal(sines(numerators + 4 * 97, 97), sines(numerators, 97))
    assert sines(np.array([0, 1, 2, 3]), 2).tolist() == [0.0, 1.0, 0.0, -1.0]


def test_a_library_whose_bits_differ_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable, "fingerprint", lambda: "")
    with pytest.warns(RuntimeWarning, match="depend on the number of lines"):
        Trial((4, 4)).run()


def test_gpus_are_refused() -> None:
    trial = Trial((4, 4))
    with mg.Engine(trial.model.layouts("slabs", 1), native=False) as engine:
        device: Any = object()
        trial.model.step.operations[0].function(engine)  # type: ignore[union-attr]
        engine.device = device
        with pytest.raises(mg.ProgramError, match="a transform on a GPU"):
            trial.model.step.operations[0].function(engine)  # type: ignore[union-attr]
        engine.device = None


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        (mg.Grid((8, 8), periodic=True, shift={"y": {"x": 1}}), {}, "shifted torus"),
        (mg.Grid((8,)), {"dtype": "i4"}, "type i4"),
        (mg.Grid((8,)), {"walls": {"x": ("dirichlet", "neumann")}, "centre": "x"}, "no transform along 'x'"),
    ],
)
def test_unsuitable_grids_are_refused(grid: mg.Grid, options: Any, message: str) -> None:
    with pytest.raises(mg.LayoutError, match=message):
        mg.solve.FFT(grid, **options)


def test_other_fields_are_refused() -> None:
    grid = mg.Grid((8, 8), periodic=True)
    fft = mg.solve.FFT(grid)
    with pytest.raises(mg.ProgramError, match="a transform of u"):
        fft.forward(mg.Program("step"), mg.Field("u", mg.Grid((8, 8))), fft.spectrum("modes"))


# Poisson's equation --------------------------------------------------------------------------------------------------
def poisson_model(grid: mg.Grid, centre: str = "", **options: Any) -> tuple[mg.Model, mg.Field, Values]:
    """A model that solves Poisson's equation for a right side of noise; its solution and the right side."""
    poisson = mg.solve.Poisson(grid, centre=centre, **options)
    f, u = mg.Field("f", grid, centre=centre), mg.Field("u", grid, centre=centre)
    values = noise(f.points.shape)
    if centre:
        values[0] = values[-1] = 0.0
    step = mg.Program("step")
    poisson(step, f, u)
    initial = {**poisson.initial, f: values}
    return mg.Model("poisson", grid, (u, f, *poisson.fields), step, initial, hierarchies=poisson.hierarchies), u, values


def second(u: Values, axis: int, low: str, high: str) -> Values:
    """The second difference along an axis of unit spacing, entry by entry, with walls on faces."""
    u = np.moveaxis(u, axis, 0)
    ends = {"periodic": (u[-1], u[0]), "dirichlet": (-u[0], -u[-1]), "neumann": (u[0], u[-1])}
    long = np.concatenate((ends[low][0][None], u, ends[high][1][None]))
    return np.moveaxis(long[2:] - 2.0 * u + long[:-2], 0, axis)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        ((12,), (("dirichlet", "neumann"),)),
        ((8, 9), (("periodic", "periodic"), ("dirichlet", "dirichlet"))),
        ((7, 8), (("neumann", "neumann"), ("neumann", "dirichlet"))),
        ((5, 6, 8), (("periodic", "periodic"), ("dirichlet", "dirichlet"), ("neumann", "neumann"))),
    ],
)
def test_difference_equations_are_solved_to_rounding(shape: Any, kinds: Any) -> None:
    grid = mg.Grid(shape, periodic=[low == "periodic" for low, _ in kinds])
    walls = {axis: pair for axis, pair in zip(grid.axes, kinds, strict=True) if pair[0] != "periodic"}
    model, u, f = poisson_model(grid, walls=walls, shift=0.25)
    found = run(model, (u,))[0]
    laplacian = sum(second(found, axis, *pair) for axis, pair in enumerate(kinds))
    assert np.abs(laplacian - 0.25 * found - f).max() < 1e-14
    for ranks in (2, 3, 4):
        assert run(model, (u,), ranks)[0].tobytes() == found.tobytes()


@pytest.mark.few(2)
@pytest.mark.parametrize("order", [2, 4, 8, 16])
def test_differences_of_any_order_are_solved_on_periodic_boxes(order: int) -> None:
    """The equation holds for minga's own operator, and the means of both sides are left out."""
    grid = mg.Grid((24, 20), spacing=(0.5, 0.25), periodic=True)
    model, u, f = poisson_model(grid, order=order)
    laplacian = mg.Field("laplacian", grid)

    @mg.kernel
    def apply(u: Any, result: Any) -> None:
        result[0, 0] = mg.laplace(u, order=order)

    step = mg.Program("step")
    step.include(model.step)
    step.apply(apply, u, laplacian)
    both = mg.Model("both", grid, (*model.fields, laplacian), step, model.initial, hierarchies=model.hierarchies)
    solution, image = run(both, (u, laplacian))
    assert np.abs(image - (f - f.mean())).max() < 1e-12
    assert abs(solution.mean()) < 1e-15


def test_points_on_walls() -> None:
    grid = mg.Grid((10,))
    model, u, f = poisson_model(grid, centre="x", walls="dirichlet")
    found = run(model, (u,))[0]
    assert found[0] == found[-1] == 0.0
    assert np.abs(found[2:] - 2 * found[1:-1] + found[:-2] - f[1:-1]).max() < 1e-14


def test_spectral_solutions_are_exact_for_single_modes() -> None:
    n, length = 16, 3.0
    grid = mg.Grid((n, n), spacing=length / n, periodic=(True, False))
    poisson = mg.solve.Poisson(grid, walls="dirichlet", order="spectral")
    f, u = mg.Field("f", grid), mg.Field("u", grid)
    step = mg.Program("step")
    poisson(step, f, u)
    y, x = np.meshgrid(grid.centres("y"), grid.centres("x"), indexing="ij")
    exact = np.cos(2 * np.pi * 3 * y / length) * np.sin(np.pi * 2 * x / length)
    factor = -((2 * np.pi * 3 / length) ** 2) - (np.pi * 2 / length) ** 2
    initial = {**poisson.initial, f: factor * exact}
    model = mg.Model("poisson", grid, (u, f, *poisson.fields), step, initial, hierarchies=poisson.hierarchies)
    assert np.abs(run(model, (u,))[0] - exact).max() < 1e-14


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        (mg.Grid((3,), spacing=[[1.0, 2.0, 1.0]]), {}, "must be equal|by transforms"),
        (mg.Grid((8,)), {"order": 4}, "between walls"),
        (mg.Grid((8,)), {"order": 3}, "accuracy 3"),
        (mg.Grid((8,)), {"shift": -1.0}, "shift"),
    ],
)
def test_unsuitable_equations_are_refused(grid: mg.Grid, options: Any, message: str) -> None:
    with pytest.raises(mg.LayoutError, match=message):
        mg.solve.Poisson(grid, **options)

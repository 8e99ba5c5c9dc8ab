"""Operators and boundary conditions against exact solutions: orders, and the numbers of runs done by hand."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg
from thinned import thinned

Array = NDArray[np.float64]
EDGE = 5
"""Points next to an end that are left out where only the operator is tested."""


def widths(n: int, kind: str) -> Any:
    if kind == "uniform":
        return 1.0 / n
    faces = np.tanh(1.2 * np.linspace(-1, 1, n + 1)) / np.tanh(1.2)
    return np.diff(faces) / 2


def line(kind: str) -> Callable[[int], mg.Grid]:
    return lambda n: mg.Grid((n,), spacing=[widths(n, kind)])


def square(kind: str) -> Callable[[int], mg.Grid]:
    return lambda n: mg.Grid((n, n), spacing=[widths(n, kind)] * 2)


def places(grid: mg.Grid, centre: tuple[str, ...]) -> list[Array]:
    axes = []
    for axis, name in enumerate(grid.axes):
        faces = grid.faces(axis)[: -1 if grid.periodic[axis] else None]
        axes.append(faces if name in centre else grid.positions(axis))
    return list(np.meshgrid(*axes, indexing="ij"))


def error(grid: mg.Grid, kernel: Any, given: list[Any], exact: Any, centre: tuple[str, ...] = ()) -> float:
    """The largest error of a kernel's result, away from the ends of axes that are not periodic."""
    fields = [mg.Field(f"f{k}", grid, centre=c, boundary=mg.fixed(np.nan)) for k, (_, c) in enumerate(given)]
    out = mg.Field("out", grid, centre=centre)
    inside = tuple(
        (0, n) if periodic else (EDGE, n - EDGE) for n, periodic in zip(out.points.shape, grid.periodic, strict=True)
    )
    program = mg.Program("operator")
    program.apply(kernel, *fields, out, region=mg.Box(*zip(*inside, strict=True)))
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        for field, (function, points) in zip(fields, given, strict=True):
            engine.set(field, function(*places(grid, points)))
        engine.run(program)
        found = engine.gather(out)
    cut = tuple(slice(*ends) for ends in inside)
    return float(abs(found - exact(*places(grid, centre)))[cut].max())


def order_of(make: Callable[[int], mg.Grid], *case: Any, n: int = 32) -> float:
    coarse, fine = (error(make(size), *case) for size in (n, 2 * n))
    return float(np.log2(coarse / fine))


def u(x: Array) -> Array:
    return np.asarray(np.exp(np.sin(3 * x)))


def u_x(x: Array) -> Array:
    return np.asarray(3 * np.cos(3 * x) * u(x))


def u_xx(x: Array) -> Array:
    return np.asarray((9 * np.cos(3 * x) ** 2 - 9 * np.sin(3 * x)) * u(x))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("order", "kind"),
    thinned(itertools.product([2, 4, 6], ["uniform", "stretched"]), (2, "uniform"), (4, "stretched"), (6, "uniform")),
)
def test_derivatives_have_their_order(order: int, kind: str) -> None:
    @mg.kernel
    def first(u, new):
        new[0] = mg.d(u, "x", 1, order)

    @mg.kernel
    def second(u, new):
        new[0] = mg.d(u, "x", 2, order)

    @mg.kernel
    def forward(u, new):
        new[0] = mg.d(u, "x", 1, order, "forward")

    @mg.kernel
    def backward(u, new):
        new[0] = mg.d(u, "x", 1, order, "backward")

    @mg.kernel
    def between(u, new):
        new[0] = mg.d(u, "x", 0, order, "backward")

    cells, faces = (), ("x",)
    for kernel, source, target, exact in (
        (first, cells, cells, u_x), (second, cells, cells, u_xx), (first, faces, faces, u_x),
        (second, faces, faces, u_xx), (forward, faces, cells, u_x), (backward, cells, faces, u_x),
        (between, cells, faces, u),
    ):  # fmt: skip
        assert abs(order_of(line(kind), kernel, [(u, source)], exact, target) - order) < 0.25


def test_third_and_fourth_derivatives() -> None:
    @mg.kernel
    def third(u, new):
        new[0] = mg.d(u, "x", 3, 4)

    @mg.kernel
    def fourth(u, new):
        new[0] = mg.d(u, "x", 4)

    def sine(x: Array) -> Array:
        return np.asarray(np.sin(5 * x))

    assert abs(order_of(line("uniform"), third, [(sine, ())], lambda x: -125 * np.cos(5 * x)) - 4) < 0.2
    assert abs(order_of(line("uniform"), fourth, [(sine, ())], lambda x: 625 * np.sin(5 * x)) - 2) < 0.2


@pytest.mark.few(2)
@pytest.mark.parametrize(("kind", "order"), [("uniform", 2), ("uniform", 4), ("stretched", 2), ("stretched", 4)])
def test_variable_coefficients(kind: str, order: int) -> None:
    @mg.kernel
    def flow(k, u, new):
        new[0] = mg.div_grad(k, u, order)

    def exact(x: Array) -> Array:
        return np.asarray((1 + x**2) * u_xx(x) + 2 * x * u_x(x))

    assert abs(order_of(line(kind), flow, [(lambda x: 1 + x**2, ()), (u, ())], exact) - order) < 0.25


def test_a_full_tensor() -> None:
    @mg.kernel
    def flow(a, b, c, u, new):
        new[0, 0] = mg.div_grad(((a, c), (c, b)), u)

    given: list[Any] = [
        (lambda y, x: 1 + y, ()), (lambda y, x: 2 + x * x, ()), (lambda y, x: np.sin(x * y), ()),
        (lambda y, x: np.exp(y + x), ()),
    ]  # fmt: skip

    def exact(y: Array, x: Array) -> Array:
        return np.asarray(np.exp(y + x) * (4 + y + x * x + 2 * x + 2 * np.sin(x * y) + (y + x) * np.cos(x * y)))

    assert abs(order_of(square("stretched"), flow, given, exact) - 2) < 0.1


def test_the_flux_through_a_jump() -> None:
    """Coefficients 1 | 100 with a jump on a face, u from 0 to 1: only the harmonic mean is exact."""
    n = 20
    grid = mg.Grid((n,), spacing=1 / n)
    k, w, out = mg.Field("k", grid, boundary=mg.zero_gradient()), mg.Field("u", grid), mg.Field("out", grid)
    w = mg.Field("u", grid, boundary={"x": (mg.dirichlet(0.0), mg.dirichlet(1.0))})

    def solved(mean: str) -> float:
        coefficient = np.where(np.arange(n) < n // 2, 1.0, 100.0)
        faces = coefficient[1:] * coefficient[:-1] / (0.5 * (coefficient[1:] + coefficient[:-1]))
        if mean == "arithmetic":
            faces = 0.5 * (coefficient[1:] + coefficient[:-1])
        resistance = np.concatenate([[0.5 / coefficient[0]], 1 / faces, [0.5 / coefficient[-1]]])
        flux = n / resistance.sum()
        values = flux / n * np.cumsum(resistance)[:-1]

        @mg.kernel
        def residual(k, u, new):
            new[0] = mg.div_grad(k, u, mean=mean)

        program = mg.Program("residual")
        program.apply(residual, k, w, out)
        with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
            engine.set(k, coefficient)
            engine.set(w, values)
            engine.run(program)
            found = engine.gather(out)
        assert abs(found).max() < 1e-9  # the operator has this flux through all faces
        return float(flux)

    assert solved("harmonic") == pytest.approx(1.9801980198, rel=1e-10)
    assert solved("arithmetic") == pytest.approx(2.080, abs=5e-4)


# Curved coordinates --------------------------------------------------------------------------------------------------
def spherical(n: int) -> mg.Grid:
    return mg.Grid((n, n), geometry="spherical", spacing=(1 / n, 1.5 / n), origin=(0.5, 0.4))


def polar(n: int) -> mg.Grid:
    return mg.Grid((n, n), geometry="polar", spacing=(1 / n, 2 * np.pi / n), origin=(0.5, 0.0), periodic=(False, True))


def cylindrical(n: int) -> mg.Grid:
    return mg.Grid((n, n), ("z", "r"), geometry="cylindrical", spacing=1 / n, origin=(0.0, 0.5))


def ball(n: int) -> mg.Grid:
    return mg.Grid(
        (n, n, n), geometry="spherical", spacing=(1 / n, 1.5 / n, 2 * np.pi / n), origin=(0.5, 0.4, 0.0),
        periodic=(False, False, True),
    )  # fmt: skip


def wave(r: Array, angle: Array) -> Array:
    return np.asarray(np.sin(2 * r) * np.cos(angle) + r**3)


def laplacian(k: int, r: Array, angle: Array, turned: Array | float) -> Array:
    """u_rr + k / r u_r + turned u_angle,angle of `wave`; on a sphere with what cos(theta) adds."""
    slope, bend = 2 * np.cos(2 * r) * np.cos(angle) + 3 * r**2, -4 * np.sin(2 * r) * np.cos(angle) + 6 * r
    return np.asarray(bend + k / r * slope - turned * np.sin(2 * r) * np.cos(angle))


@pytest.mark.slow
@pytest.mark.parametrize("order", [2, 4])
def test_curved_coordinates(order: int) -> None:
    @mg.kernel
    def laplace(u, new):
        new[0, 0] = mg.laplace(u, order)

    @mg.kernel
    def divergence(a, b, new):
        new[0, 0] = mg.div((a, b), order)

    @mg.kernel
    def slope(u, new):
        new[0, 0] = mg.gradient_squared(u, order)

    def radial(r: Array, angle: Array) -> Array:
        return np.asarray(np.sin(2 * r) * np.cos(angle))

    def around(r: Array, angle: Array) -> Array:
        return np.asarray(r * np.sin(angle))

    def diverging(k: int) -> Any:
        return lambda r, a: 2 * np.cos(2 * r) * np.cos(a) + k / r * np.sin(2 * r) * np.cos(a) + k * np.cos(a)

    cases: list[Any] = [
        (spherical, laplace, [(wave, ())], lambda r, a: laplacian(2, r, a, 2 / r**2)),
        (polar, laplace, [(wave, ())], lambda r, a: laplacian(1, r, a, 1 / r**2)),
        (cylindrical, laplace, [(lambda z, r: wave(r, z), ())], lambda z, r: laplacian(1, r, z, 1.0)),
        (spherical, divergence, [(radial, ()), (around, ())], diverging(2)),
        (polar, divergence, [(radial, ()), (around, ())], diverging(1)),
        (
            spherical, slope, [(wave, ())],
            lambda r, a: (2 * np.cos(2 * r) * np.cos(a) + 3 * r**2) ** 2 + (np.sin(2 * r) * np.sin(a) / r) ** 2,
        ),
    ]  # fmt: skip
    for make, *case in cases:
        assert abs(order_of(make, *case, n=64) - order) < 0.25


def test_a_full_tensor_in_curved_coordinates() -> None:
    """Only the terms off the diagonal: the slope along the face is that by length on the face."""

    @mg.kernel
    def flow(u, new):
        new[0, 0] = mg.div_grad(((0.0, 1.0), (1.0, 0.0)), u)

    given = [(lambda r, a: r**3 * np.sin(a), ())]
    assert abs(order_of(polar, flow, given, lambda r, a: 6 * r * np.cos(a)) - 2) < 0.2
    assert abs(order_of(spherical, flow, given, lambda r, a: 10 * r * np.cos(a), n=64) - 2) < 0.3


@pytest.mark.parametrize("order", thinned([2, 4], 4))
def test_the_curl_in_curved_coordinates(order: int) -> None:
    @mg.kernel
    def curl(a, b, new):
        new[0, 0] = mg.curl((a, b), order)

    given: list[Any] = [(lambda r, a: np.sin(3 * r) * np.sin(a), ()), (lambda r, a: np.sin(3 * r) * np.cos(a), ())]

    def around(r: Array, a: Array) -> Array:
        return np.asarray(3 * np.cos(3 * r) * np.cos(a))  # what sin(3 r) / r gives twice cancels

    for grids in (polar, spherical):
        assert abs(order_of(grids, curl, given, around, n=64) - order) < 0.3
    swapped: list[Any] = [(lambda z, r: np.sin(3 * z) * np.sin(r), ()), (lambda z, r: np.sin(3 * z) * np.sin(r), ())]

    def across(z: Array, r: Array) -> Array:
        return np.asarray(3 * np.cos(3 * z) * np.sin(r) - np.sin(3 * z) * np.cos(r))  # along phi

    assert abs(order_of(cylindrical, curl, swapped, across) - order) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("component", [0, 1, 2])
def test_the_curl_on_a_sphere_of_three_axes(component: int) -> None:
    @mg.kernel
    def curl(a, b, c, new):
        new[0, 0, 0] = mg.curl((a, b, c))[component]

    given: list[Any] = [
        (lambda r, a, b: r * np.sin(a) * np.sin(b), ()), (lambda r, a, b: r**2 * np.sin(b), ()),
        (lambda r, a, b: r * np.sin(a) + 0 * b, ()),
    ]  # fmt: skip
    exact: list[Any] = [
        lambda r, a, b: 2 * np.cos(a) - r * np.cos(b) / np.sin(a),
        lambda r, a, b: -2 * np.sin(a) + np.cos(b) + 0 * r,
        lambda r, a, b: 3 * r * np.sin(b) - np.cos(a) * np.sin(b),
    ]
    assert abs(order_of(ball, curl, given, exact[component]) - 2) < 0.5


@pytest.mark.slow
def test_a_full_tensor_on_a_sphere_of_three_axes() -> None:
    @mg.kernel
    def flow(u, new):
        new[0, 0, 0] = mg.div_grad(((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)), u)

    given = [(lambda r, a, b: r**2 * np.sin(a) ** 2 * np.sin(b), ())]
    assert abs(order_of(ball, flow, given, lambda r, a, b: 4 * np.cos(a) * np.cos(b)) - 2) < 0.3


def test_a_sphere_of_three_axes() -> None:
    @mg.kernel
    def laplace(u, new):
        new[0, 0, 0] = mg.laplace(u)

    def exact(r: Array, theta: Array, phi: Array) -> Array:
        return np.asarray(4 * np.sin(theta) * np.cos(phi) + 12 * r)

    given = [(lambda r, theta, phi: r**2 * np.sin(theta) * np.cos(phi) + r**3, ())]
    assert abs(order_of(ball, laplace, given, exact) - 2) < 0.3


def test_nothing_flows_through_the_axis_or_the_poles() -> None:
    """A ball as a whole: the Laplacian times volumes adds up to what flows through the surface."""
    n = 12
    grid = mg.Grid((n, n), geometry="spherical", spacing=(1 / n, np.pi / n))
    w = mg.Field("u", grid, boundary=mg.neumann(0.0))
    out = mg.Field("out", grid)

    @mg.kernel
    def laplace(u, new):
        new[0, 0] = mg.laplace(u)

    program = mg.Program("laplace")
    program.apply(laplace, w, out)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        engine.set(w, np.random.default_rng(1).random(grid.shape))
        engine.run(program)
        found = engine.gather(out)
    r, theta = grid.faces("r"), grid.faces("theta")
    volumes = np.outer(np.diff(r**3) / 3, -np.diff(np.cos(theta)))
    assert abs((found * volumes).sum()) < 1e-13 * abs(found * volumes).sum()
    assert np.isfinite(found).all()


def whole_ball(n: int) -> mg.Grid:
    return mg.Grid((n, 2 * n), ("r", "theta"), geometry="spherical", spacing=(1 / n, np.pi / 2 / n))


def whole_ball_with_longitude(n: int) -> mg.Grid:
    return mg.Grid(
        (n, n, 2 * n), geometry="spherical", spacing=(1 / n, np.pi / n, np.pi / n), periodic=(False, False, True)
    )


def applied(grid: mg.Grid, kernel: Any, *values: Array) -> tuple[Array, Array]:
    """A kernel's result, beside what it needs beyond the outer end of r, and the volumes of its cells."""
    fields = [mg.Field(f"f{k}", grid, boundary=mg.neumann(0.0)) for k, _ in enumerate(values)]
    out = mg.Field("out", grid)
    program = mg.Program("operator")
    program.apply(kernel, *fields, out)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        for item, value in zip(fields, values, strict=True):
            engine.set(item, value)
        engine.run(program)
        found = engine.gather(out)
    factors = [np.diff(grid.faces("r") ** 3) / 3, -np.diff(np.cos(grid.faces("theta")))]
    factors += [grid.widths(axis) for axis in range(2, grid.ndim)]
    volumes = np.asarray(functools.reduce(np.multiply.outer, factors))
    return found[:-1], volumes[:-1]


def mean_square(found: Array, volumes: Array) -> float:
    return float(np.sqrt((found**2 * volumes).sum() / volumes.sum()))


@pytest.mark.slow
def test_operators_are_consistent_at_the_centre_of_a_ball() -> None:
    """The Laplacian of z and the divergence of the unit vector along z are 0, at r = 0 as well."""

    @mg.kernel
    def laplace(u, new):
        new[0, 0] = mg.laplace(u)

    @mg.kernel
    def divergence(a, b, new):
        new[0, 0] = mg.div((a, b))

    errors: list[list[float]] = []
    for n in (8, 16):
        grid = whole_ball(n)
        r, theta = np.meshgrid(grid.centres("r"), grid.centres("theta"), indexing="ij")
        for kernel, values in ((laplace, [r * np.cos(theta)]), (divergence, [np.cos(theta), -np.sin(theta)])):
            found, volumes = applied(grid, kernel, *values)
            assert abs(found).max() < 2.5 / n  # it was 1 / h, and grew
            errors.append([mean_square(found, volumes)])
    assert np.log2(errors[0][0] / errors[2][0]) > 1.8
    assert np.log2(errors[1][0] / errors[3][0]) > 1.8


@pytest.mark.slow
def test_the_laplacian_is_consistent_at_the_centre_with_all_three_axes() -> None:
    @mg.kernel
    def laplace(u, new):
        new[0, 0, 0] = mg.laplace(u)

    errors = []
    for n in (6, 12):
        grid = whole_ball_with_longitude(n)
        r, theta, phi = np.meshgrid(*map(grid.centres, grid.axes), indexing="ij")
        errors.append(mean_square(*applied(grid, laplace, r * np.sin(theta) * np.cos(phi))))
    assert np.log2(errors[0] / errors[1]) > 1.7


@pytest.mark.slow
def test_a_steady_state_in_a_ball_has_order_2() -> None:
    def error(n: int) -> float:
        grid = whole_ball(n)
        exact = np.outer(grid.centres("r"), np.cos(grid.centres("theta")))
        model = mg.pde(
            "laplace(u)", grid, boundary={
                "r": (mg.neumann(0.0), mg.dirichlet(lambda r, theta: r * mg.cos(theta))), "theta": mg.neumann(0.0),
            },
        )  # fmt: skip
        return float(abs(mg.solve.steady(model, tolerance=1e-7).u.values - exact).max())

    coarse, fine = error(4), error(8)
    assert np.log2(coarse / fine) > 1.8
    assert fine < 2e-3


def test_advection_of_a_constant_by_a_flow_whose_divergence_is_zero() -> None:
    """Velocities on faces that conserve what is inside each cell: u = 1 remains to rounding."""
    n = 8
    grid = whole_ball(n)
    faces = grid.faces("r"), grid.faces("theta")
    stream = np.outer(faces[0] ** 2 / 2, np.sin(faces[1]) ** 2)  # of the unit vector along z
    areas = np.outer(faces[0] ** 2, -np.diff(np.cos(faces[1]))), np.outer(np.diff(faces[0] ** 2) / 2, np.sin(faces[1]))
    flows = np.diff(stream, axis=1), -np.diff(stream, axis=0)
    speeds = [flow / np.where(area < 1e-12, 1.0, area) for flow, area in zip(flows, areas, strict=True)]
    v = mg.Field("v", grid, centre="r")
    w = mg.Field("w", grid, centre="theta")
    u, out = mg.Field("u", grid, boundary=mg.neumann(0.0)), mg.Field("out", grid)

    @mg.kernel
    def carried(v, w, u, new):
        new[0, 0] = mg.advect((v, w), u, "upwind")

    program = mg.Program("carried")
    program.apply(carried, v, w, u, out)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        for item, value in ((v, speeds[0]), (w, speeds[1]), (u, 1.0)):
            engine.set(item, value)
        engine.run(program)
        found = engine.gather(out)
    assert abs(found).max() < 1e-13 * n


PLANES = [
    *(("cartesian", ("x", "y", "z"), pair) for pair in itertools.permutations(("x", "y", "z"), 2)),
    *(("cylindrical", ("r", "phi", "z"), pair) for pair in itertools.permutations(("r", "phi", "z"), 2) if "r" in pair),
    *(("spherical", ("r", "theta", "phi"), pair) for pair in (("r", "theta"), ("theta", "r"))),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("geometry", "axes", "pair"), PLANES)
def test_the_curl_of_a_plane_is_the_component_that_three_axes_have(
    geometry: Any, axes: tuple[str, ...], pair: tuple[str, ...]
) -> None:
    """A component of the curl, at one cell, of a vector in the plane that does not depend on the third axis."""
    (missing,) = (axis for axis, name in enumerate(axes) if name not in pair)

    @mg.kernel
    def plane(a, b, new):
        new[0, 0] = mg.curl((a, b))

    @mg.kernel
    def space(a, b, c, new):
        new[0, 0, 0] = mg.curl((a, b, c))[missing]

    def at(names: tuple[str, ...], kernel: Any) -> float:
        grid = mg.Grid((3,) * len(names), names, geometry=geometry, spacing=0.1, origin=0.5)
        place = dict(zip(names, np.meshgrid(*map(grid.centres, names), indexing="ij"), strict=True))
        low, high = (place[name] for name in sorted(pair))
        vector = dict(zip(sorted(pair), (low * high**2, 0.3 * low**2 + high), strict=True))
        out = mg.Field("out", grid)
        fields = [mg.Field(f"v{name}", grid, boundary=mg.neumann(0.0)) for name in names]
        program = mg.Program("curl")
        program.apply(kernel, *fields, out)
        with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
            for item, name in zip(fields, names, strict=True):
                engine.set(item, vector.get(name, 0.0))
            engine.run(program)
            return float(engine.gather(out)[(1,) * len(names)])

    found = at(pair, plane)
    assert abs(found) > 0.05
    assert found == pytest.approx(at(axes, space), rel=1e-12)


DISC = mg.Grid((6, 8), geometry="polar", spacing=(0.1, np.pi / 4), periodic=(False, True))
BALL = mg.Grid((6, 8), geometry="spherical", spacing=(0.1, np.pi / 8))
CAP = mg.Grid((4, 6, 8), geometry="spherical", spacing=(0.1, 0.1, np.pi / 4), origin=(1.0, 0.0, 0.0))


def recorded(operator: Any, grid: mg.Grid) -> None:
    @mg.kernel
    def apply(u, new):
        new[(0,) * grid.ndim] = operator(u)

    mg.Program("operator").apply(apply, mg.Field("u", grid, boundary=mg.neumann(0.0)), mg.Field("new", grid))


@pytest.mark.parametrize(
    ("operator", "grid", "says"),
    [
        (lambda u: mg.grad(u)[0], DISC, "mg.d of order 2 along 'r' reads across r = 0"),
        (lambda u: mg.laplace(u, 4), DISC, "mg.d of order 4 along 'r'"),
        (lambda u: mg.laplace(u, 4), BALL, "across r = 0"),
        (lambda u: mg.d(u, "theta"), CAP, "along 'theta' reads across a pole"),
        (lambda u: mg.div((u, u), 4), DISC, "across r = 0"),
        (lambda u: mg.advect((1.0, 0.0), u, "up3"), DISC, "mg.advect: up3 along 'r'"),
        (lambda u: mg.advect((1.0, 0.0), u, conservative=False), DISC, "with conservative=False"),
    ],
)
def test_what_reads_cells_at_another_angle_is_refused(operator: Any, grid: mg.Grid, says: str) -> None:
    with pytest.raises(mg.KernelError, match=says):
        recorded(operator, grid)


def test_what_needs_no_cells_at_another_angle() -> None:
    recorded(lambda u: mg.laplace(u) + mg.div((u, u)) + mg.biharmonic(u) + mg.advect((1.0, u), u, "c2"), DISC)
    recorded(lambda u: mg.advect((0.0, 1.0), u, "weno5") + mg.d(u, "phi", 1, 4), DISC)
    recorded(lambda u: mg.laplace(u, 4), mg.Grid((9,), geometry="polar"))
    recorded(lambda u: mg.laplace(u, 4) + mg.grad(u)[0], spherical(9))
    recorded(lambda u: mg.d(u, "r", 1, 4) + mg.d(u, "phi", 1, 4), CAP)


def test_the_order_of_fluxes_between_faces_of_curved_grids() -> None:
    grid = polar(8)

    @mg.kernel
    def divergence(v, w, new):
        new[0, 0] = mg.div((v, w), 4)

    v, w, new = mg.Field("v", grid, centre="r"), mg.Field("w", grid, centre="phi"), mg.Field("new", grid)
    with pytest.raises(mg.KernelError, match="order 4 of a component on faces across 'r'"):
        mg.Program("operator").apply(divergence, v, w, new)


# Time steps ----------------------------------------------------------------------------------------------------------
def advanced(
    grid: mg.Grid, start: Array, rate: Any, boundary: Any, dt: float, steps: int, stages: list[tuple[Any, ...]]
) -> Array:
    """The values after steps of a Runge-Kutta method whose stages are (a, b, c, time): u = a u_n + b u + c dt f(u)."""
    now, w, f = (mg.Field(name, grid, boundary=boundary) for name in ("now", "u", "f"))
    begin = mg.Register("begin")

    @mg.kernel
    def copy(u, new):
        new[0] = u[0]

    @mg.kernel
    def combine(start, f, u, *, a, b, c):
        u[0] = (a * start[0] + b * u[0]) + c * f[0]

    program = mg.Program("run")
    program.let(begin, 0.0)
    with program.repeat(steps):
        program.apply(copy, w, now)
        for a, b, c, time in stages:
            program.let(mg.TIME, begin + time * dt)
            program.apply(rate, w, f)
            program.apply(combine, now, f, w, a=a, b=b, c=c * dt)
        program.let(begin, begin + dt)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        engine.set(w, start)
        engine.run(program)
        found = engine.gather(w)
    assert found is not None
    return found


SSPRK3 = [(0.0, 1.0, 1.0, 0.0), (0.75, 0.25, 0.25, 1.0), (1 / 3, 2 / 3, 2 / 3, 0.5)]

ADVECTION = [
    ("upwind", 1.0, 2.477e-1, 1.392e-1),
    ("van_leer", 1.0, 2.081e-2, 5.531e-3),
    ("up3", 1.0, 1.327e-3, 1.665e-4),
    ("c4", 4 / 3, 8.092e-5, 5.069e-6),
    ("up5", 5 / 3, 6.362e-6, 1.997e-7),
    ("weno5", 5 / 3, 4.475e-5, 1.396e-6),
]


def carried(
    scheme: str, n: int, power: float, start: Array, velocity: float = 1.0, grid: mg.Grid | None = None
) -> Array:
    """Averages after being carried over a length of 1, in steps for n cells."""
    grid = mg.Grid((n,), spacing=1 / n, periodic=True) if grid is None else grid
    steps = int(np.ceil(1 / (0.4 / n**power) - 1e-9))

    @mg.kernel
    def rate(u, f):
        f[0] = -mg.advect((velocity,), u, scheme)

    return advanced(grid, start, rate, None, 1 / steps, steps, SSPRK3)


def mean_sine(n: int) -> Array:
    faces = np.cos(2 * np.pi * np.arange(n + 1) / n)
    return np.asarray(-np.diff(faces) * n / (2 * np.pi))


@pytest.mark.few(2)
@pytest.mark.parametrize(("scheme", "power", "coarse", "fine"), ADVECTION)
def test_a_sine_carried_once_around(scheme: str, power: float, coarse: float, fine: float) -> None:
    for n, expected in ((40, coarse), (80, fine)):
        start = mean_sine(n)
        assert abs(carried(scheme, n, power, start) - start).mean() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("scheme", "low", "high"), [("van_leer", 0.0, 1.0), ("up5", -0.0818, 1.0818), ("weno5", -3e-4, 1.0003)]
)
def test_a_square_wave(scheme: str, low: float, high: float) -> None:
    start = np.where(abs(np.arange(100) - 49.5) < 25, 1.0, 0.0)
    found = carried(scheme, 100, 1.0, start)
    assert found.min() == pytest.approx(low, abs=6e-5)
    assert found.max() == pytest.approx(high, abs=6e-5)


@pytest.mark.parametrize(
    ("scheme", "kind"),
    thinned(itertools.product(["upwind", "up3", "c4", "up5"], ["uniform", "stretched"]), ("up5", "uniform"))
    + thinned(itertools.product(["weno5"], ["uniform", "stretched"])),
)
def test_a_velocity_that_varies_keeps_the_order(scheme: str, kind: str) -> None:
    """The flux through each face, which is what flows out, added up from a face whose flux is known."""

    @mg.kernel
    def out(v, u, f):
        f[0] = mg.advect((v,), u, scheme)

    def wrong(n: int) -> float:
        grid = line(kind)(n)
        v, w, f = (mg.Field(name, grid, boundary=mg.fixed(np.nan)) for name in "vuf")
        program = mg.Program("rate")
        program.apply(out, v, w, f, region=mg.Box((EDGE,), (n - EDGE,)))
        with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
            faces = grid.faces(0)
            engine.set(v, lambda x: 2 + np.sin(3 * x))
            engine.set(w, np.diff(np.sin(5 * faces)) / np.diff(faces) / 5)
            engine.run(program)
            found = engine.gather(f)
        flux = (2 + np.sin(3 * faces)) * np.cos(5 * faces)
        errors = np.cumsum((found * grid.widths(0) - np.diff(flux))[EDGE:-EDGE])
        return float(np.ptp(errors))

    expected = {"upwind": 1, "up3": 3, "c4": 4, "up5": 5, "weno5": 5}[scheme]
    assert np.log2(wrong(32) / wrong(64)) > expected - 0.35


@pytest.mark.slow
def test_mirrored_advection_has_mirrored_bits() -> None:
    start = np.random.default_rng(5).random(40)
    for scheme, *_ in ADVECTION:
        there, back = carried(scheme, 40, 1.0, start), carried(scheme, 40, 1.0, start[::-1], -1.0)
        np.testing.assert_array_equal(there, back[::-1])


@pytest.mark.few(2)
@pytest.mark.parametrize("scheme", ["upwind", "up3", "up5", "c4", "weno5"])
def test_reconstruction_on_a_stretched_axis(scheme: str) -> None:
    @mg.kernel
    def rate(u, f):
        f[0] = mg.advect((1.0,), u, scheme)

    def averages(grid: mg.Grid) -> Array:
        faces = grid.faces(0)
        return np.asarray(np.diff(np.sin(3 * faces)) / np.diff(faces) / 3)

    def wrong(n: int) -> float:
        """The error of the value on faces, from sums of what flows out."""
        grid = line("stretched")(n)
        w, f = mg.Field("u", grid, boundary=mg.fixed(np.nan)), mg.Field("f", grid)
        program = mg.Program("rate")
        program.apply(rate, w, f, region=mg.Box((EDGE,), (n - EDGE,)))
        with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
            engine.set(w, averages(grid))
            engine.run(program)
            found = engine.gather(f)
        exact = np.diff(np.cos(3 * grid.faces(0))) / grid.widths(0)
        return float(abs(found - exact)[EDGE : n - EDGE].max())

    order = {"upwind": 1, "up3": 3, "up5": 5, "c4": 4, "weno5": 5}[scheme]
    assert np.log2(wrong(40) / wrong(80)) > order - 0.35


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "power", "order"), [("van_leer", 1.0, 2), ("weno5", 5 / 3, 5)])
def test_a_sine_carried_once_around_unequal_cells(scheme: str, power: float, order: int) -> None:
    """The widths vary smoothly around the periodic axis, by a factor of three."""

    def wrong(n: int) -> float:
        places = np.arange(n + 1) / n
        grid = mg.Grid((n,), spacing=[np.diff(places + np.sin(2 * np.pi * places) / (4 * np.pi))], periodic=True)
        start = np.diff(-np.cos(2 * np.pi * grid.faces(0))) / grid.widths(0) / (2 * np.pi)
        found = carried(scheme, n, power, start, grid=grid)
        return float((abs(found - start) * grid.widths(0)).sum())

    assert np.log2(wrong(40) / wrong(80)) > order - 0.35


@pytest.mark.few(2)
@pytest.mark.parametrize(("scheme", "beyond"), [("van_leer", 0.0), ("weno5", 2e-3)])
@pytest.mark.parametrize("velocity", [1.0, -1.0])
def test_a_square_wave_on_unequal_cells(scheme: str, beyond: float, velocity: float) -> None:
    """Neighbouring widths differ by up to a factor of two at random; what is carried stays within its bounds."""
    grid = mg.Grid((100,), spacing=[np.random.default_rng(11).uniform(0.0066, 0.0133, 100)], periodic=True)
    start = np.where(abs(np.arange(100) - 49.5) < 25, 1.0, 0.0)
    found = carried(scheme, 150, 1.0, start, velocity, grid)
    assert found.min() >= -beyond - 1e-12
    assert found.max() <= 1.0 + beyond + 1e-12
    assert (found * grid.widths(0)).sum() == pytest.approx((start * grid.widths(0)).sum(), rel=1e-12)


# Boundaries ----------------------------------------------------------------------------------------------------------
RK4_TABLE = [(0.0, 0.0), (0.5, 0.5), (0.5, 0.5), (1.0, 1.0)]


def heated(n: int, order: int, low: mg.Condition | Any, high: Any, grid: mg.Grid | None = None) -> float:
    """The error of u = exp(-t) cos(x + 0.3) at t = 0.5, by RK4 with steps that are short enough to be exact."""
    grid = mg.Grid((n,), spacing=1 / n) if grid is None else grid
    steps = int(np.ceil(0.5 / ({2: 0.3, 4: 0.05, 6: 0.02}[order] * grid.widths(0).min() ** 2)))
    dt = 0.5 / steps
    x = grid.positions(0)
    w, stage, total, f = (mg.Field(name, grid, boundary={"x": (low, high)}) for name in ("u", "stage", "total", "f"))
    begin = mg.Register("begin")

    @mg.kernel
    def rate(u, f):
        f[0] = mg.d(u, "x", 2, order)

    @mg.kernel
    def put(start, f, new, *, c):
        new[0] = start[0] + c * f[0]

    @mg.kernel
    def add(f, total, *, c, kept):
        total[0] = kept * total[0] + c * f[0]

    program = mg.Program("heat")
    program.let(begin, 0.0)
    with program.repeat(steps):
        for number, (c, time) in enumerate(RK4_TABLE):
            program.apply(put, w, f, stage, c=c * dt)
            program.let(mg.TIME, begin + time * dt)
            program.apply(rate, stage, f)
            program.apply(add, f, total, c=dt / (3 if number in (1, 2) else 6), kept=float(number > 0))
        program.apply(put, w, total, w, c=1.0)
        program.let(begin, begin + dt)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        engine.set(w, np.cos(x + 0.3))
        engine.run(program)
        found = engine.gather(w)
    return float(abs(found - np.exp(-0.5) * np.cos(x + 0.3)).max())


def value(x: Any, t: Any) -> Any:
    return mg.exp(-t) * mg.cos(x + 0.3)


def outward(sign: float) -> Any:
    return lambda x, t: -sign * mg.exp(-t) * mg.sin(x + 0.3)


def mixed(sign: float) -> Any:
    return lambda x, t: mg.exp(-t) * (2.0 * mg.cos(x + 0.3) - sign * mg.sin(x + 0.3))


BOUNDARIES: list[tuple[str, Any, int, float, float]] = [
    ("value", lambda s: mg.dirichlet(value), 2, 7.223e-4, 1.808e-4),
    ("value", lambda s: mg.dirichlet(value, order=4), 4, 5.03e-7, 3.27e-8),
    ("derivative", lambda s: mg.neumann(outward(s)), 2, 1.928e-4, 4.875e-5),
    ("derivative", lambda s: mg.neumann(outward(s), order=4), 4, 1.99e-6, 1.37e-7),
    ("mixed", lambda s: mg.robin(2.0, mixed(s)), 2, 6.61e-4, 1.67e-4),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "condition", "order", "coarse", "fine"), BOUNDARIES)
def test_heat_between_walls(name: str, condition: Any, order: int, coarse: float, fine: float) -> None:
    for n, expected in ((10, coarse), (20, fine)):
        assert heated(n, order, condition(-1.0), condition(1.0)) == pytest.approx(expected, rel=6e-3)


@pytest.mark.slow
@pytest.mark.parametrize("order", thinned([2, 4, 6], 2))
def test_orders_between_stretched_walls(order: int) -> None:
    sizes = (20, 28) if order == 6 else (10, 20)
    for condition in (
        lambda s: mg.dirichlet(value, order), lambda s: mg.neumann(outward(s), order),
        lambda s: mg.robin(2.0, mixed(s), order),
    ):  # fmt: skip
        errors = [
            heated(n, order, condition(-1.0), condition(1.0), mg.Grid((n,), spacing=[widths(n, "stretched")]))
            for n in sizes
        ]
        assert np.log(errors[0] / errors[1]) / np.log(sizes[1] / sizes[0]) > order - 0.4

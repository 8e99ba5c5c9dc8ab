"""The problems: equations of py-pde's gallery and explicit ones for Devito, as data that all programs read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Problem:
    """One equation on one grid, advanced by one method with steps of one length.

    Attributes
    ----------
    title
        The name that tables show.
    equations, initial
        Texts by field. Initial values are NumPy expressions of the coordinates, whose names are those of the axes.
    shape, low, high
        The grid, and the ends of its axes.
    dt
        Length of a step.
    periodic
        Whether axes close; walls are as `walls` says, otherwise nothing flows through them.
    integrator
        "euler" or "rk4".
    peer_equations
        Texts for py-pde where it writes them differently.
    walls
        The value at the low end of the first axis as a text of the time.
    dtype
        Type of the fields.
    geometry
        Coordinates.
    first_steps
        Steps until the first result.
    """

    title: str
    equations: Mapping[str, str]
    initial: Mapping[str, str]
    shape: tuple[int, ...]
    low: float
    high: float
    dt: float
    periodic: bool = True
    integrator: str = "euler"
    peer_equations: Mapping[str, str] = field(default_factory=dict)
    walls: str | None = None
    dtype: str = "f8"
    geometry: str = "cartesian"
    order: int = 2
    first_steps: int = 100

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes."""
        return ("r",) if self.geometry == "spherical" else ("x", "y", "z")[: len(self.shape)]

    def as_json(self) -> dict[str, Any]:
        """Return what the programs read."""
        return {**asdict(self), "axes": self.axes}


_BUMP: Final = "exp(-(x - 3)**2 - (y + 2)**2)"
_WAVES: Final = "cos(pi*x/8)*sin(pi*y/16)"

GALLERY: Final[Mapping[str, Problem]] = {
    "diffusion": Problem("diffusion", {"u": "laplace(u)"}, {"u": _BUMP}, (64, 64), -16, 16, 0.02),
    "diffusion-large": Problem("diffusion", {"u": "laplace(u)"}, {"u": _BUMP}, (1024, 1024), -16, 16, 2e-4),
    "brusselator": Problem(
        "Brusselator", {"u": "laplace(u) + 1 - 4*u + v*u**2", "v": "0.1*laplace(v) + 3*u - v*u**2"},
        {"u": f"1 + 0.5*{_WAVES}", "v": f"3 + 0.1*{_WAVES}"}, (64, 64), -32, 32, 1e-3,
    ),
    "cahn-hilliard": Problem(
        "Cahn-Hilliard", {"c": "laplace(c**3 - c - laplace(c))"}, {"c": f"0.3*{_WAVES}"}, (64, 64), -32, 32, 1e-2,
    ),
    "kuramoto-sivashinsky": Problem(
        "Kuramoto-Sivashinsky", {"u": "-laplace(u) - laplace(laplace(u)) - gradient_squared(u)/2"},
        {"u": f"0.1*{_WAVES}"}, (32, 32), -16, 16, 1e-2,
    ),
    "variable-diffusion": Problem(
        "diffusion with k(x)", {"u": "(1.01 + tanh(x))*laplace(u) + d_dx(u)*(1 - tanh(x)**2)"}, {"u": "exp(-x**2)"},
        (64,), -5, 5, 2e-3, periodic=False,
    ),
    "korteweg-de-vries": Problem(
        "Korteweg-de Vries", {"u": "6*u*d_dx(u) - laplace(d_dx(u))"}, {"u": "-0.02*cos(pi*x/16)"}, (64,), -16, 16, 1e-3,
        integrator="rk4",
    ),
    "schroedinger": Problem(
        "Schroedinger", {"psi": "I*laplace(psi)"}, {"psi": "exp(-x**2/4 + 1j*x)"}, (128,), -16, 16, 1e-3,
        integrator="rk4", dtype="c16",
    ),
    "klein-gordon": Problem(
        "Klein-Gordon", {"u": "v", "v": "laplace(u) - u"}, {"u": "exp(-x**2)", "v": "0*x"}, (128,), -16, 16, 1e-2,
        periodic=False, integrator="rk4",
    ),
    "fitzhugh-nagumo": Problem(
        "FitzHugh-Nagumo", {"u": "0.05*laplace(u) + u*(u - 0.5)*(1 - u) + w", "w": "0.01*u - 0.1*w"},
        {"u": f"0.5 + 0.5*{_WAVES}", "w": "0.1*x/16"}, (32, 32), -16, 16, 1e-2, periodic=False,
    ),
    "sin-wall": Problem(
        "wall at sin(t)", {"u": "laplace(u)"}, {"u": "0*x"}, (64,), 0, 16, 1e-2, periodic=False, walls="sin(t)",
    ),
    "spherical": Problem(
        "diffusion in a ball", {"u": "laplace(u)"}, {"u": "exp(-r**2)"}, (128,), 0, 8, 1e-3, periodic=False,
        geometry="spherical",
    ),
}  # fmt: skip
"""Problems beside py-pde: equal grids, differences of order 2, methods and steps."""

EXPLICIT: Final[Mapping[str, Problem]] = {
    "heat-2d": Problem("heat, 2-D, order 2", {"u": "laplace(u)"}, {"u": _BUMP}, (1024, 1024), -16, 16, 2e-4),
    "heat-3d": Problem(
        "heat, 3-D, order 8", {"u": "laplace(u)"}, {"u": f"{_BUMP}*cos(pi*z/16)"}, (192, 192, 192), -16, 16, 2e-3,
        order=8, first_steps=10,
    ),
    "brusselator-large": Problem(
        "Brusselator, 2-D", {"u": "laplace(u) + 1 - 4*u + v*u**2", "v": "0.1*laplace(v) + 3*u - v*u**2"},
        {"u": f"1 + 0.5*{_WAVES}", "v": f"3 + 0.1*{_WAVES}"}, (1024, 1024), -512, 512, 1e-3,
    ),
}  # fmt: skip
"""Problems beside Devito."""

"""Direct solution of Poisson's and Helmholtz' equation on uniform grids by transforms over all axes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from minga.engine.program import Program
from minga.errors import LayoutError, shown
from minga.solve.fft.lines import LineTransform
from minga.solve.fft.symbols import second_difference, spectral_second
from minga.solve.fft.transform import FFT, Item
from minga.solve.laplacian import Floats, Walls
from minga.space.box import Box
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["Poisson"]

Accuracy = int | Literal["spectral"]


@dataclass(frozen=True, eq=False)
class Poisson:
    """The direct solver of `laplace u - shift * u = f` on a uniform grid.

    A call ``poisson(program, f, u)`` records the solution, which is exact to rounding for the difference equation. If
    no wall and no shift holds the values, the mean of f is ignored, and that of u is 0.

    Parameters
    ----------
    grid
        A Cartesian grid with cells of one width along each axis.
    walls
        Kinds of the walls, at which the value or the derivative is 0: ``"dirichlet"`` or ``"neumann"``, or by the name
        of an axis one of these or a pair (low, high); periodic axes have none.
    shift
        A number >= 0.
    order
        The accuracy of the differences of the Laplacian, or "spectral" for the derivative of the modes. With walls it
        is 2 or "spectral".
    centre
        Axes on whose faces the points of u lie, as of `mg.Field`.
    name
        The beginning of the names of all fields.

    Raises
    ------
    LayoutError
        If the grid or an option is unsuitable.

    Examples
    --------
    ::

        poisson = mg.solve.Poisson(grid, walls={"y": "dirichlet"})
        poisson(step, f, u)
        mg.Model(
            ..., fields=(u, f, *poisson.fields), initial={**poisson.initial, ...}, hierarchies=poisson.hierarchies
        )
    """

    grid: Grid
    walls: Walls = "dirichlet"
    shift: float = 0.0
    order: Accuracy = 2
    centre: Sequence[str | int] | str = ()
    name: str = "poisson"
    fft: FFT = field(init=False)
    factor: Field = field(init=False)
    initial: Mapping[Field, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._check()
        put = object.__setattr__
        fft = FFT(self.grid, self.walls, centre=self.centre, name=self.name)
        put(self, "fft", fft)
        put(self, "factor", Field(f"{self.name} factor", fft.modes, description="inverse of the eigenvalues"))
        lines = sorted(fft.lines, key=lambda line: line.axis)
        put(self, "initial", {self.factor: _inverse([self._along(line) for line in lines], self.shift, fft.scale)})

    def _check(self) -> None:
        """Raise LayoutError for an unsuitable grid or option."""
        if self.grid.geometry != "cartesian" or not all(isinstance(width, float) for width in self.grid.spacing):
            raise LayoutError(
                f"Poisson's equation by transforms on {self.grid!r}",
                remedy="its cells must be equal; mg.solve.Multigrid solves on other grids",
            )
        if not (np.isfinite(self.shift) and self.shift >= 0):
            raise LayoutError(f"the shift of Poisson's equation is {self.shift}", remedy="give 0 or a positive number")
        if self.order != "spectral" and not (isinstance(self.order, int) and self.order in range(2, 17, 2)):
            raise LayoutError(
                f"differences of accuracy {shown(self.order)}",
                remedy='give an even number from 2 to 16, or "spectral"',
            )
        if self.order not in (2, "spectral") and not all(self.grid.periodic):
            raise LayoutError(
                f"differences of accuracy {self.order} between walls: no transform knows their ghost values",
                remedy='use order=2 or order="spectral", or periodic axes',
            )

    def _along(self, line: LineTransform) -> Floats:
        spacing = self.grid.spacing[line.axis]
        assert isinstance(spacing, float)
        if isinstance(self.order, int):
            return second_difference(line, spacing, self.order)
        return spectral_second(line, spacing)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the solver, for ``mg.Model(..., fields=...)``."""
        return self.factor, *self.fft.fields

    @property
    def hierarchies(self) -> tuple[FFT, ...]:
        """The transform, for ``mg.Model(..., hierarchies=...)``."""
        return (self.fft,)

    def __call__(self, program: Program, right_side: Item, solution: Item) -> None:
        """Record the solution of `laplace u - shift * u = f`.

        Parameters
        ----------
        program
            The Program to record into.
        right_side, solution
            Fields or slots at the points of the grid, f8; they may be the same.
        """
        self.fft.filter(program, right_side, (self.factor,), solution)


def _inverse(eigenvalues: Sequence[Floats], shift: float, scale: float) -> Callable[[Box], Floats]:
    """Return the function that computes the factors of the modes in a box; that of the eigenvalue 0 is 0."""

    def factors(box: Box) -> Floats:
        parts = [
            values[low:high].reshape([-1 if a == axis else 1 for a in range(box.ndim)])
            for axis, (values, low, high) in enumerate(zip(eigenvalues, box.lo, box.hi, strict=True))
        ]
        total = functools.reduce(operator.add, parts) - shift
        return np.where(total < 0.0, scale / np.where(total < 0.0, total, 1.0), 0.0)

    return factors

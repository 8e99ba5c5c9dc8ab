"""Direct solution of Poisson's and Helmholtz' equation on uniform grids by transforms over all axes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.errors import LayoutError, shown
from minga.lang.cell import CellReader
from minga.lang.expr import Node, where
from minga.solve.fft.lines import LineTransform
from minga.solve.fft.symbols import second_difference, spectral_second
from minga.solve.fft.transform import FFT, Item, Spectrum
from minga.solve.laplacian import Floats, Walls
from minga.space.field import Field
from minga.space.grid import Grid
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.engine.engine import Engine

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
            ..., fields=(u, f, *poisson.fields), initial={**poisson.initial, ...}, hierarchies=(poisson,)
        )
    """

    grid: Grid
    walls: Walls = "dirichlet"
    shift: float = 0.0
    order: Accuracy = 2
    centre: Sequence[str | int] | str = ()
    name: str = "poisson"
    fft: FFT = field(init=False)
    spectrum: Spectrum = field(init=False)
    eigenvalues: tuple[Field, ...] = field(init=False)
    initial: Mapping[Field, Floats] = field(init=False)

    def __post_init__(self) -> None:
        self._check()
        put = object.__setattr__
        fft = FFT(self.grid, self.walls, centre=self.centre, name=self.name)
        put(self, "fft", fft)
        put(self, "spectrum", fft.spectrum(f"{self.name} spectrum"))
        values = {line.axis: self._along(line) for line in fft.lines}
        centre = tuple(axis for axis, face in enumerate(self.spectrum.re.centre) if face)
        names = {axis: f"{self.name} eigenvalues {letter}" for axis, letter in enumerate(self.grid.axes)}
        fields = tuple(Field(names[axis], fft.modes, axes=(axis,), centre=centre) for axis in range(self.grid.ndim))
        put(self, "eigenvalues", fields)
        put(self, "initial", {item: values[axis] for axis, item in enumerate(fields)})

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
        return *self.eigenvalues, *self.spectrum.fields, *self.fft.fields

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of the transform, for ``mg.Model(..., hierarchies=(poisson,))``."""
        return self.fft.grids

    def layouts(self, layout: Layout) -> Mapping[Grid, Layout]:
        """Return the layouts of all grids of the transform.

        Parameters
        ----------
        layout
            The layout of the grid.

        Returns
        -------
        Mapping
            The layout of each grid.

        Raises
        ------
        LayoutError
            If the layout belongs to another grid.
        """
        return self.fft.layouts(layout)

    def load(self, engine: Engine) -> None:
        """Set the eigenvalues in an engine without a Model, before it runs.

        Parameters
        ----------
        engine
            The engine.
        """
        for item, values in self.initial.items():
            engine.set(item, values)

    def __call__(self, program: Program, right_side: Item, solution: Item) -> None:
        """Record the solution of `laplace u - shift * u = f`.

        Parameters
        ----------
        program
            The Program to record into.
        right_side, solution
            Fields or slots at the points of the grid, f8; they may be the same.
        """
        self.fft.forward(program, right_side, self.spectrum)
        program.apply(divide, self.spectrum.fields, self.eigenvalues, shift=self.shift, scale=self.fft.scale)
        self.fft.inverse(program, self.spectrum, solution, scale=1.0)


@kernel
def divide(parts: Sequence[CellReader], eigenvalues: Sequence[CellReader], *, shift: Node, scale: Node) -> None:
    """Divide amplitudes by the eigenvalues of their modes; that of the eigenvalue 0 becomes 0."""
    here: Any = (0,) * len(eigenvalues)
    total = functools.reduce(operator.add, (values[0] for values in eigenvalues)) - shift
    factor = where(total < 0.0, scale / where(total < 0.0, total, 1.0), 0.0)
    for part in parts:
        part[here] = part[here] * factor

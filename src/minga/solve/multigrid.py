"""Geometric multigrid for every operator of `minga.solve`, as a preconditioner or as a solver.

One class for all operators; each kind of operator has kernels of its own. No result depends on the layout: every level
computes the same bits on any number of ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any

from minga.engine.program import Program
from minga.errors import ProgramError, shown
from minga.solve.block_multigrid import BlockMultigrid, Vector
from minga.solve.elliptic import Elliptic
from minga.solve.elliptic_multigrid import EllipticMultigrid
from minga.solve.five_point import FivePoint
from minga.solve.laplacian import Laplacian
from minga.solve.laplacian_multigrid import LaplacianMultigrid
from minga.space.field import Field, Register
from minga.space.grid import Grid
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.engine.engine import Engine

__all__ = ["Multigrid"]

_OPTIONS = {
    Laplacian: ("layout", "steps"),
    Elliptic: ("lines", "solids", "steps"),
    FivePoint: ("held",),
}
"""Options that some operators have, by the class of the operator; all have cells_per_rank and name."""
_DEFAULTS: dict[str, Any] = {"layout": None, "lines": "auto", "solids": False, "held": None, "steps": 2}


@dataclass(frozen=True, eq=False, repr=False)
class Multigrid:
    """The coarse levels of an operator, and the V-cycle over them, which approximates the operator's inverse.

    A call ``multigrid(program, residual, correction)`` records one V-cycle from 0. For a `Laplacian` and an `Elliptic`
    operator the cycle is symmetric and positive definite, as conjugate gradients require.

    Parameters
    ----------
    operator
        A `Laplacian`, an `Elliptic` operator, or the matrix `FivePoint` of k coupled unknowns a cell.
    layout
        The layout of the operator's grid; for a `Laplacian` only, whose levels are made for one layout. Those of other
        operators follow any layout, also one that changes during the run.
    steps
        Relaxation steps before and after each coarse correction (not for `FivePoint`, which has one).
    cells_per_rank
        A level with fewer cells a rank moves to fewer ranks, because messages would take longer than its work.
    lines
        For `Elliptic`: an axis whose lines are solved exactly in each relaxation step; ``"auto"`` chooses the only
        axis, or the most stretched one if its cell widths differ by more than a factor of 4; None solves no lines.
    solids
        For `Elliptic`: whether rows, or conductances of inner faces, are or may become zero. Such cells are then left
        out, and regions that thin plates separate stay separate on coarse grids.
    held
        For `FivePoint`: an integer field; in cells where it is not 0 the unknowns are 0.
    name
        The beginning of the names of all fields.

    Raises
    ------
    ProgramError
        If the operator has no multigrid, or an option belongs to another kind of operator.
    LayoutError
        If the grid cannot be coarsened, or the layout belongs to another grid.

    Examples
    --------
    ::

        levels = mg.solve.Multigrid(elliptic)
        levels.setup(program)
        mg.solve.conjugate_gradients(program, elliptic, x, b, preconditioner=levels)
        mg.Model(..., fields=(*elliptic.fields, *levels.fields, x, b), hierarchies=(levels,))
    """

    operator: Laplacian | Elliptic | FivePoint
    layout: Layout | None = None
    steps: int = 2
    cells_per_rank: int = 4096
    lines: str | int | None = "auto"
    solids: bool = False
    held: Field | None = None
    name: str = "multigrid"
    walls: InitVar[None] = None
    shift: InitVar[None] = None
    cycle: LaplacianMultigrid | EllipticMultigrid | BlockMultigrid = field(init=False)

    def __post_init__(self, walls: None, shift: None) -> None:
        if walls is not None or shift is not None:
            raise ProgramError(
                "multigrid: walls= and shift= are those of the operator",
                remedy="write Multigrid(Laplacian(grid, walls, shift), layout)",
            )
        object.__setattr__(self, "cycle", self._made())

    def _made(self) -> LaplacianMultigrid | EllipticMultigrid | BlockMultigrid:
        """Return the hierarchy of this kind of operator."""
        operator = self.operator
        self._check_options()
        if isinstance(operator, Elliptic):
            return EllipticMultigrid(operator, self.lines, self.steps, self.cells_per_rank, self.solids, self.name)
        if isinstance(operator, FivePoint):
            if self.held is None:
                raise ProgramError(
                    "multigrid of coupled unknowns without held=",
                    remedy="give an integer field that is not 0 in cells whose unknowns are held at 0",
                )
            return BlockMultigrid(operator, self.held, self.cells_per_rank, self.name)
        if self.layout is None:
            raise ProgramError(
                "multigrid of a Laplacian without layout=",
                remedy="write Multigrid(laplacian, layout), with the layout of its grid",
            )
        return LaplacianMultigrid(operator, self.layout, self.steps, self.cells_per_rank, self.name)

    def _check_options(self) -> None:
        """Raise ProgramError for an operator without multigrid, and for an option of another operator."""
        operator: object = self.operator
        kind = next((one for one in _OPTIONS if isinstance(operator, one)), None)
        if kind is None:
            raise ProgramError(
                f"multigrid of {shown(operator)}",
                remedy="give the operator first: Multigrid(Laplacian(grid), layout), Multigrid(Elliptic(grid)), or "
                "Multigrid(FivePoint(...), held=field)",
            )
        for option, default in _DEFAULTS.items():
            if option not in _OPTIONS[kind] and getattr(self, option) != default:
                owners = " and ".join(one.__name__ for one, options in _OPTIONS.items() if option in options)
                raise ProgramError(
                    f"multigrid of {kind.__name__}: {option}= is an option of {owners}", remedy="leave it out"
                )

    @property
    def grid(self) -> Grid:
        """The grid of the operator."""
        return self.operator.grid

    @property
    def levels(self) -> tuple[Any, ...]:
        """The levels, the finest first; each has a `grid`."""
        return self.cycle.levels

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of all levels, for ``mg.Model(..., hierarchies=(levels,))``."""
        return self.cycle.grids

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the levels, for ``mg.Model(..., fields=...)``; those of the operator are not among them."""
        return self.cycle.fields

    @property
    def initial(self) -> Mapping[Field, Any]:
        """Initial values of the fields that hold constant coefficients, for ``mg.Model(..., initial=...)``."""
        return self.cycle.initial if isinstance(self.cycle, LaplacianMultigrid) else {}

    def layouts(self, layout: Layout) -> Mapping[Grid, Layout]:
        """Return the layouts of all grids of the levels.

        Parameters
        ----------
        layout
            The layout of the operator's grid.

        Returns
        -------
        Mapping
            The layout of each grid of the levels; for a `Laplacian` also that of its own grid.

        Raises
        ------
        LayoutError
            If the layout belongs to another grid, or, for a `Laplacian`, is not the one the levels were made for.
        """
        return self.cycle.layouts(layout)

    def setup(self, program: Program, weights: Sequence[Register] = ()) -> None:
        """Record the computation of the coarse coefficients from those of the operator.

        It has to run before the first cycle, and again whenever the operator's fields have changed. A `Laplacian` needs
        none: its coefficients are constants.

        Parameters
        ----------
        program
            The Program to record into.
        weights
            For `FivePoint`: k registers that the k equations are multiplied by.
        """
        if isinstance(self.cycle, BlockMultigrid):
            self.cycle.setup(program, weights)
        else:
            self.cycle.setup(program)

    def load(self, engine: Engine) -> None:
        """Set constant coefficients, those of a `Laplacian` included, in an engine without a Model.

        Parameters
        ----------
        engine
            The engine, before its first run.
        """
        if isinstance(self.cycle, LaplacianMultigrid):
            self.cycle.load(engine)

    def vector(self, name: str) -> Vector:
        """Declare a vector of k fields, for `FivePoint`.

        Parameters
        ----------
        name
            The beginning of the names of the fields.

        Returns
        -------
        tuple of Slot
            One slot for each unknown of a cell, on the grid of the finest level.

        Raises
        ------
        ProgramError
            For operators with one unknown a cell, whose vectors are ordinary fields.
        """
        if not isinstance(self.cycle, BlockMultigrid):
            raise ProgramError(
                f"multigrid of {type(self.operator).__name__} has no vectors of its own",
                remedy=f"declare a field: mg.Field({name!r}, grid)",
            )
        return self.cycle.vector(name)

    def __call__(self, program: Program, residual: Any, correction: Any) -> None:
        """Record correction = M residual, one V-cycle from 0.

        Parameters
        ----------
        program
            The Program to record into.
        residual, correction
            Fields or slots with all cells of the operator's grid (f8); for `FivePoint` vectors made by `vector`.
        """
        self.cycle(program, residual, correction)

    def __repr__(self) -> str:
        return repr(self.cycle)

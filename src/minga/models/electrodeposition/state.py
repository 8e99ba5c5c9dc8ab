"""Fields of a cell's state, and their values beyond the ends of the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from minga.engine.presentation import FieldStyle, Presentation
from minga.models.electrodeposition.problem import ANODE, CATHODE, INSULATOR, Problem
from minga.space.boundary import BoundaryLike, fixed
from minga.space.field import Field, Register
from minga.space.grid import Grid

COLOURS: Final = ("#f4f1e8", "#6d4326", "#c79a2c", "#a9bcc6")
"""Colours of solution, cathode with its deposit, anode and glass."""


@dataclass(frozen=True, eq=False)
class State:
    """Fields and registers of a problem's state; all fields are f8 except `kind` (u1).

    Attributes
    ----------
    kind
        Kind of each cell. Beyond the grid's ends it is metal or glass, so that planes and fingers share one mechanism:
        a face with a metal on one side is an electrode, a face with glass lets nothing pass.
    concentration
        Concentration of each species at cell centres, mol/m3: slots now, next (the result of a step), previous.
    potential
        Potential at cell centres, V: slots now, next, previous.
    velocity
        Velocity, m/s, one field for each axis of the grid, at its faces: slots now, next, previous; empty without flow.
    pressure
        Pressure, Pa, without that of a bath at rest, and without the osmotic part where cells resolve the Debye length
        (see `minga.models.electrodeposition.forces`); None without flow.
    time, dt
        Time of `now`, and length of the coming step, s.
    last
        Length of the step that led to `now`, s; 0 at the beginning.
    voltage
        Potential of the anode relative to the cathode, V.
    mask
        `kind` if some cells are or may become solid, for operations that skip them; else None.
    """

    kind: Field
    concentration: tuple[Field, ...]
    potential: Field
    velocity: tuple[Field, ...]
    pressure: Field | None
    time: Register
    dt: Register
    last: Register
    voltage: Register
    mask: Field | None = None

    @property
    def presentation(self) -> Presentation:
        """The appearance of its fields: y to the right, three axes cut in the middle, flow coloured by its sign."""
        onto, aside = _sections(self.kind.grid)
        plain = FieldStyle(section=onto, along="y")
        own = (*self.concentration, self.potential, *([] if self.pressure is None else [self.pressure]))
        flow = {
            v.name: FieldStyle(signed=True, section=onto if v.name == "v_x" else aside, along="y")
            for v in self.velocity
        }
        kind = FieldStyle(colours=COLOURS, section=onto, along="y")
        return Presentation({self.kind.name: kind, **dict.fromkeys((item.name for item in own), plain), **flow})


def state_of(problem: Problem) -> State:
    """Declare the fields and registers of a problem's state."""
    grid = problem.grid
    beyond: BoundaryLike = {
        axis: (fixed(CATHODE), fixed(ANODE)) if axis == "y" else fixed(INSULATOR)
        for number, axis in enumerate(grid.axes)
        if not grid.periodic[number]
    }

    # Lengths of scaled problems have no unit; then nothing has.
    scaled = set(grid.units) == {"1"}

    def declare(name: str, unit: str, description: str, **options: object) -> Field:
        unit = "1" if scaled else unit
        return Field(name, grid, slots=3, unit=unit, description=description, **options)  # type: ignore[arg-type]

    kind = Field(
        "kind",
        grid,
        "u1",
        boundary=beyond,
        description="0 solution, 1 cathode, 2 anode, 3 glass",
    )
    # `kind` says what lies beyond the ends; these values are read, but never used.
    beside = fixed(0.0)
    ions = tuple(declare(s.name, "mol/m3", f"concentration of {s.name}", boundary=beside) for s in problem.species)
    moving = grid.axes if problem.flow else ()
    return State(
        kind=kind,
        concentration=ions,
        potential=declare("potential", "V", "electric potential", boundary=beside),
        velocity=tuple(
            declare(
                f"v_{a}",
                "m/s",
                f"velocity along {a}",
                centre=a,
                boundary=fixed(0.0),
            )
            for a in moving
        ),
        pressure=Field("pressure", grid, unit="1" if scaled else "Pa") if problem.flow else None,
        time=Register("time"),
        dt=Register("dt", initial=problem.steps.first),
        last=Register("last dt"),
        voltage=Register("voltage", initial=problem.voltage or 0.0),
        mask=kind if problem.solids else None,
    )


def _sections(grid: Grid) -> tuple[tuple[str, float] | None, tuple[str, float] | None]:
    """Return where pictures of 3-D fields are cut: parallel to the plates, and along the cell for flow between them."""
    if grid.ndim < 3:
        return None, None
    z, x = ((axis, float(0.5 * (grid.faces(axis)[0] + grid.faces(axis)[-1]))) for axis in ("z", "x"))
    return z, x

"""A model: the fields it stores, the Program of a step, its initial values, and what users observe of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np

from minga.engine.clock import Clock
from minga.engine.diagnostics import Diagnostics, Finding
from minga.engine.engine import Engine, FieldValue
from minga.engine.follow import Hierarchy, follow
from minga.engine.growth import Growth
from minga.engine.model_check import check_model
from minga.engine.model_html import model_html
from minga.engine.model_text import model_text
from minga.engine.presentation import Presentation
from minga.engine.program import Program
from minga.errors import LayoutError, ProgramError, RunError, shown
from minga.lang.types import itemsize
from minga.space.bit_words import Packed
from minga.space.box import Box
from minga.space.cuts import parse_layout
from minga.space.field import Field, Register, Slot
from minga.space.grid import Grid
from minga.space.layout import GRANULE, Layout


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The state from which a model's future follows: equal states have equal futures.

    slots   everything that the next step reads; equal contents `cycle` steps apart mean that the run repeats from there
    before  the slots that hold the same of the previous step, if the model keeps it; otherwise empty
    cycle   2 if even and odd steps differ, otherwise 1
    """

    slots: tuple[Slot, ...]
    before: tuple[Slot, ...] = ()
    cycle: int = 1


@dataclass(frozen=True, slots=True)
class Traces:
    """An observable that consists of one sample at each of some points, with a description of the samples.

    observable  name of the observable
    positions   positions of the points along z, y, x, in the units of the grid; y or x is 0 on a grid without it
    every       number of steps between samples
    dt          duration of a step in seconds
    sources     positions of the sources of the waves, likewise
    quantities  what each sample is, if points record several quantities: "p", "vz"
    remarks     sentences about the samples, for the heads of files
    """

    observable: str
    positions: tuple[tuple[float, ...], ...]
    every: int
    dt: float
    sources: tuple[tuple[float, ...], ...] = ()
    quantities: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Over:
    """The condition that ends a model: a step leaves `register` non-zero. `say` describes it.

    `unmet` describes what else the model watched for, to no avail, where a run ends by something else; "" for nothing.
    """

    register: Register
    say: Callable[[Engine], str]
    unmet: Callable[[Engine], str] | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """A simulation that is ready to run anywhere.

    Parameters
    ----------
    name
        The name, which files and reports show.
    grid
        The grid of its cells.
    fields
        All fields that kernels of its Programs read or write.
    step
        One step; a Program that uses mg.random() ends it with P.let(mg.STEP, mg.STEP + 1).
    initial
        Initial values by field, slot (u.previous), or the name of either ("u.previous"): a number, a global array, a
        function of the coordinates (`lambda y, x: ...`), or a function of a Box; 0 by default.
    output
        Names of the fields that snapshots hold; by default all with all axes, packed ones as cells.
    observe
        A Program whose registers are the observables.
    observables
        Registers by the name that users see; several registers (a histogram) become a list.
    registers
        Initial values of registers.
    parameters
        The values the model was made with, for the record.
    seed
        The seed of mg.random().
    packed
        Output fields whose cells are stored as bits, by name; their planes are among the fields.
    recurrence
        The state that determines the future of the model; None if that is random or unknown.
    cost
        The relative cost of cells, where they differ: a global array, a function of a Box that returns that box's
        values, or the name of a field whose initial values give it. Cells behind a mask cost 0. It influences only the
        assignment of cells to ranks.
    mask
        The name of a field of cells: cells where it is not 0 cost nothing, both now and after it changes.
        `Program.masked` skips them.
    notes
        Facts that users should know before the start, as pairs of name and value: ("points a wavelength", "8.2").
    warnings
        Sentences on what makes results doubtful; a run prints them before its first step.
    review
        A function of the observables before the first step and after the last one of a run, which returns a finding if
        they show that the results are not to be trusted, else None.
    steps
        The number of steps of a case that does not specify one.
    traces
        An observable that is sampled at points, such as receivers; a case that does not specify an interval observes at
        the same interval.
    window
        The cells of the grid that frames keep by default.
    velocity
        Names of the fields of a velocity on faces, one for each axis of the grid: reports draw its streamlines.
    conserved
        Names of observables of conserved quantities: reports compare the last value with the first.
    hierarchies
        Grids that follow other grids by a rule, such as the levels of multigrid; their fields are among the fields.
    explain
        A function that is called on every rank when a step ends without success; it returns an error with cause, place
        and remedy, or None if it knows no more than the engine.
    over
        The condition that ends a run successfully before all its steps are done, or None.
    tables
        Names of observables that form a table, by the name of the table: a row for each step of the run, in the result
        and as NAME.csv. A case that does not specify an interval observes every step.
    updates
        A register that counts the updates of all cells, from which cell updates per second are computed; None: one
        update per step.
    cuts
        By the name of an axis, the only indices at which layouts may cut the model's grid there, because results would
        depend on other cuts. Layouts given in words and plans are moved to them, other layouts are refused.
    diagnostics
        A condition that is searched for during the run and reported with the result, or None.
    opening
        Whether the first step makes the initial state, such as a steady state; observers of the start of a run see it
        in place of the state before.
    clock
        The time of steps, which files then hold in addition to the steps; None: the steps are the time.
    former
        Present names of observables by their former names, which conditions of older cases may use.
    units
        The unit of each observable by its name, "V", or unit and description: ("V", "of the anode"); "1" for plain
        numbers. Files, summaries and reports show them.
    about
        Attributes of all files that its runs write.
    presentation
        The appearance of its fields in pictures, and curves that are drawn together.
    evolution
        The equations du/dt = f(u, t) that the steps approximate, as a `minga.solve.Evolution`, for solvers of steady
        states; None if it is not said.
    stands_for
        For planning only: the shape of a finer grid, for which this model on a coarser one stands; None: its own grid.
    growth
        The window of an unbounded plane that the grid is, see `minga.engine.growth`; None: the grid is all there is.
    paintable
        Fields whose cells people may set between steps, with their numbers of states.

    Attributes
    ----------
    drawings
        Moved to `presentation`; passing it raises an error that names the replacement.

    Raises
    ------
    ProgramError
        If fields, observables or Programs do not fit together.
    """

    name: str
    grid: Grid
    fields: tuple[Field, ...]
    step: Program
    initial: Mapping[Any, FieldValue] = field(default_factory=dict)
    output: tuple[str, ...] = ()
    observe: Program | None = None
    observables: Mapping[str, Register | tuple[Register, ...]] = field(default_factory=dict)
    registers: Mapping[Register, bool | int | float] = field(default_factory=dict)
    parameters: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    packed: Mapping[str, Packed] = field(default_factory=dict)
    recurrence: Recurrence | None = None
    cost: np.ndarray | Callable[[Box], np.ndarray] | str | None = None
    mask: str | None = None
    notes: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    review: Callable[[Mapping[str, Any], Mapping[str, Any]], Finding | None] | None = None
    steps: int | None = None
    traces: Traces | None = None
    window: Box | None = None
    velocity: tuple[str, ...] = ()
    conserved: tuple[str, ...] = ()
    hierarchies: tuple[Hierarchy, ...] = ()
    explain: Callable[[Engine], RunError | None] | None = None
    over: Over | None = None
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    drawings: InitVar[None] = None
    updates: Register | None = None
    cuts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    diagnostics: Diagnostics | None = None
    opening: bool = False
    clock: Clock | None = None
    former: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str | tuple[str, str]] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    presentation: Presentation = field(default_factory=Presentation)
    evolution: object | None = None
    stands_for: tuple[int, ...] | None = None
    growth: Growth | None = None
    paintable: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self, drawings: None) -> None:
        if drawings is not None:
            raise ProgramError(
                f"model {self.name!r}: drawings= belongs to the presentation of a model",
                remedy="write mg.Model(..., presentation=mg.Presentation(drawings=(...)))",
            )
        if isinstance(self.fields, Field):
            raise ProgramError(
                f"model {self.name!r}: fields is one field", remedy=f"give a tuple: ({self.fields.name},)"
            )
        given: object = self.output
        if isinstance(given, str):
            object.__setattr__(self, "output", (given,))
        self._check_fields()
        self._check_observables()
        presentation: object = self.presentation
        if not isinstance(presentation, Presentation):
            raise ProgramError(
                f"model {self.name!r}: presentation={shown(presentation)}",
                remedy="write mg.Model(..., presentation=mg.Presentation(fields={...}))",
            )
        self.presentation.check(self.name, {f.name: f for f in (*self.fields, *self.visible)}, self.observables)
        if not self.output:
            object.__setattr__(self, "output", tuple(f.name for f in self._shown))
        object.__setattr__(self, "parameters", dict(self.parameters))
        check_model(self)

    def _check_fields(self) -> None:
        """Raise ProgramError for names of fields that are not unique or that the model does not have."""
        names = [f.name for f in self.fields] + list(self.packed)
        for name in names:
            if names.count(name) > 1:
                raise ProgramError(f"model {self.name!r} has two fields {name!r}", remedy="give each a name of its own")
        for key in self.initial:
            item = self._slot(key).field
            if item not in self.fields:
                raise ProgramError(
                    f"model {self.name!r}: initial values for {item!r}, which is not one of its fields",
                    remedy=f"its fields are {', '.join(names)}",
                )
        masks = [name for name in (self.cost, self.mask) if isinstance(name, str)]
        for name in (*self.output, *self.velocity, *masks):
            self.field(name)
        if isinstance(self.cost, np.ndarray) and self.cost.shape != self.grid.shape:
            raise ProgramError(
                f"model {self.name!r}: cost is an array of shape {self.cost.shape}, the grid is {self.grid.shape}",
                remedy="give one number for each cell of the grid",
            )

    def _check_observables(self) -> None:
        """Raise ProgramError for units and tables of observables that the model does not have."""
        for name in self.units:
            if name not in self.observables:
                raise ProgramError(
                    f"model {self.name!r}: a unit of {name!r}, which is not one of its observables",
                    remedy=f"its observables are {', '.join(self.observables)}",
                )
        for name, columns in self.tables.items():
            unknown = [column for column in columns if column not in self.observables]
            if unknown:
                raise ProgramError(
                    f"model {self.name!r}: table {name!r} of {unknown}, which are not among its observables",
                    remedy=f"its observables are {', '.join(self.observables)}",
                )

    @property
    def quantities(self) -> dict[str, tuple[str, str]]:
        """Unit and description of the observables whose unit is known; the description may be empty."""
        return {name: (said, "") if isinstance(said, str) else said for name, said in self.units.items()}

    @property
    def _shown(self) -> tuple[Field, ...]:
        """The fields that snapshots hold by default."""
        followers = self._followers
        return tuple(f for f in self.visible if not f.replicated and f.grid not in followers)

    def start_values(self) -> list[tuple[Slot, FieldValue]]:
        """Return the initial values of every slot of every field.

        Returns
        -------
        list of (Slot, value)
            Slots and their values, as `initial` takes them.
        """
        values: dict[Slot, FieldValue] = {item.slot(k): 0 for item in self.fields for k in range(item.slots)}
        return list((values | self.given).items())

    @property
    def given(self) -> dict[Slot, FieldValue]:
        """The explicitly given initial values, by slot."""
        return {self._slot(key): value for key, value in self.initial.items()}

    def _slot(self, key: Field | Slot | str) -> Slot:
        """Return the slot of a key of `initial`: a slot, a name (``"u.previous"``), or a field (its present slot)."""
        if isinstance(key, Slot):
            return key
        if isinstance(key, Field):
            return key.now
        name, dot, level = key.rpartition(".")
        if not dot or any(item.name == key for item in (*self.visible, *self.fields)):
            return self.field(key).now
        item = self.field(name)
        levels = {"now": 0, "next": 1, "previous": -1} | {f"slot({k})": k for k in range(item.slots)}
        if level not in levels or (item.slots == 1 and level != "now"):
            known = ["now", *(["next", "previous"] if item.slots > 1 else [])]
            raise ProgramError(
                f"model {self.name!r}: initial values for {key!r}, and {name!r} has {item.slots} slots",
                remedy=f"its slots are {', '.join(f'{name}.{word}' for word in known)}",
            )
        return item.slot(levels[level])

    def field(self, name: str) -> Field:
        """Return a field by name.

        Of a packed field this is the field of its cells, which an engine does not store (see
        :func:`minga.gather_cells`).

        Parameters
        ----------
        name
            The name.

        Returns
        -------
        Field
            The field.

        Raises
        ------
        ProgramError
            If the model has no such field.
        """
        for item in (*self.visible, *self.fields):
            if item.name == name:
                return item
        raise ProgramError(
            f"model {self.name!r} has no field {name!r}",
            remedy=f"its fields are {', '.join(f.name for f in self.visible)}",
        )

    @property
    def visible(self) -> tuple[Field, ...]:
        """The fields as users know them: packed ones as cells, the others as stored."""
        hidden = {item for packed in self.packed.values() for item in (*packed.planes, *packed.row)}
        return (*(packed.cells for packed in self.packed.values()), *(f for f in self.fields if f not in hidden))

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of all stored fields."""
        return tuple(dict.fromkeys(item.grid for item in self.fields))

    @property
    def _followers(self) -> frozenset[Grid]:
        """The grids that follow others by a rule."""
        return frozenset(grid for hierarchy in self.hierarchies for grid in hierarchy.grids)

    @property
    def cut_grids(self) -> tuple[Grid, ...]:
        """The grids that layout descriptions and plans cut: all except those of hierarchies, which follow others."""
        followers = self._followers
        given = (*self.grids, *(() if self.packed else (self.grid,)))
        return tuple(grid for grid in dict.fromkeys(given) if grid not in followers)

    def _followed(self, layouts: dict[Grid, Layout]) -> dict[Grid, Layout]:
        """Return the layouts together with those of all hierarchies."""
        for hierarchy in self.hierarchies:
            layouts.update(hierarchy.layouts(layouts[hierarchy.grid]))
        return layouts

    def layouts(self, text: str, ranks: int) -> dict[Grid, Layout]:
        """Return the layout of each grid for the description in a case; see :func:`minga.plan.parse_layout`.

        Grids of packed words may be cut anywhere: they hold no floats, whose sums proceed by runs of cells. The same
        holds for a grid whose cuts move to positions set by the model.

        Parameters
        ----------
        text
            The description, such as ``"slabs"`` or ``"cartesian:2x3"``.
        ranks
            The number of ranks.

        Returns
        -------
        dict
            The layout of each grid.
        """
        free = {packed.words for packed in self.packed.values()} | ({self.grid} if self.cuts else set())
        cut = {grid: parse_layout(text, grid.box, ranks, 1 if grid in free else GRANULE) for grid in self.cut_grids}
        return self._followed(self._aligned(cut))

    @property
    def planned_grid(self) -> Grid:
        """The grid that plans cut, and the others follow: the one whose fields take the most bytes in total."""
        total: dict[Grid, int] = {}
        followers = self._followers
        for item in self.fields:
            if not item.replicated and item.grid not in followers:
                total[item.grid] = total.get(item.grid, 0) + item.slots * item.points.size * itemsize(item.dtype)
        return max(total, key=lambda grid: total[grid]) if total else self.grid

    @property
    def places(self) -> tuple[tuple[int, ...] | None, ...]:
        """The only indices at which layouts may cut each axis of the grid; None: any index."""
        return tuple(self.cuts.get(axis) for axis in self.grid.axes)

    def _aligned(self, layouts: dict[Grid, Layout]) -> dict[Grid, Layout]:
        """Return the layouts with the cuts of the model's grid moved to allowed positions."""
        return {grid: one.cut_at(self.places) if grid == self.grid else one for grid, one in layouts.items()}

    def check_cuts(self, layout: Layout) -> None:
        """Raise LayoutError if a layout cuts the model's grid at positions that the model does not allow.

        Parameters
        ----------
        layout
            The layout of the model's grid.
        """
        for axis, (name, places) in enumerate(zip(self.grid.axes, self.places, strict=True)):
            wrong = set() if places is None or layout.replicated else set(layout.cuts[axis][1:]) - set(places)
            if wrong:
                raise LayoutError(
                    f"the layout cuts axis {name!r} at {min(wrong)}, and results of model {self.name!r} would depend "
                    "on the cut",
                    remedy="use model.layouts(...), or layout.cut_at(model.places), which moves cuts there",
                )

    def layouts_like(self, layout: Layout, *, anywhere: bool = False) -> dict[Grid, Layout]:
        """Return the layout of each grid for a layout of `planned_grid`: equal positions belong to equal ranks.

        Cuts move to the positions that the model allows.

        Parameters
        ----------
        layout
            The layout of `planned_grid`.
        anywhere
            Whether cuts stay where they are, for measurements, whose results are not used.

        Returns
        -------
        dict
            The layout of each grid.
        """
        leader = self.planned_grid
        words = {packed.words: packed.cells.grid for packed in self.packed.values()}
        grids = dict.fromkeys((leader, *self.cut_grids))
        cut = {grid: layout if grid == leader else follow(layout, leader, grid, words) for grid in grids}
        return self._followed(cut if anywhere else self._aligned(cut))

    def __repr__(self) -> str:
        return model_text(self)

    def _repr_html_(self) -> str:
        return model_html(self)

"""Transforms of fields over all axes, recorded in Programs.

One-dimensional transforms are composed in one order, the last axis first, along lines that are complete on one rank:
between two axes a `move` transposes slabs or pencils where necessary. The inverse goes the same way backwards. Neither
has a scale; the factor of all axes together is applied once. Lines are independent, so that results have the same bits
on any number of ranks and threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from minga.engine.program import Program
from minga.errors import LayoutError, ProgramError
from minga.lang.types import as_dtype
from minga.solve.fft.lines import Kind, LineTransform, transform_lines
from minga.solve.fft.pencils import pencils, reshaped
from minga.solve.fft.portable import compare_ranks
from minga.solve.laplacian import Walls, as_walls
from minga.space.field import Field, Register, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.engine.engine import Engine

__all__ = ["FFT", "Spectrum"]

Item = Field | Slot
_REAL_KINDS: dict[tuple[str, str, int], Kind] = {
    ("dirichlet", "dirichlet", 0): "sine-2",
    ("neumann", "neumann", 0): "cosine-2",
    ("dirichlet", "neumann", 0): "sine-4",
    ("neumann", "dirichlet", 0): "cosine-4",
    ("dirichlet", "dirichlet", 1): "sine-1",
    ("neumann", "neumann", 1): "cosine-1",
}
"""Transforms by the walls at both ends of an axis, and whether points lie on the walls."""


@dataclass(frozen=True)
class Spectrum:
    """Amplitudes of the modes of a field: real and imaginary parts, or real ones only if no axis is periodic.

    Parameters
    ----------
    fields
        One or two fields on the grid of the modes.
    """

    fields: tuple[Field, ...]

    @property
    def re(self) -> Field:
        """The real parts."""
        return self.fields[0]

    @property
    def im(self) -> Field:
        """The imaginary parts."""
        return self.fields[-1]


@dataclass(frozen=True)
class _Stage:
    """One axis: its transform, and fields before it and after it, which are the same where it works in place."""

    line: LineTransform
    before: tuple[Field, ...]
    after: tuple[Field, ...]
    moved: Register
    """Not 0 where the lines of the stage are not complete in the layout that the values come in."""


@dataclass(frozen=True, eq=False)
class FFT:
    """The transform of fields of a grid over all of its axes.

    Periodic axes have Fourier modes, others the sine and cosine modes that fit to their walls. Real values have half a
    spectrum: of the periodic axis that comes last only the modes from 0 to n // 2.

    Parameters
    ----------
    grid
        The grid of the fields.
    walls
        ``"dirichlet"`` or ``"neumann"``, or by the name of an axis one of these or a pair (low, high); periodic axes
        have none.
    complex
        Whether fields come in pairs, of real and imaginary parts.
    centre
        Axes on whose faces the points of the fields lie, as of `mg.Field`; along axes with two ends the first and the
        last point then lie on the walls.
    dtype
        "f8" or "f4".
    name
        The beginning of the names of all fields.

    Raises
    ------
    LayoutError
        If the grid is twisted, or there is no transform for its walls.

    Examples
    --------
    ::

        fft = mg.solve.FFT(grid)
        modes = fft.spectrum("modes")
        fft.forward(step, u, modes)
        fft.inverse(step, modes, u)
        mg.Model(..., fields=(u, *modes.fields, *fft.fields), hierarchies=(fft,))
    """

    grid: Grid
    walls: Walls = "neumann"
    complex: bool = False
    centre: Sequence[str | int] | str = ()
    dtype: str = "f8"
    name: str = "fft"
    lines: tuple[LineTransform, ...] = field(init=False)
    stages: tuple[_Stage, ...] = field(init=False)
    modes: Grid = field(init=False)

    def __post_init__(self) -> None:
        if self.grid.twisted:
            raise LayoutError("a transform of a shifted torus", remedy="use a grid without shift")
        if as_dtype(self.dtype) not in ("f8", "f4"):
            raise LayoutError(f"a transform of values of type {self.dtype}", remedy="f8 and f4 have transforms")
        put = object.__setattr__
        put(self, "lines", self._lines())
        stages = self._stages()
        put(self, "stages", stages)
        put(self, "modes", stages[-1].after[0].grid)

    # Declarations --------------------------------------------------------------------------------------------------
    def _lines(self) -> tuple[LineTransform, ...]:
        """Return the transforms of all axes, that of the last axis first."""
        faces = self._faces
        walls = as_walls(self.walls, self.grid)
        found: list[LineTransform] = []
        real = not self.complex
        for axis in range(self.grid.ndim - 1, -1, -1):
            n, kind = self.grid.shape[axis] + (axis in faces and not self.grid.periodic[axis]), "fourier"
            if not self.grid.periodic[axis]:
                kind = self._real_kind(axis, (*walls[axis], int(axis in faces)))
            elif real:
                kind, real = "half", False
            found.append(LineTransform(kind, axis, n))  # type: ignore[arg-type]
        return tuple(found)

    def _real_kind(self, axis: int, key: tuple[str, str, int]) -> Kind:
        if key not in _REAL_KINDS:
            raise LayoutError(
                f"no transform along {self.grid.axes[axis]!r} has points on a {key[0]} and on a {key[1]} wall",
                remedy="use cells, or walls of one kind",
            )
        if key[2] and self.grid.shape[axis] < 2:
            raise LayoutError(f"axis {self.grid.axes[axis]!r} has no point between its walls", remedy="use more cells")
        return _REAL_KINDS[key]

    @property
    def _faces(self) -> set[int]:
        given = ((self.centre,) if self.centre else ()) if isinstance(self.centre, str) else self.centre
        return set(map(self.grid.axis, given))

    def _stages(self) -> tuple[_Stage, ...]:
        """Return the stages with their fields."""
        grid, parts = self.grid.relabel(f"{self.name} 0"), 2 if self.complex else 1
        centre = tuple(sorted(self._faces))
        stages: list[_Stage] = []
        shape = list(self.grid.shape)
        for number, line in enumerate(self.lines):
            if number:
                grid = Grid(shape, self.grid.axes, label=f"{self.name} {number}")
                centre = tuple(axis for axis in centre if not self.grid.periodic[axis])
            before = self._pair(f"{number}", grid, centre, parts)
            after = before
            if line.kind == "half":
                shape[line.axis], parts = line.modes, 2
                centre = tuple(axis for axis in centre if not self.grid.periodic[axis])
                after = self._pair(f"{number} modes", Grid(shape, self.grid.axes, label=f"{self.name} {number} modes"),
                                   centre, 2)  # fmt: skip
            stages.append(_Stage(line, before, after, Register(f"{self.name} moved {number}", "i8")))
        return tuple(stages)

    def _pair(self, name: str, grid: Grid, centre: Sequence[int], parts: int) -> tuple[Field, ...]:
        words = ("",) if parts == 1 else (" re", " im")
        return tuple(
            Field(f"{self.name} {name}{word}", grid, self.dtype, centre=centre, description="workspace of a transform")
            for word in words
        )

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The workspace, for ``mg.Model(..., fields=...)``; spectra are not among it."""
        return tuple(dict.fromkeys(item for stage in self.stages for item in (*stage.before, *stage.after)))

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of the transform, for ``mg.Model(..., hierarchies=(fft,))``."""
        return tuple(dict.fromkeys(item.grid for item in self.fields))

    @property
    def scale(self) -> float:
        """The factor by which the transform and its inverse, which have no scale, must be multiplied to be the identity."""
        scale = 1.0
        for line in self.lines:
            scale *= line.scale
        return scale

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
        if layout.domain != self.grid.box:
            raise LayoutError(f"the layout is for {layout.domain}, the grid has {self.grid.box}")
        found: dict[Grid, Layout] = {}
        shapes = [stage.before[0].grid.shape for stage in self.stages]
        for stage, one in zip(self.stages, pencils(layout, shapes), strict=True):
            found[stage.before[0].grid] = one
            after = stage.after[0].grid
            found[after] = reshaped(one, after.box)
        return found

    def spectrum(self, name: str) -> Spectrum:
        """Declare the spectrum of a field.

        Parameters
        ----------
        name
            The beginning of the names of its fields.

        Returns
        -------
        Spectrum
            One or two fields on the grid `modes`.
        """
        like = self.stages[-1].after
        words = ("",) if len(like) == 1 else (" re", " im")
        return Spectrum(
            tuple(
                Field(f"{name}{word}", item.grid, self.dtype, centre=_centre(item))
                for word, item in zip(words, like, strict=True)
            )
        )

    # Recording -----------------------------------------------------------------------------------------------------
    def forward(self, program: Program, source: Item | Sequence[Item], target: Spectrum) -> None:
        """Record the transform of a field, without a scale.

        Parameters
        ----------
        program
            The Program to record into.
        source
            The field, or a pair of real and imaginary parts if the transform is `complex`.
        target
            Its spectrum.

        Raises
        ------
        ProgramError
            If the field is not of this transform.
        """
        given, modes = self._items(source), _nows(target.fields)
        last = len(self.stages) - 1
        befores = [_nows(stage.before) for stage in self.stages]
        afters = [_nows(stage.after) for stage in self.stages]
        if self.stages[last].before == self.stages[last].after:
            befores[last] = modes
        afters[last] = modes
        self._settle(program, {slot for slots in (*befores, *afters) for slot in slots})
        come = given
        for number, stage in enumerate(self.stages):
            self._transpose(program, stage, come, befores[number])
            source = _Ends(befores[number], given if number == 0 else None, stage.moved)
            target = _Ends(modes)
            if number < last:
                target = _Ends(afters[number], befores[number + 1], self.stages[number + 1].moved)
            self._record(program, stage, source, target)
            come = afters[number]

    def inverse(
        self, program: Program, source: Spectrum, target: Item | Sequence[Item], scale: float | None = None
    ) -> None:
        """Record the inverse of the transform; the spectrum keeps its values.

        Parameters
        ----------
        program
            The Program to record into.
        source
            The spectrum.
        target
            The field, or a pair of real and imaginary parts if the transform is `complex`.
        scale
            Factor of the results; by default `scale`, so that the field has its values before the transform.

        Raises
        ------
        ProgramError
            If the field is not of this transform.
        """
        given, come = self._items(target), _nows(source.fields)
        factor = self.scale if scale is None else scale
        work = {slot for stage in self.stages for slot in _nows((*stage.before, *stage.after))}
        self._settle(program, work | set(given))
        for number in range(len(self.stages) - 1, -1, -1):
            stage = self.stages[number]
            goal = _nows(self.stages[number - 1].after) if number else given
            ends = _Ends(_nows(stage.before), goal, stage.moved)
            self._record(program, stage, _Ends(come), ends, inverse=True, scale=factor if number == 0 else 1.0)
            self._transpose(program, stage, _nows(stage.before), goal)
            come = goal

    def _items(self, given: Item | Sequence[Item]) -> tuple[Slot, ...]:
        """Return the slots of a field, or of a pair; ProgramError unless they are of this transform."""
        items = (given,) if isinstance(given, Field | Slot) else tuple(given)
        slots = tuple(item.now if isinstance(item, Field) else item for item in items)
        like = self.stages[0].before
        if len(slots) != len(like) or any(
            slot.field.grid != self.grid or slot.field.points != like[0].points or slot.field.dtype != like[0].dtype
            for slot in slots
        ):
            wanted = "a pair of fields" if self.complex else "a field"
            raise ProgramError(
                f"a transform of {', '.join(map(repr, slots))}",
                remedy=f"give {wanted} of type {self.dtype} with the points {like[0].points} of {self.grid!r}",
            )
        return slots

    def _settle(self, program: Program, fills: set[Slot]) -> None:
        """Record that registers say which stages need a transposition with the present layouts."""
        stages, grid = self.stages, self.grid

        def settle(engine: Engine) -> None:
            if engine.device is not None:
                raise ProgramError("a transform on a GPU", remedy='run on the CPU: device = "cpu"')
            compare_ranks(engine)
            layout = engine.storage.layout
            come = layout(grid)
            for stage in stages:
                engine.write(stage.moved, int(come != layout(stage.before[0].grid)))
                come = layout(stage.after[0].grid)

        ordered = sorted(fills, key=lambda slot: (slot.field.name, slot.index))
        program.call(settle, writes=ordered, fills=ordered)

    @staticmethod
    def _transpose(program: Program, stage: _Stage, sources: Sequence[Slot], targets: Sequence[Slot]) -> None:
        """Record the move before a stage, or after its inverse, if one is needed."""
        with program.when(stage.moved > 0):
            for source, target in zip(sources, targets, strict=True):
                program.move(source, target)

    def _record(
        self, program: Program, stage: _Stage, source: _Ends, target: _Ends, *, inverse: bool = False,
        scale: float = 1.0,
    ) -> None:  # fmt: skip
        """Record the transforms of one axis."""

        def transform(engine: Engine) -> None:
            given = [_views(engine, slot) for slot in source.chosen(engine)]
            taken = [_views(engine, slot) for slot in target.chosen(engine)]
            for a, b in zip(zip(*given, strict=True), zip(*taken, strict=True), strict=True):
                transform_lines(stage.line, a, b, inverse=inverse, scale=scale, threads=engine.threads)

        transform.__name__ = f"{'inverse ' if inverse else ''}{stage.line.kind} along {self.grid.axes[stage.line.axis]}"
        program.call(transform, reads=source.slots, writes=target.slots)


@dataclass(frozen=True)
class _Ends:
    """Slots that a stage takes values from, or gives them to.

    Parameters
    ----------
    across
        The slots before or after a transposition.
    direct
        The slots where there is none; None: the same.
    moved
        The register that is not 0 where there is one.
    """

    across: tuple[Slot, ...]
    direct: tuple[Slot, ...] | None = None
    moved: Register | None = None

    @property
    def slots(self) -> tuple[Slot, ...]:
        """All slots."""
        return tuple(dict.fromkeys((*self.across, *(self.direct or ()))))

    def chosen(self, engine: Engine) -> tuple[Slot, ...]:
        """Return the slots for the present layouts."""
        if self.direct is None or self.moved is None or engine.read(self.moved):
            return self.across
        return self.direct


def _views(engine: Engine, slot: Slot) -> list[Any]:
    return [view for _, view in engine.blocks(slot)]


def _nows(fields: Sequence[Field]) -> tuple[Slot, ...]:
    return tuple(item.now for item in fields)


def _centre(item: Field) -> tuple[int, ...]:
    return tuple(axis for axis, face in enumerate(item.centre) if face)

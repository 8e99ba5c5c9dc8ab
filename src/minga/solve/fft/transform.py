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
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.program import Program
from minga.errors import LayoutError, ProgramError
from minga.lang.types import as_dtype
from minga.solve.fft.lines import Kind, LineTransform, filter_lines, transform_lines
from minga.solve.fft.pencils import interleaved, pencils, reshaped
from minga.solve.fft.portable import compare_ranks
from minga.solve.laplacian import Walls, as_walls
from minga.space.box import Box
from minga.space.field import Field, Register, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.engine.engine import Engine

__all__ = ["FFT", "Spectrum"]

Item = Field | Slot
_INTERLEAVED: Final = " of parts"
"""End of the labels of grids along whose last axis real and imaginary parts alternate."""
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
    """One axis: its transform, and the values before and after it.

    Complex values between two axes are one field, whose real and imaginary parts alternate along the last axis.
    """

    line: LineTransform
    before: tuple[Field, ...]
    after: Field | None
    """None for the last axis, after which there is a spectrum."""
    moved: Register
    """Not 0 where the lines of the stage are not complete in the layout that the values come in."""


@dataclass(frozen=True)
class _Cuts:
    """The layouts of all stages for one layout of the grid, and whether values move before each."""

    layouts: Mapping[Grid, Layout]
    moved: tuple[bool, ...]


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
    _known: dict[Layout, _Cuts] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.grid.twisted:
            raise LayoutError("a transform of a shifted torus", remedy="use a grid without shift")
        if as_dtype(self.dtype) not in ("f8", "f4"):
            raise LayoutError(f"a transform of values of type {self.dtype}", remedy="f8 and f4 have transforms")
        put = object.__setattr__
        put(self, "lines", self._lines())
        put(self, "stages", self._stages())
        shape = [line.modes for line in reversed(self.lines)]
        put(self, "modes", Grid(shape, self.grid.axes, label=f"{self.name} modes"))

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
        first = self.grid.relabel(f"{self.name} 0")
        words = (" re", " im") if self.complex else ("",)
        centre = tuple(sorted(self._faces))
        before = tuple(Field(f"{self.name} 0{word}", first, self.dtype, centre=centre) for word in words)
        stages: list[_Stage] = []
        for number, line in enumerate(self.lines):
            last = number == len(self.lines) - 1
            after = None if last else self._between(f"{number} after", number + 1)
            stages.append(_Stage(line, before, after, Register(f"{self.name} moved {number}", "i8")))
            if not last:
                before = (self._between(f"{number + 1}", number + 1),)
        return tuple(stages)

    def _points(self, number: int) -> tuple[int, ...]:
        """Return the number of points along each axis before a stage."""
        found = {line.axis: line.modes if k < number else line.n for k, line in enumerate(self.lines)}
        return tuple(found[axis] for axis in range(self.grid.ndim))

    def _is_complex(self, number: int) -> bool:
        """Return True if values before a stage are complex."""
        return self.complex or any(line.kind == "half" for line in self.lines[:number])

    def _between(self, name: str, number: int) -> Field:
        """Return a field of the values before a stage."""
        shape, mark = list(self._points(number)), ""
        if self._is_complex(number):
            shape[-1] *= 2
            mark = _INTERLEAVED
        grid = Grid(shape, self.grid.axes, label=f"{self.name} {name}{mark}")
        return Field(f"{self.name} {name}", grid, self.dtype, description="workspace of a transform")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The workspace, for ``mg.Model(..., fields=...)``; spectra are not among it."""
        return tuple(item for stage in self.stages for item in (*stage.before, stage.after) if item is not None)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of the transform, for ``mg.Model(..., hierarchies=(fft,))``."""
        return (*dict.fromkeys(item.grid for item in self.fields), self.modes)

    @property
    def scale(self) -> float:
        """The factor with which the transform and its inverse, which have no scale, are the identity: 1 / modes."""
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
        return self._cuts(layout).layouts

    def _cuts(self, layout: Layout) -> _Cuts:
        """Return the layouts of all stages for a layout of the grid."""
        known = self._known.get(layout)
        if known is None:
            known = self._known[layout] = self._cut(layout)
        return known

    def _cut(self, layout: Layout) -> _Cuts:
        shapes = [self.grid.shape, *(self._points(number) for number in range(1, len(self.stages)))]
        found: dict[Grid, Layout] = {}
        moved: list[bool] = []
        come = layout
        for number, (stage, lines) in enumerate(zip(self.stages, pencils(layout, shapes), strict=True)):
            moved.append(lines != come)
            found[stage.before[0].grid] = interleaved(lines) if number and self._is_complex(number) else lines
            come = reshaped(lines, Box.of(self._points(number + 1)))
            if stage.after is not None:
                found[stage.after.grid] = interleaved(come) if self._is_complex(number + 1) else come
        found[self.modes] = come
        return _Cuts(found, tuple(moved))

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
        words = (" re", " im") if self._is_complex(len(self.lines)) else ("",)
        return Spectrum(tuple(Field(f"{name}{word}", self.modes, self.dtype) for word in words))

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
        self._settle(program, {*_nows(self.fields), *modes})
        self._record(program, self.stages[-1], self._forth(program, given), _Ends(modes))

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
        given = self._items(target)
        self._settle(program, {*_nows(self.fields), *given})
        self._back(program, given, _Ends(_nows(source.fields)), self.scale if scale is None else scale)

    def filter(
        self, program: Program, source: Item | Sequence[Item], factors: Sequence[Field], target: Item | Sequence[Item]
    ) -> None:
        """Record the multiplication of the modes of a field by factors: transform, product, inverse without a scale.

        This is faster than its parts, because no spectrum is stored.

        Parameters
        ----------
        program
            The Program to record into.
        source, target
            Fields, or pairs of real and imaginary parts if the transform is `complex`.
        factors
            A field on the grid `modes`, or two of real and imaginary parts; the factors should contain `scale`.

        Raises
        ------
        ProgramError
            If a field is not of this transform.
        """
        given, taken = self._items(source), self._items(target)
        self._settle(program, {*_nows(self.fields), *taken} - set(given))
        self._back(program, taken, self._forth(program, given), 1.0, _nows(factors))

    def _forth(self, program: Program, given: tuple[Slot, ...]) -> _Ends:
        """Record all stages but the last, and return where its values are."""
        come = given
        for number, stage in enumerate(self.stages):
            before = _nows(stage.before)
            self._transpose(program, stage, come, before)
            source = _Ends(before, given if number == 0 else None, stage.moved)
            if stage.after is None:
                break
            follow, come = self.stages[number + 1], (stage.after.now,)
            self._record(program, stage, source, _Ends(come, _nows(follow.before), follow.moved))
        return source

    def _back(
        self, program: Program, given: tuple[Slot, ...], source: _Ends, scale: float, factors: tuple[Slot, ...] = ()
    ) -> None:
        """Record the inverse of all stages, or for the last one the multiplication of modes by factors."""
        for number in range(len(self.stages) - 1, -1, -1):
            stage, goal = self.stages[number], given
            if number:
                after = self.stages[number - 1].after
                assert after is not None
                goal = (after.now,)
            before = _nows(stage.before)
            ends = _Ends(before, goal, stage.moved)
            self._record(program, stage, source, ends, True, 1.0 if number else scale, factors)
            self._transpose(program, stage, before, goal)
            source, factors = _Ends(goal), ()

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
        for slot in slots:
            if any(slot.field.antiperiodic):
                raise ProgramError(
                    f"a transform of {slot!r}, which is antiperiodic, and modes are periodic",
                    remedy="use the antiperiodic field on differences, or double the grid: a field and its negative",
                )
        return slots

    def _settle(self, program: Program, fills: set[Slot]) -> None:
        """Record that registers say which stages need a transposition with the present layouts."""

        def settle(engine: Engine) -> None:
            if engine.device is not None:
                raise ProgramError("a transform on a GPU", remedy='run on the CPU: device = "cpu"')
            compare_ranks(engine)
            cuts = self._cuts(engine.storage.layout(self.grid))
            for stage, moved in zip(self.stages, cuts.moved, strict=True):
                engine.write(stage.moved, int(moved))

        ordered = sorted(fills, key=lambda slot: (slot.field.name, slot.index))
        program.call(settle, writes=ordered, fills=ordered)

    @staticmethod
    def _transpose(program: Program, stage: _Stage, sources: Sequence[Slot], targets: Sequence[Slot]) -> None:
        """Record the move before a stage, or after its inverse, if one is needed."""
        with program.when(stage.moved > 0):
            for source, target in zip(sources, targets, strict=True):
                program.move(source, target)

    def _record(
        self,
        program: Program,
        stage: _Stage,
        source: _Ends,
        target: _Ends,
        inverse: bool = False,
        scale: float = 1.0,
        factors: tuple[Slot, ...] = (),
    ) -> None:
        """Record the transforms of one axis, or both with factors between them."""
        line = stage.line

        def transform(engine: Engine) -> None:
            given = _blocks(engine, source.chosen(engine))
            taken = _blocks(engine, target.chosen(engine))
            if factors:
                for a, k, b in zip(given, _blocks(engine, factors), taken, strict=True):
                    filter_lines(line, a, k, b, threads=engine.threads)
            else:
                for a, b in zip(given, taken, strict=True):
                    transform_lines(line, a, b, inverse=inverse, scale=scale, threads=engine.threads)

        word = "filter " if factors else "inverse " if inverse else ""
        transform.__name__ = f"{word}{line.kind} along {self.grid.axes[line.axis]}"
        writes = tuple(dict.fromkeys((*source.work, *target.slots)))
        program.call(transform, reads=(*source.slots, *factors), writes=writes)


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

    @property
    def work(self) -> tuple[Slot, ...]:
        """The slots that may be overwritten: complex values of the workspace."""
        return tuple(slot for slot in self.slots if slot.field.grid.label.endswith(_INTERLEAVED))

    def chosen(self, engine: Engine) -> tuple[Slot, ...]:
        """Return the slots for the present layouts."""
        if self.direct is None or self.moved is None or engine.read(self.moved):
            return self.across
        return self.direct


def _blocks(engine: Engine, slots: Sequence[Slot]) -> list[tuple[NDArray[Any], ...]]:
    """Return the arrays of some slots for each block."""
    return list(zip(*(_views(engine, slot) for slot in slots), strict=True))


def _views(engine: Engine, slot: Slot) -> list[NDArray[Any]]:
    """Return the arrays of a slot, complex ones where its parts alternate."""
    views = [view for _, view in engine.storage.pieces(slot)]
    if slot.field.grid.label.endswith(_INTERLEAVED):
        return [view.view(np.complex64 if view.dtype == np.float32 else np.complex128) for view in views]
    return views


def _nows(fields: Sequence[Field]) -> tuple[Slot, ...]:
    return tuple(item.now for item in fields)

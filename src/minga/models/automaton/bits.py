"""Automata whose cells are stored as bits: 64 cells a word, one field of words for each bit of a state.

Any synchronous rule with one field and few states can be stored this way if its next state depends on few cells or on
counts of cells (see `bits_rule`). It remains the same automaton: files, digests and observers see its cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.case.boundary import Boundaries
from minga.engine.program import Program
from minga.errors import CaseError, LayoutError
from minga.lang.block import BlockRule
from minga.lang.kernel import FieldType, Kernel, ScalarType, Signature
from minga.lang.rule import Rule
from minga.lang.updates import Synchronous
from minga.models.automaton.bits_edges import Row, plane_conditions
from minga.models.automaton.bits_kernel import bits_of, cost, word_kernel
from minga.models.automaton.bits_rule import Count, Offset, Table, Unsuitable, tabulate
from minga.models.automaton.initial import Initial
from minga.space.bit_words import Packed, word_grid
from minga.space.box import Box
from minga.space.field import STEP, Field, Slot
from minga.space.grid import Grid

__all__ = ["STORAGES", "Bits", "Storage", "stored_as_bits"]

Storage = Literal["auto", "bytes", "bits"]
STORAGES: Final = ("auto", "bytes", "bits")
KEY: Final = "automaton.storage"
MOST_CELLS: Final = 400
"""Largest neighbourhood that is considered for bits: with more cells its sums would be written out cell by cell."""
ENOUGH: Final = 1 << 16
"""Number of cells from which on "auto" may choose bits; smaller grids take no time either way."""
WORTH: Final = 12
"""Word operations that may replace one operation on bytes. A vector holds eight times more bytes than words, and
sums of bytes that neighbouring cells share are stored and loaded, which is not counted."""
_SLAB: Final = 1 << 22
"""Number of cells whose first states are computed at once."""


@dataclass(frozen=True, slots=True)
class Bits:
    """Storage and update of the cells of one automaton as bits."""

    packed: Packed
    row: Row
    kernel: Kernel

    @property
    def fields(self) -> tuple[Field, ...]:
        """All stored fields."""
        return (*self.packed.planes, *self.packed.row)

    def step(self) -> Program:
        """Return the Program of one step of the automaton."""
        planes = self.packed.planes
        step = Program("step")
        step.apply(self.kernel, [p.now for p in planes], [p.next for p in planes], list(self.packed.row))
        step.rotate(*planes)
        step.let(STEP, STEP + 1)
        return step

    def initial(self, cells: Initial | None) -> dict[Slot, Any]:
        """Return the first values of the stored fields, given the cells as a function of a box; None: all 0."""
        start: dict[Slot, Any] = {}
        if cells is not None:
            start = {plane.now: self._first(cells, number) for number, plane in enumerate(self.packed.planes)}
        return start | {
            field.now: values for field, (_, values) in zip(self.packed.row, self.row.fields(), strict=True)
        }

    def _first(self, cells: Initial, plane: int) -> Initial:
        def words(box: Box) -> NDArray[Any]:
            whole = np.empty(box.shape, np.uint64)
            rows = box.shape[0] if box.ndim == 1 else max(1, _SLAB * box.shape[0] // max(1, 64 * box.size))
            for first in range(box.lo[0], box.hi[0], rows):
                slab = Box((first, *box.lo[1:]), (min(first + rows, box.hi[0]), *box.hi[1:]))
                states = np.asarray(cells(self.packed.box(slab)), np.uint8)
                whole[slab.slices(box.lo)] = self.packed.pack(states)[plane]
            return whole

        return words


def stored_as_bits(
    rule: Rule | BlockRule,
    grid: Grid,
    ends: Boundaries,
    parameters: Mapping[str, Any],
    storage: str,
    enough: int = ENOUGH,
) -> Bits | None:
    """Return the storage of an automaton as bits, or None if its cells are to be stored as bytes.

    Parameters
    ----------
    rule, grid, ends, parameters
        Rule, grid, boundary conditions and values of the rule's keyword parameters.
    storage
        "bits", "bytes", or "auto": bits where they are faster.
    enough
        Number of cells from which on "auto" may choose bits.

    Raises
    ------
    CaseError
        If `storage` is unknown, or is "bits" and the rule cannot be stored so; the message gives the reason.
    """
    if storage not in STORAGES:
        raise CaseError(
            f"found {storage!r}", key=KEY, remedy='write "auto", "bytes" (a cell a byte) or "bits" (64 cells a word)'
        )
    if storage == "bytes" or (storage == "auto" and grid.size < enough):
        return None
    try:
        return _bits(rule, grid, ends, parameters, faster=storage == "auto")
    except Unsuitable as reason:
        if storage == "auto":
            return None
        raise CaseError(
            f"rule {rule.name!r} cannot be stored as bits here: {reason}",
            key=KEY,
            remedy='write "auto" or "bytes"; the results are the same',
        ) from reason


def _bits(rule: Rule | BlockRule, grid: Grid, ends: Boundaries, parameters: Mapping[str, Any], *, faster: bool) -> Bits:
    if not isinstance(rule, Rule) or not isinstance(rule.update, Synchronous):
        raise Unsuitable("its cells are not all updated at once and independently")
    if len(rule.fields) != 1 or rule.states is None:
        raise Unsuitable("it does not have exactly one field of few states")
    if (cells := len(rule.neighbourhood.around(grid.ndim))) > MOST_CELLS:
        raise Unsuitable(f"it reads {cells} cells; bits are for at most {MOST_CELLS}")
    if grid.seam is not None:
        raise Unsuitable("edges of the grid are joined in reverse")
    name, _ = next(iter(rule.fields.items()))
    field_type = FieldType("u1", tuple(range(grid.ndim)))
    scalars = tuple((key, _scalar(value)) for key, value in parameters.items())
    graph = rule.kernel.graph(Signature(grid.ndim, (field_type, field_type), scalars, grid.axes))
    tables = tabulate(graph, rule.states, parameters)
    low, high = _along(tables)
    pair = ends.sides[-1]
    row = Row(grid.shape[-1], pair or (None, None), max(0, -low), max(0, high))
    row.check()
    try:
        words = word_grid(grid)
    except LayoutError as error:
        raise Unsuitable(error.message) from error
    kernel = word_kernel(tables, grid.ndim, rule.name, row.edges())
    if faster and _operations(kernel, rule.states, row, grid.ndim) > WORTH * cost(graph):
        raise Unsuitable("it would be slower than bytes")
    planes = tuple(
        Field(
            f"{name}.bit{plane}", words, "u8", slots=2,
            boundary=plane_conditions(row, ends.sides, plane), description=f"bit {plane} of 64 cells",
        )
        for plane in range(bits_of(rule.states))
    )  # fmt: skip
    row_fields = tuple(Field(f"{name}.{key}", words, "u8", axes=(words.ndim - 1,)) for key, _ in row.fields())
    about = f"state of rule {rule.name}"
    shown = Field(name, grid, "u1", boundary=ends.conditions, description=about)
    return Bits(Packed(shown, planes, row_fields, row.filled), row, kernel)


def _scalar(value: Any) -> ScalarType:
    return ScalarType("bool" if isinstance(value, bool) else "i8" if isinstance(value, int) else "f8", True)


def _along(tables: list[Table]) -> tuple[int, int]:
    """Return the lowest and the highest offset along a row at which the rule reads cells."""
    offsets: list[Offset] = []
    for variable in tables[0].variables:
        offsets += [term.offset for term in variable.terms] if isinstance(variable, Count) else [variable.offset]
    return min((offset[-1] for offset in offsets), default=0), max((offset[-1] for offset in offsets), default=0)


def _operations(kernel: Kernel, states: int, row: Row, ndim: int) -> int:
    words = (FieldType("u8", tuple(range(ndim))),) * bits_of(states)
    along = (FieldType("u8", (ndim - 1,)),) * len(row.fields())
    return cost(kernel.graph(Signature(ndim, (words, words, along))))

"""Tables of values at points, a row for each sample, which native code fills from a field or adds to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minga.engine import command as cmd
from minga.engine.bind import Binder
from minga.engine.call_kernels import SAMPLE_WORDS, call_functions
from minga.engine.comm import Comm
from minga.engine.compiled_call import BandedCall, CompiledCall, move_words
from minga.engine.engine import Engine
from minga.engine.skew import Touch
from minga.engine.storage import BlockArrays
from minga.errors import ProgramError
from minga.models.waves.medium import Floats
from minga.models.waves.receivers import Taps, spread, taken
from minga.space.field import Field

__all__ = ["PointTable"]


class PointTable:
    """A table of values at points.

    Parameters
    ----------
    taps
        The points.
    rows
        Number of rows.
    every
        Positions from one row to the next.
    blocks
        False if sampling and adding take no part in blocks of rounds, whose preparation takes as long as a short run.
    """

    def __init__(self, taps: Taps, rows: int, every: int, *, blocks: bool = True) -> None:
        self.taps, self.every, self.blocks = taps, every, blocks
        self.values: Floats = np.zeros((rows, taps.weights.shape[1]))
        self._begun: list[tuple[np.ndarray, int]] = []

    @property
    def steps(self) -> int:
        """Position of the last row."""
        return (len(self.values) - 1) * self.every

    def rewind(self) -> None:
        """Clear the table, and let its functions begin again at their first positions."""
        self.values[...] = 0.0
        for position, begin in self._begun:
            position[0] = begin

    def _position(self, begin: int) -> np.ndarray:
        """Return the position of a function, which begins there."""
        self._begun.append((np.full(1, begin, np.int64), begin))
        return self._begun[-1][0]

    def combine(self, comm: Comm) -> None:
        """Make the rows that ranks filled in part equal and complete on all of them; collective."""
        words = self.values.view(np.int64).reshape(-1)
        comm.allreduce(words, "sum")  # all ranks but one have the bits of 0

    def sampling(self, field: Field) -> CompiledCall:
        """Return a function that samples a field into the row of its position, if it has one, and advances from 0.

        This rank's points are sampled only; the halo of the field must be valid to the reach of the taps.

        Parameters
        ----------
        field
            The field.
        """
        position = self._position(0)

        def sample(engine: Engine) -> None:
            row, rest = divmod(int(position[0]), self.every)
            if rest == 0 and row < len(self.values):
                self.taps.sample_own(engine, field, self.values[row])
            position[0] += 1

        def banded(binder: Binder, number: int) -> list[BandedCall]:
            found = []
            for block in binder.storage.stored(field).blocks.values():
                mine, at, weights = taken(self.taps, block.owned, block.box.lo)
                if len(mine):
                    _check_inside(field, block, at)
                    bases, cells = self.taps.bases[:, mine], self.taps.cells[:, :, mine]
                    away = cells - bases[:, None]
                    slot = _slot(binder, field, block)
                    span = _corner(away.min(axis=(1, 2))), _corner(away.max(axis=(1, 2)))
                    args = [len(weights), slot, *_kept(binder, _offsets(block, at), weights, mine)]
                    touch = Touch(_corner(bases.min(axis=1)), _corner(bases.max(axis=1) + 1), {slot: span}, {})
                    words = self._words(binder, bases, args, position, number)
                    found.append(BandedCall(touch, call_functions().sample(field.dtype), words))
            return found

        return _compiled("receivers", sample, banded, position, 1, blocks=self.blocks)

    def injection(self, field: Field) -> CompiledCall:
        """Return a function that adds the row of its position to a field, if it has one, and steps back.

        It begins with the last row. Rows of nothing but 0 are not added.

        Parameters
        ----------
        field
            The field.
        """
        position = self._position(self.steps)

        def inject(engine: Engine) -> None:
            row, rest = divmod(int(position[0]), self.every)
            if rest == 0 and row >= 0 and self.values[row].any():
                self.taps.inject(engine, [field], self.values[row])
            position[0] -= 1

        def banded(binder: Binder, number: int) -> list[BandedCall]:
            found = []
            for block in binder.storage.stored(field).blocks.values():
                at, which, weights, point = spread(self.taps, block.owned)
                if len(which):
                    order = np.argsort(which, kind="stable")
                    starts = np.append(0, np.cumsum(np.bincount(which)))
                    owned, whole = (np.array(box.lo).reshape(-1, 1) for box in (block.owned, block.box))
                    cells = np.array(at) + owned
                    slot = _slot(binder, field, block)
                    tables = starts, _offsets(block, tuple(cells - whole)), weights[order], point[order]
                    first, *others = _kept(binder, *tables)
                    here = (0,) * len(cells), (0,) * len(cells)
                    box = _corner(cells.min(axis=1)), _corner(cells.max(axis=1) + 1)
                    words = self._words(binder, cells, [first, slot, *others], position, -number)
                    touch = Touch(*box, {slot: here}, {slot: here})
                    found.append(BandedCall(touch, call_functions().add(field.dtype), words))
            return found

        return _compiled("residuals", inject, banded, position, -1, blocks=self.blocks)

    def _words(
        self, binder: Binder, cells: np.ndarray, args: list[int], position: np.ndarray, later: int
    ) -> np.ndarray:
        """Return the arguments of a function of points, which lie in cells, shape (axes, points)."""
        rows, columns = self.values.shape
        places = cells[0], cells[1] if len(cells) > 1 else np.zeros_like(cells[0])
        low, high = [int(each.min()) for each in places], [int(each.max()) + 1 for each in places]
        table, at = binder.control(self.values), binder.control(position)
        own = len(places[0]), *_kept(binder, *places)
        words = np.array([*low, *high, *own, *args, table, columns, at, later, self.every, rows], np.int64)
        assert len(words) == SAMPLE_WORDS
        return words


def _compiled(
    label: str, function: Callable[[Engine], None], banded: Callable[[Binder, int], list[BandedCall]],
    position: np.ndarray, step: int, *, blocks: bool,
) -> CompiledCall:  # fmt: skip
    """Return a call whose position moves by a step."""

    def moved(binder: Binder, number: int) -> list[cmd.Command]:
        return [move_words(binder, [(position, number * step)], label)]

    def commands(binder: Binder) -> list[cmd.Command]:
        return [*(each.kernel(binder, label) for each in banded(binder, 0)), *moved(binder, 1)]

    return CompiledCall(label, function, commands, banded if blocks else None, moved)


def _check_inside(field: Field, block: BlockArrays, cells: tuple[np.ndarray, ...]) -> None:
    """Raise ProgramError if a block's arrays lack some cells."""
    if any(index.min() < 0 or index.max() >= n for index, n in zip(cells, block.box.shape, strict=True)):
        raise ProgramError(
            f"the points of a table need cells of {field.name!r} that lie beyond its halo",
            remedy="refresh the field to the reach of the taps before the call",
        )


def _slot(binder: Binder, field: Field, block: BlockArrays) -> int:
    """Return the address of the word that holds the base address of a field's present values."""
    index = field.now.index if binder.levels is None else binder.levels.index(field, field.now.index)
    return binder.address(block.table) + 8 * index


def _offsets(block: BlockArrays, cells: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the byte offsets of cells of a block's arrays."""
    strides = block.arrays[0].strides
    return sum((index * stride for index, stride in zip(cells, strides, strict=True)), np.zeros((), np.int64))


def _kept(binder: Binder, *tables: np.ndarray) -> list[int]:
    """Return the addresses of tables, which the binder keeps: whole numbers as i8, others as f8."""
    kinds = [np.int64 if table.dtype.kind == "i" else np.float64 for table in tables]
    return [binder.control(np.ascontiguousarray(table, kind)) for table, kind in zip(tables, kinds, strict=True)]


def _corner(cells: np.ndarray) -> tuple[int, ...]:
    return tuple(int(cell) for cell in cells)

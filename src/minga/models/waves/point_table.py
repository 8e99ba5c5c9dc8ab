"""Tables of values at points, a row for each sample, which native code fills from a field or adds to it."""

from __future__ import annotations

import numpy as np

from minga.engine import command as cmd
from minga.engine.bind import Binder
from minga.engine.call_kernels import SAMPLE_WORDS, call_functions
from minga.engine.comm import Comm
from minga.engine.compiled_call import CompiledCall, move_words
from minga.engine.engine import Engine
from minga.engine.storage import BlockArrays
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
    """

    def __init__(self, taps: Taps, rows: int, every: int) -> None:
        self.taps, self.every = taps, every
        self.values: Floats = np.zeros((rows, taps.weights.shape[1]))

    @property
    def steps(self) -> int:
        """Position of the last row."""
        return (len(self.values) - 1) * self.every

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
        position = np.zeros(1, np.int64)

        def sample(engine: Engine) -> None:
            row, rest = divmod(int(position[0]), self.every)
            if rest == 0 and row < len(self.values):
                self.taps.sample_own(engine, field, self.values[row])
            position[0] += 1

        def commands(binder: Binder) -> list[cmd.Command]:
            found: list[cmd.Command] = []
            function = call_functions().sample(field.dtype)
            for block in binder.storage.stored(field).blocks.values():
                mine, at, weights = taken(self.taps, block.owned, block.box.lo)
                if len(mine):
                    args = [len(mine), len(weights), *self._taps(binder, field, block, at, weights, mine)]
                    found.append(self._kernel(binder, args, position, function, "receivers"))
            return [*found, move_words(binder, [(position, 1)], "receivers")]

        return CompiledCall("receivers", sample, commands)

    def injection(self, field: Field) -> CompiledCall:
        """Return a function that adds the row of its position to a field, if it has one, and steps back.

        It begins with the last row. Rows of nothing but 0 are not added.

        Parameters
        ----------
        field
            The field.
        """
        position = np.full(1, self.steps, np.int64)

        def inject(engine: Engine) -> None:
            row, rest = divmod(int(position[0]), self.every)
            if rest == 0 and self.values[row].any():
                self.taps.inject(engine, [field], self.values[row])
            position[0] -= 1

        def commands(binder: Binder) -> list[cmd.Command]:
            found: list[cmd.Command] = []
            function = call_functions().add(field.dtype)
            for block in binder.storage.stored(field).blocks.values():
                at, which, weights, point = spread(self.taps, block.owned)
                if len(which):
                    order = np.argsort(which, kind="stable")
                    starts = binder.control(np.append(0, np.cumsum(np.bincount(which))).astype(np.int64))
                    lead = np.array(block.owned.lo) - block.box.lo
                    cells = tuple(index + shift for index, shift in zip(at, lead, strict=True))
                    args = [len(at[0]), starts]
                    args += self._taps(binder, field, block, cells, weights[order], point[order])
                    found.append(self._kernel(binder, args, position, function, "residuals"))
            return [*found, move_words(binder, [(position, -1)], "residuals")]

        return CompiledCall("residuals", inject, commands)

    def _taps(
        self, binder: Binder, field: Field, block: BlockArrays, cells: tuple[np.ndarray, ...], *tables: np.ndarray
    ) -> list[int]:
        """Return the words of a field's base address, the byte offsets of cells of its array, and further tables."""
        strides = block.arrays[0].strides
        offsets = sum((index * stride for index, stride in zip(cells, strides, strict=True)), np.int64(0))
        base = binder.address(block.table) + 8 * field.now.index
        kept = [np.ascontiguousarray(offsets, np.int64), *map(np.ascontiguousarray, tables)]
        return [base, *map(binder.control, kept)]

    def _kernel(self, binder: Binder, args: list[int], position: np.ndarray, function: int, label: str) -> cmd.Kernel:
        rows, columns = self.values.shape
        words = np.zeros(SAMPLE_WORDS, np.int64)
        words[:] = *args, binder.control(self.values), columns, binder.control(position), self.every, rows
        return cmd.Kernel(function, binder.control(words), 1, cmd.Category.CALL, label)

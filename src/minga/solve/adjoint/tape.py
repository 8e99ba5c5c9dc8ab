"""A tape: copies of what the reversal of steps reads, step after step, written and read without Python."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from minga.engine import command as cmd
from minga.engine.bind import Binder
from minga.engine.call_kernels import call_functions
from minga.engine.compiled_call import CompiledCall, move_words
from minga.engine.engine import Engine
from minga.engine.exchange import box_place
from minga.engine.helpers import BoxAddress, Copy, copy_args
from minga.engine.pages import borrowed, filed
from minga.engine.storage import LINE, BlockArrays, Storage
from minga.errors import RunError
from minga.space.box import Box
from minga.space.field import Register, Slot

__all__ = ["Folder", "Tape"]

Folder = str | os.PathLike[str] | None
_SLABS: Final = 4
"""Parts into which each thread's share of a copy is cut."""


@dataclass(slots=True, eq=False)
class _Track:
    """Frames of one block of a slot, or of a register, in one piece of memory; `place` holds the present address."""

    shape: tuple[int, ...]
    dtype: str
    within: tuple[int, ...]
    """Bytes from one row and so on to the next of a frame."""
    place: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    frames: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one frame, row and so on to the next."""
        return self.within[0] * self.shape[1] + -(self.within[0] * self.shape[1]) % LINE, *self.within

    @property
    def size(self) -> int:
        """Bytes of the frames."""
        return self.shape[0] * self.strides[0]

    def lay(self, memory: np.ndarray) -> None:
        """Put the frames into memory."""
        self.frames = np.ndarray(self.shape, self.dtype, memory.data, strides=self.strides)
        self.place[0] = self.frames.ctypes.data

    def at(self, number: int) -> np.ndarray:
        """Return a frame."""
        frame: np.ndarray = self.frames[number]
        return frame


class Tape:
    """Copies of this rank's cells of slots, and of registers, at successive steps.

    Parameters
    ----------
    engine
        The engine.
    slots
        The slots.
    registers
        The registers.
    steps
        Number of steps.

    Notes
    -----
    It has memory in the context of `lent` only, from which on it is empty again. What was bound to its functions stays
    valid from one such context to the next.
    """

    def __init__(self, engine: Engine, slots: Sequence[Slot], registers: Sequence[Register], steps: int) -> None:
        self.slots = tuple(slots)
        self._position = np.zeros(1, np.int64)
        self._tracks = {
            slot: [
                _Track((steps, *block.owned.shape), slot.field.dtype, _strides(block))
                for block in _blocks(engine.storage, slot)
            ]
            for slot in self.slots
        }
        self._numbers = {
            register: _Track((steps, 1), register.dtype, (np.dtype(register.dtype).itemsize,)) for register in registers
        }
        self._pointed: dict[int, tuple[np.ndarray, int]] = {}

    @property
    def _all(self) -> list[_Track]:
        return [*(track for each in self._tracks.values() for track in each), *self._numbers.values()]

    @contextmanager
    def lent(self, engine: Engine, disk: Folder = None) -> Iterator[None]:
        """Provide memory for the copies; collective.

        Parameters
        ----------
        engine
            The engine.
        disk
            Folder of a file that holds the copies; None: memory does.

        Raises
        ------
        RunError
            If the disk of a rank has no room; on all ranks.
        """
        sizes = [track.size for track in self._all]
        with _room(engine, sum(sizes) + LINE, disk) as memory:
            starts = np.append(0, np.cumsum(sizes)) + -memory.ctypes.data % LINE
            for track, start, size in zip(self._all, starts, sizes):
                track.lay(memory[start : start + size])
            self._position[0] = 0
            try:
                yield
            finally:
                self._point_back()
                for track in self._all:
                    track.frames = np.zeros(0)  # whatever still refers to this tape does not keep the memory

    def keep(self) -> CompiledCall:
        """Return the function that copies the present values to the end of the tape."""

        def keep(engine: Engine) -> None:
            number = int(self._position[0])
            for slot in self.slots:
                for track, (_, values) in zip(self._tracks[slot], engine.blocks(slot), strict=True):
                    track.at(number)[...] = values
            for register, track in self._numbers.items():
                track.at(number)[...] = engine.read(register)
            self._move(1)

        def commands(binder: Binder) -> list[cmd.Command]:
            copies = [Copy(given, own, shape, size) for given, own, shape, size in self._places(binder, self.slots)]
            streamed = _passed(binder, call_functions().stream_boxes, copies, "keep")
            copies = [Copy(given, own, (1,), size) for given, own, size in self._numbers_places(binder)]
            return [*streamed, *_copied(binder, copies, "keep"), self._moved(binder, 1, "keep")]

        return CompiledCall("keep", keep, commands)

    def restore(self) -> CompiledCall:
        """Return the function that takes the last copies from the tape and makes them the present values again.

        Native kernels find those of fields without ghost cells on the tape itself, until its memory is returned: they
        are read once, and copying them would displace what stays in the caches from step to step.
        """

        def restore(engine: Engine) -> None:
            self._move(-1)
            self._put(engine, self.slots)

        def commands(binder: Binder) -> list[cmd.Command]:
            return [self._moved(binder, -1, "restore"), *self._restored(binder, self.slots)]

        return CompiledCall("restore", restore, commands)

    def restore_again(self, slots: Sequence[Slot]) -> CompiledCall:
        """Return the function that repeats the last restoring, of some slots and of all registers."""

        def restore_again(engine: Engine) -> None:
            self._put(engine, slots)

        def commands(binder: Binder) -> list[cmd.Command]:
            return self._restored(binder, slots)

        return CompiledCall("restore again", restore_again, commands)

    # In Python -----------------------------------------------------------------------------------------------------
    def _move(self, by: int) -> None:
        for word, bytes_ in self._words(by):
            word[0] += bytes_

    def _put(self, engine: Engine, slots: Sequence[Slot]) -> None:
        """Make the copies at the position the present values."""
        self._point_back()
        number = int(self._position[0])
        for slot in slots:
            for track, (_, values) in zip(self._tracks[slot], engine.blocks(slot, write=True), strict=True):
                values[...] = track.at(number)
        for register, track in self._numbers.items():
            engine.write(register, track.at(number)[0].item())

    def _point_back(self) -> None:
        """Let kernels find all slots in their own arrays."""
        for table, address in self._pointed.values():
            table[0] = address

    # In native code ------------------------------------------------------------------------------------------------
    def _words(self, by: int) -> list[tuple[np.ndarray, int]]:
        """Return the words that change when the position does, and by how much."""
        return [(self._position, by), *((track.place, by * track.strides[0]) for track in self._all)]

    def _moved(self, binder: Binder, by: int, label: str) -> cmd.Command:
        return move_words(binder, self._words(by), label)

    def _restored(self, binder: Binder, slots: Sequence[Slot]) -> list[cmd.Command]:
        copied = [slot for slot in slots if not self._readable(binder, slot)]
        copies = [Copy(own, given, shape, size) for given, own, shape, size in self._places(binder, copied)]
        fetched = _passed(binder, call_functions().fetch_boxes, copies, "restore")
        copies = [Copy(own, given, (1,), size) for given, own, size in self._numbers_places(binder)]
        copies += [
            self._pointing(binder, *each) for slot in slots if slot not in copied for each in self._both(binder, slot)
        ]
        return [*fetched, *_copied(binder, copies, "restore")]

    def _both(self, binder: Binder, slot: Slot) -> list[tuple[_Track, BlockArrays]]:
        """Return the tracks of a slot, and its blocks."""
        return list(zip(self._tracks[slot], _blocks(binder.storage, slot), strict=True))

    def _readable(self, binder: Binder, slot: Slot) -> bool:
        """Return whether kernels can read copies of a slot in place: they are as its arrays are."""
        return slot.field.slots == 1 and all(
            block.box == block.owned and track.within == block.arrays[0].strides
            for track, block in self._both(binder, slot)
        )

    def _pointing(self, binder: Binder, track: _Track, block: BlockArrays) -> Copy:
        """Return the copy of the present address of a track to where kernels find that of the slot."""
        table = block.table
        self._pointed[table.ctypes.data] = table, block.arrays[0].ctypes.data
        source, target = (
            BoxAddress(binder.control(np.array([word.ctypes.data], np.int64)), 0, (8,)) for word in (track.place, table)
        )
        return Copy(source, target, (1,), 8)

    def _places(
        self, binder: Binder, slots: Sequence[Slot]
    ) -> list[tuple[BoxAddress, BoxAddress, tuple[int, ...], int]]:
        """Return where parts of slots are, and where their copies are; shapes, and bytes of an item."""
        found = []
        for slot in slots:
            for track, block in self._both(binder, slot):
                parts = _slabs(block, binder.backend.workers)
                for part in parts:
                    lead = (part.lo[0] - block.owned.lo[0]) * track.strides[1]
                    own = BoxAddress(binder.control(track.place), lead, track.strides[1:])
                    found.append((box_place(block, slot, part), own, part.shape, np.dtype(track.dtype).itemsize))
        return found

    def _numbers_places(self, binder: Binder) -> list[tuple[BoxAddress, BoxAddress, int]]:
        """Return where registers are, where their copies are, and their bytes."""
        found = []
        for register, track in self._numbers.items():
            memory = binder.storage.of(register)
            given = BoxAddress(binder.control(np.array([binder.address(memory)], np.int64)), 0, memory.strides)
            found.append((given, BoxAddress(binder.control(track.place), 0, memory.strides), memory.itemsize))
        return found


@contextmanager
def _room(engine: Engine, size: int, disk: Folder) -> Iterator[np.ndarray]:
    """Lend memory, or that of a file; if a rank has no room for it, all raise RunError."""
    with ExitStack() as context:
        problem, memory = "", np.zeros(0, np.uint8)
        try:
            memory = context.enter_context(borrowed(size) if disk is None else filed(size, disk))
        except (OSError, MemoryError, TypeError) as error:
            problem = str(getattr(error, "strerror", None) or error)
        failed = np.array([1 if problem else 0], np.int64)
        engine.comm.allreduce(failed, "sum")
        if failed[0]:
            raise RunError(
                f"adjoint: {size / 1e9:.3g} GB of states do not go to {disk or 'memory'}: "
                f"{problem or 'another rank has no room'}",
                remedy="give less memory=, or disk= with a folder that has room; without, steps are computed again",
            )
        yield memory


def _blocks(storage: Storage, slot: Slot) -> list[BlockArrays]:
    """Return this rank's blocks of a slot that own cells."""
    return [block for block in storage.stored(slot.field).blocks.values() if not block.owned.empty]


def _strides(block: BlockArrays) -> tuple[int, ...]:
    """Return the strides of a frame: those of the block's arrays, or, for the cells without ghosts, of whole lines."""
    if block.box == block.owned:
        return block.arrays[0].strides
    strides = [block.arrays[0].itemsize]
    shape = block.owned.shape
    for axis in range(len(shape) - 1, 0, -1):
        stride = strides[0] * shape[axis]
        strides.insert(0, -(-stride // LINE) * LINE if axis == len(shape) - 1 else stride)
    return tuple(strides)


def _slabs(block: BlockArrays, workers: int) -> list[Box]:
    """Cut the cells of a block into rows along the first axis, so that all workers can copy."""
    low, high = block.owned.lo[0], block.owned.hi[0]
    count = 1 if workers == 1 or block.owned.ndim == 1 else max(1, min(high - low, _SLABS * workers))
    ends = [low + (high - low) * k // count for k in range(count + 1)]
    return [Box((a, *block.owned.lo[1:]), (b, *block.owned.hi[1:])) for a, b in itertools.pairwise(ends)]


def _copied(binder: Binder, copies: Sequence[Copy], label: str) -> list[cmd.Command]:
    if not copies:
        return []
    return [binder.backend.helper("copy_boxes", copy_args(copies), len(copies), cmd.Category.CALL, label)]


def _passed(binder: Binder, function: int, copies: Sequence[Copy], label: str) -> list[cmd.Command]:
    """Return the commands of copies between the caches and memory, by a function that knows where memory is."""
    args = binder.control(copy_args(copies))
    return [cmd.Kernel(function, args, len(copies), cmd.Category.CALL, label)] if copies else []

"""Restoring a checkpoint: each rank takes from the stored boxes the parts in common with its own blocks.

The ranks and their layout may therefore differ from those that wrote. Files that a rank does not see are read by the
leader of a place that has them, which sends the parts that are wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.state import State, write_registers
from minga.output.checkpoint.blocks import Block, DamagedCheckpoint, copy_common, read_block, read_slabs, slabs_of
from minga.output.checkpoint.head import NAME, Head
from minga.output.checkpoint.messages import exchange
from minga.output.checkpoint.places import Places
from minga.output.checkpoint.sets import block_file
from minga.space.box import Box

__all__ = ["DamagedParts", "restore"]

Pieces = Sequence[tuple[Box, NDArray[Any]]]
Part = tuple[int, int]
"""Number of a file of blocks, and the leader of the place where it lies."""


class DamagedParts(DamagedCheckpoint):
    """Raised on all ranks if parts of a checkpoint cannot be read.

    Attributes
    ----------
    faults
        Descriptions of all faults.
    parts
        The parts, by file and leader; none if the checkpoint as a whole is of no use.
    """

    def __init__(self, faults: Mapping[Part | None, str]) -> None:
        super().__init__("; ".join(faults.values()))
        self.faults = tuple(faults.values())
        self.parts = frozenset(part for part in faults if part is not None)


def restore(
    folder: Path,
    head: Head,
    engine: Engine,
    state: State,
    places: Places | None = None,
    sources: Mapping[int, Sequence[int]] | None = None,
) -> None:
    """Restore fields and registers from a checkpoint; collective.

    Parameters
    ----------
    folder
        Its folder, in all places.
    head
        Its description.
    engine, state
        The engine, and the slots that are restored.
    places
        The places; by default all ranks see the same folder.
    sources
        Leaders of the places that have a file, by its number; by default all files are in the folder of rank 0.

    Raises
    ------
    DamagedParts
        On all ranks if something cannot be read. Fields may then hold anything; registers are as before.
    """
    reader = _Reader(
        folder,
        head,
        engine.comm,
        places or Places.one(engine.comm.size),
        sources or dict.fromkeys(head.files, (0,)),
    )
    for name, slot in state.changing.items():
        reader.read(name, slot.field.dtype, engine.blocks(slot, write=True))
    found: dict[Part | None, str] = {}
    for faults in engine.comm.bcast(engine.comm.gather(reader.faults)):
        for part, fault in faults.items():
            found.setdefault(part, fault)
    if found:
        raise DamagedParts(found)
    write_registers(engine, head.registers)


class _Reader:
    """Reader of the files of a checkpoint on one rank, and for others what these do not see.

    All ranks go through the blocks in the same order, so messages between two of them always meet.
    """

    def __init__(
        self, folder: Path, head: Head, comm: Comm, places: Places, sources: Mapping[int, Sequence[int]]
    ) -> None:
        self._folder, self._head, self._comm, self._places, self._sources = folder, head, comm, places, sources
        homes = set(places.leaders)
        self._apart = bool(places.blind) or not all(homes <= set(sources[number]) for number in head.files)
        self.faults: dict[Part | None, str] = {}

    def read(self, name: str, dtype: str, mine: Pieces) -> None:
        """Read a slot to this rank's blocks of it; collective if a rank does not see a file."""
        blocks = [block for block in self._head.blocks if block.slot == name]
        if self._head.dtypes.get(name) != dtype or not _covered(mine, blocks):
            self.faults[None] = f"{self._folder.name}/{NAME} does not hold all of slot {name!r}"
            if not self._apart:
                return
        wanted = self._comm.bcast(self._comm.gather([box for box, _ in mine])) if self._apart else None
        for block in blocks:
            self._read_block(block, dtype, mine, wanted)

    def _read_block(self, block: Block, dtype: str, mine: Pieces, wanted: Sequence[Sequence[Box]] | None) -> None:
        """Read a block, send it, or receive it."""
        rank, leaders = self._comm.rank, self._sources[block.file]
        sees, used = self._places.sees(rank, leaders), any(not (box & block.box).empty for box, _ in mine)
        path, server = block_file(self._folder, block.file), leaders[0]
        asking = self._asking(block, wanted) if rank == server and wanted is not None else []
        try:
            if asking and wanted is not None:
                for slab, rows in read_slabs(path, block, dtype):
                    copy_common(slab, rows, mine)
                    for peer in asking:
                        self._send(peer, slab, rows, wanted[peer])
            elif used and sees:
                read_block(path, block, dtype, mine)
            elif used:
                for slab in slabs_of(block, dtype):
                    self._receive(server, slab, mine)
        except DamagedCheckpoint as error:
            at = self._places.homes[rank]
            where = f" on {self._places.hosts[at]}" if len(self._places.leaders) > 1 else ""
            self.faults[block.file, at] = f"{error}{where}"

    def _asking(self, block: Block, wanted: Sequence[Sequence[Box]]) -> list[int]:
        """Return the ranks that want cells of a block, and do not see its file."""
        leaders = self._sources[block.file]
        return [
            rank
            for rank, boxes in enumerate(wanted)
            if not self._places.sees(rank, leaders) and any(not (box & block.box).empty for box in boxes)
        ]

    def _send(self, peer: int, slab: Box, rows: NDArray[Any], boxes: Sequence[Box]) -> None:
        parts = [rows[(slab & box).slices(slab.lo)] for box in boxes if not (slab & box).empty]
        if parts:
            exchange(self._comm, {peer: np.concatenate([_bytes(part) for part in parts])}, {})

    def _receive(self, server: int, slab: Box, mine: Pieces) -> None:
        views = [values[(slab & box).slices(box.lo)] for box, values in mine if not (slab & box).empty]
        if views:
            buffer = np.empty(sum(view.nbytes for view in views), np.uint8)
            exchange(self._comm, {}, {server: buffer})
            at = 0
            for view in views:
                view[...] = buffer[at : at + view.nbytes].view(view.dtype).reshape(view.shape)
                at += view.nbytes


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _covered(mine: Pieces, blocks: Sequence[Block]) -> bool:
    """Return whether boxes that do not overlap hold all of this rank's cells."""
    return all(sum((box & block.box).size for block in blocks) == box.size for box, _ in mine)

"""Writing checkpoints: all ranks together, each with the cells it owns; rank 0 writes for those without a folder."""

from __future__ import annotations

import collections
import contextlib
import hashlib
import itertools
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.state import State
from minga.errors import DiskFullError
from minga.output.checkpoint.blocks import Block, write_blocks
from minga.output.checkpoint.head import NAME, Head, write_head
from minga.output.checkpoint.places import Places
from minga.output.checkpoint.sets import block_file
from minga.output.digest import digest_of_blocks
from minga.output.directory import disk_errors
from minga.space.box import Box
from minga.space.field import Slot

__all__ = ["begin", "beginning_of", "complete", "digests", "write_slots"]


def begin(folder: Path) -> None:
    """Remove the description of the checkpoint in a folder before its blocks are overwritten; on leaders of places."""
    with disk_errors(folder):
        for part in (folder.parent, folder):  # not the run's directory: if that is gone, so is the run
            part.mkdir(exist_ok=True)
        for path in (folder / NAME, folder / f".{NAME}.partial"):
            path.unlink(missing_ok=True)
        sync_folder(folder)


def write_slots(folder: Path, engine: Engine, state: State, places: Places | None = None) -> tuple[Block, ...]:
    """Write all changing slots; collective. Return the blocks of all ranks on rank 0, none on the others.

    Raises
    ------
    DiskFullError
        On all ranks if the disk of one is full; its part is removed.
    RunError
        On a rank whose disk refuses otherwise: the others wait for it, so it must end the job.
    """
    rank, comm = engine.comm.rank, engine.comm
    blind = frozenset() if places is None else places.blind
    pieces = _pieces(engine, state.changing, blind)
    if rank in blind:
        assert not list(pieces), "rank 0 has them"
    mine: list[Block] = []
    refused = None
    if rank not in blind:
        try:
            mine = write_blocks(block_file(folder, rank), rank, pieces)
        except DiskFullError as error:
            refused = error
            collections.deque(pieces, maxlen=0)  # whose other halves are with other ranks
    faults = [fault for fault in comm.bcast(comm.gather(refused)) if fault is not None]
    if faults:
        raise DiskFullError(str(faults[0].message), remedy=faults[0].remedy)
    everyone = comm.gather([block.as_list() for block in mine])
    return tuple(Block.from_list(entry) for entries in everyone or () for entry in entries)


def complete(folder: Path, head: Head, kept: Collection[int] | None = None) -> None:
    """Make a checkpoint count whose blocks are on the disk; on leaders of places.

    Files of other ranks than those ``kept`` in this folder, by default all of the checkpoint, are removed.
    """
    kept = head.files if kept is None else head.files.intersection(kept)
    for path in folder.glob("blocks-*.bin"):  # left by an earlier run on other ranks
        number = path.stem.removeprefix("blocks-")
        if number.isdigit() and int(number) not in kept:
            with contextlib.suppress(OSError):
                path.unlink()
    write_head(folder, head)
    with disk_errors(folder):
        for place in (folder, folder.parent, folder.parent.parent):  # the first checkpoint made these
            sync_folder(place)


def digests(engine: Engine, slots: Mapping[str, Slot]) -> dict[str, str]:
    """Return a digest of each slot, which does not depend on the layout; collective, equal on all ranks."""
    found = {}
    for name, slot in slots.items():
        counted = engine.comm.rank == 0 or not slot.field.replicated
        mine = digest_of_blocks([(slot.field.bounds, engine.blocks(slot) if counted else ())])
        words = np.array([mine], np.uint64).view(np.int64)
        engine.comm.allreduce(words, "sum")
        found[name] = f"{int(words.view(np.uint64)[0]):016x}"
    return found


def beginning_of(engine: Engine, model: Model, state: State) -> str:
    """Return a digest of all present values that steps change; collective, equal on all ranks."""
    registers = sorted((register.key, engine.read(register)) for register in model.registers)
    text = repr((sorted(digests(engine, state.changing).items()), registers))
    return hashlib.sha256(text.encode()).hexdigest()


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _pieces(
    engine: Engine, slots: Mapping[str, Slot], blind: frozenset[int]
) -> Iterator[tuple[str, Box, NDArray[Any]]]:
    """Yield the pieces that this rank writes; collective during the iteration if there are blind ranks."""
    comm = engine.comm
    for name, slot in slots.items():
        # One copy is enough of data that all ranks hold whole.
        mine = engine.blocks(slot) if comm.rank == 0 or not slot.field.replicated else []
        if comm.rank not in blind:
            for box, values in mine:
                yield name, box, values
        if blind:
            sent = comm.gather([(box, values.copy()) for box, values in mine] if comm.rank in blind else [])
            for box, values in itertools.chain.from_iterable(sent or ()):
                yield name, box, values

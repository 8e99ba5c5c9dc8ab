"""Writing and restoring checkpoints: all ranks together, each with the cells it owns.

A reading rank takes from each stored box the part in common with its own blocks, so the ranks and their layout may
differ from those that wrote. For ranks that cannot reach the folder, because their machine does not share it, rank 0
writes and reads.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.state import State, write_registers
from minga.output.checkpoint.blocks import Block, DamagedCheckpoint, read_block, write_blocks
from minga.output.checkpoint.head import NAME, Head, write_head
from minga.output.digest import digest_of_blocks
from minga.output.directory import disk_errors
from minga.space.box import Box
from minga.space.field import Slot

__all__ = ["begin", "beginning_of", "block_file", "complete", "digests", "restore", "write_slots"]

_TOKEN = ".token"
"""Name of a file that tells ranks if they see the folder that rank 0 sees."""


def block_file(folder: Path, rank: int) -> Path:
    """Return the file of blocks that a rank writes."""
    return folder / f"blocks-{rank:06d}.bin"


def begin(folder: Path) -> None:
    """Remove the description of the checkpoint in a folder before its blocks are overwritten; on rank 0."""
    with disk_errors(folder):
        for part in (folder.parent, folder):  # not the run's directory: if that is gone, so is the run
            part.mkdir(exist_ok=True)
        for path in (folder / NAME, folder / f".{NAME}.partial"):
            path.unlink(missing_ok=True)
        (folder / _TOKEN).write_text(secrets.token_hex())
        sync_folder(folder)


def write_slots(folder: Path, engine: Engine, state: State) -> tuple[Block, ...]:
    """Write all changing slots; collective. Return the blocks of all ranks on rank 0, none on the others.

    Raises
    ------
    RunError
        On a rank whose disk refuses: the others wait for it, so it must end the job.
    """
    rank, comm = engine.comm.rank, engine.comm
    blind = _blind(comm, folder / _TOKEN)
    pieces = _pieces(engine, state.changing, blind)
    if rank in blind:
        assert not list(pieces), "rank 0 has them"
    mine = [] if rank in blind else write_blocks(block_file(folder, rank), rank, pieces)
    everyone = comm.gather([block.as_list() for block in mine])
    return tuple(Block.from_list(entry) for entries in everyone or () for entry in entries)


def complete(folder: Path, head: Head, ranks: int) -> None:
    """Make a checkpoint count whose blocks are on the disk; on rank 0."""
    write_head(folder, head)
    with disk_errors(folder):
        (folder / _TOKEN).unlink(missing_ok=True)
        for place in (folder, folder.parent, folder.parent.parent):  # the first checkpoint made these
            sync_folder(place)
    for path in folder.glob("blocks-*.bin"):  # left by an earlier run on more ranks
        if path.stem.removeprefix("blocks-").isdigit() and int(path.stem.removeprefix("blocks-")) >= ranks:
            with contextlib.suppress(OSError):
                path.unlink()


def restore(folder: Path, head: Head, engine: Engine, state: State) -> None:
    """Restore fields and registers from a checkpoint; collective.

    Raises
    ------
    DamagedCheckpoint
        On all ranks if it cannot be read. Fields may then hold anything; registers are as before.
    """
    fault: str | None = None
    try:
        _read(folder, head, engine, state)
    except DamagedCheckpoint as error:
        fault = str(error)
    faults = engine.comm.gather(fault)
    fault = engine.comm.bcast(None if faults is None else next(filter(None, faults), None))
    if fault is not None:
        raise DamagedCheckpoint(fault)
    write_registers(engine, head.registers)


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


def _blind(comm: Comm, file: Path) -> frozenset[int]:
    """Return the ranks that do not see a file that rank 0 sees; collective, equal on all ranks."""
    content = _content(file)
    everyone = comm.gather(content == comm.bcast(content))
    sees = comm.bcast(everyone)
    return frozenset(rank for rank, seen in enumerate(sees) if not seen)


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


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


def _read(folder: Path, head: Head, engine: Engine, state: State) -> None:
    """Read this rank's part, and on rank 0 that of blind ranks; collective.

    A rank that finds a fault raises DamagedCheckpoint.
    """
    comm, blind = engine.comm, _blind(engine.comm, folder / NAME)
    fault: DamagedCheckpoint | None = None
    for name, slot in state.changing.items():
        mine = engine.blocks(slot, write=True)
        blocks = [block for block in head.blocks if block.slot == name]
        asked = comm.gather([box for box, _ in mine] if comm.rank in blind else []) if blind else None
        others = [[(box, np.zeros(box.shape, slot.field.dtype)) for box in boxes] for boxes in asked or ()]
        try:
            if comm.rank not in blind and fault is None:
                _read_slot(folder, head, name, slot, blocks, [*mine, *itertools.chain.from_iterable(others)])
        except DamagedCheckpoint as error:
            fault = error  # the others wait for this rank's part in the next slot
        if blind:
            read = comm.bcast(others)[comm.rank]
            for (_, values), (_, found) in zip(mine, read, strict=False):
                values[...] = found
    if fault is not None:
        raise fault


def _read_slot(
    folder: Path, head: Head, name: str, slot: Slot, blocks: Sequence[Block], wanted: Sequence[tuple[Box, Any]]
) -> None:
    if head.dtypes.get(name) != slot.field.dtype or not _covered(wanted, blocks):
        raise DamagedCheckpoint(f"{folder.name}/{NAME} does not hold all of slot {name!r}")
    for block in blocks:
        if any(not (box & block.box).empty for box, _ in wanted):
            read_block(block_file(folder, block.file), block, slot.field.dtype, wanted)


def _covered(mine: Sequence[tuple[Box, Any]], blocks: Sequence[Block]) -> bool:
    """Return whether boxes that do not overlap hold all of this rank's cells."""
    return all(sum((box & block.box).size for block in blocks) == box.size for box, _ in mine)

"""``checkpoint.json``: the contents of a checkpoint, their positions, and the run it belongs to.

The file is ``{"checksum": CRC-32 of the rest, "checkpoint": {...}}`` with the entries of :class:`Head`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minga.output.checkpoint.blocks import Block, DamagedCheckpoint
from minga.output.directory import write_whole

__all__ = ["FORMAT", "NAME", "SLOTS", "Head", "Session", "heads_of", "read_head", "write_head"]

FORMAT = 1
NAME = "checkpoint.json"
SLOTS = ("a", "b")
"""Folders of the two checkpoints."""


@dataclass(frozen=True, slots=True)
class Session:
    """Steps ``first`` to ``last`` of a run that were done in one session.

    Attributes
    ----------
    first, last
        Range of steps.
    ranks, threads
        Number of ranks and threads.
    seconds
        Seconds of steps.
    checkpoints
        Seconds of writing checkpoints.
    """

    first: int
    last: int
    ranks: int
    threads: int
    seconds: float
    checkpoints: float

    def as_dict(self) -> dict[str, Any]:
        """Return the session for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Head:
    """Description of a checkpoint.

    Attributes
    ----------
    step, seconds
        Number of steps done, and the time they took.
    sessions
        Sessions of the run, the last one up to this step.
    registers
        Registers by name: type, and the 8 bytes as an unsigned number.
    dtypes
        Types of the slots by name.
    blocks
        Position of each box of each slot.
    constants
        Digests of slots that nothing changes: they are set anew, not read.
    identity
        Properties that must be equal in the resumed run: :mod:`minga.output.checkpoint.identity`.
    case
        The case as it was run, except for entries that may change: :mod:`minga.output.checkpoint.identity`.
    version
        Version of minga.
    observers
        Data kept by observers of the run, by name.
    epoch, mark
        Epoch of the run in which it was written, and random text: hosts have parts of the same checkpoint if they have
        the same marks.
    hosts
        The hosts that keep each file of blocks, by its number: first the one that wrote it.
    """

    step: int
    seconds: float
    sessions: tuple[Session, ...]
    registers: Mapping[str, tuple[str, int]]
    dtypes: Mapping[str, str]
    blocks: tuple[Block, ...]
    constants: Mapping[str, str]
    identity: Mapping[str, str]
    case: Mapping[str, Any]
    version: str
    observers: Mapping[str, Any] = field(default_factory=dict)
    epoch: int = 0
    mark: str = ""
    hosts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    slot: str = field(default="", compare=False)
    """Folder it was read from."""

    @property
    def files(self) -> frozenset[int]:
        """Numbers of the files that hold its blocks."""
        return frozenset(block.file for block in self.blocks)


def write_head(folder: Path, head: Head) -> None:
    """Make a checkpoint count.

    Raises
    ------
    RunError
        If the disk refuses.
    """
    content = {
        "format": FORMAT,
        "version": head.version,
        "step": head.step,
        "seconds": head.seconds,
        "sessions": [session.as_dict() for session in head.sessions],
        "identity": dict(head.identity),
        "case": dict(head.case),
        "constants": dict(head.constants),
        "registers": {name: list(entry) for name, entry in head.registers.items()},
        "dtypes": dict(head.dtypes),
        "blocks": [block.as_list() for block in head.blocks],
        "observers": dict(head.observers),
        "epoch": head.epoch,
        "mark": head.mark,
        "hosts": {str(number): list(names) for number, names in head.hosts.items()},
    }
    write_whole(folder / NAME, json.dumps({"checksum": _checksum(content), "checkpoint": content}) + "\n")


def read_head(folder: Path) -> Head | None:
    """Return the description of the checkpoint in a folder; None if there is no complete one.

    Raises
    ------
    DamagedCheckpoint
        If it is corrupted, or has another format.
    """
    try:
        text = (folder / NAME).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedCheckpoint(f"{folder.name}/{NAME} cannot be read: {error.strerror}") from error
    try:
        file = json.loads(text)
        content = file["checkpoint"]
        sound = file["checksum"] == _checksum(content)
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise DamagedCheckpoint(f"{folder.name}/{NAME} has changed since it was written")
    if content["format"] != FORMAT:
        raise DamagedCheckpoint(
            f"{folder.name}/{NAME} has format {content['format']}, this minga ({content['version']} wrote it) reads "
            f"format {FORMAT}"
        )
    return Head(
        step=content["step"],
        seconds=content["seconds"],
        sessions=tuple(Session(**entry) for entry in content["sessions"]),
        registers={name: (dtype, bits) for name, (dtype, bits) in content["registers"].items()},
        dtypes=content["dtypes"],
        blocks=tuple(map(Block.from_list, content["blocks"])),
        constants=content["constants"],
        identity=content["identity"],
        case=content["case"],
        version=content["version"],
        observers=content.get("observers", {}),
        epoch=content.get("epoch", 0),
        mark=content.get("mark", ""),
        hosts={int(number): tuple(names) for number, names in content.get("hosts", {}).items()},
        slot=folder.name,
    )


def heads_of(path: Path) -> tuple[list[Head], list[str]]:
    """Return the whole checkpoints in a run's ``checkpoints``, the newest first, and the faults of the others."""
    found: list[Head] = []
    faults: list[str] = []
    for slot in SLOTS:
        try:
            head = read_head(path / slot)
        except DamagedCheckpoint as error:
            faults.append(str(error))
        else:
            if head is not None:
                found.append(head)
    return sorted(found, key=lambda head: (head.epoch, head.step), reverse=True), faults


def _checksum(content: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())

"""Check before a run that the disk has room for the files it will write."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from minga.engine.clock import Interval, multiple, passed
from minga.engine.model import Model
from minga.engine.state import state_of
from minga.engine.stop import stop_of
from minga.errors import CaseError
from minga.lang.types import itemsize
from minga.options import OutputSettings, RunOptions
from minga.output.checkpoint.keeper import checkpointing_of
from minga.output.directory import RunDirectory
from minga.output.snapshots.archive import manifest_of
from minga.output.snapshots.manifest import read_manifest
from minga.output.snapshots.selection import selections_of
from minga.space.field import Field

__all__ = ["Need", "bytes_of_frame", "check_room", "frames_of", "free_bytes", "need_of"]

_CHECKPOINTS = 2
"""Number of checkpoints on the disk at once: one is whole while the other is replaced."""


@dataclass(frozen=True, slots=True)
class Need:
    """Data that a run will write.

    Attributes
    ----------
    frames
        Number of frames that are not there yet.
    frame
        Bytes of one frame, before compression.
    checkpoints
        Bytes of all checkpoints on the disk at once, if any are written.
    certain
        Whether no frame is compressed, and nothing ends the run before its last step.
    """

    frames: int
    frame: int
    checkpoints: int
    certain: bool


def frames_of(steps: int, every: Interval | None, until: float | str | None = None) -> int:
    """Return the number of frames that a run of `steps` steps takes, at most; with `until`, up to that model time."""
    if every is None:
        return 1 + (steps > 0)
    if not isinstance(every, int):
        if not isinstance(every, float) or not isinstance(until, float):
            return 1 + steps
        count = passed(until, every)
        return 1 + count + (multiple(every, count) < until * (1 - 1e-12))
    return 1 + steps // every + (steps % every > 0)


def bytes_of_frame(fields: Sequence[Field], settings: OutputSettings) -> int:
    """Return the bytes of one frame before compression."""
    return sum(math.prod(each.shape) * itemsize(each.field.dtype) for each in selections_of(fields, settings))


def need_of(
    directory: RunDirectory,
    model: Model,
    fields: Sequence[Field],
    options: RunOptions,
) -> Need:
    """Return the data that a run will write to a directory, in addition to the frames that it holds already."""
    there = len(read_manifest(manifest_of(directory.fields)))
    changing = state_of(model, None).changing.values()
    state = sum(slot.field.points.size * itemsize(slot.field.dtype) for slot in changing)
    return Need(
        frames=max(0, frames_of(options.run.steps, options.output.every, options.run.until) - there),
        frame=bytes_of_frame(fields, options.output),
        checkpoints=0 if checkpointing_of(options).off else _CHECKPOINTS * state,
        certain=(options.run.until is not None or not isinstance(options.output.every, float))
        and options.output.codec == "none"
        and stop_of(options.stop) is None
        and model.over is None,
    )


def free_bytes(place: Path) -> int | None:
    """Return the free bytes in the file system of a directory; None if it does not tell. Quotas are not considered."""
    try:
        return shutil.disk_usage(place).free
    except OSError:
        return None


def check_room(place: Path, need: Need, key: str) -> str | None:
    """Return a warning if the room may not suffice, otherwise None.

    Parameters
    ----------
    place
        Directory that the run writes to.
    need
        Data that it will write.
    key
        Entry or parameter that determines the number of frames.

    Raises
    ------
    CaseError
        If the room certainly does not suffice.
    """
    free = free_bytes(place)
    wanted = need.frames * need.frame
    if free is None or wanted + need.checkpoints <= free:
        return None
    frames = f"{need.frames:,} frames of {_text(need.frame)}, {_text(wanted)} in all"
    room = f"{place} has room for {_text(free)}"
    if need.certain and wanted > free:
        raise CaseError(
            f"the run would write {frames}; {room}",
            key=key,
            remedy='write fewer frames or a part of them, compress them (output.codec = "blosc"), or use another disk',
        )
    checkpoints = f" and {_text(need.checkpoints)} of checkpoints" if need.checkpoints else ""
    return f"minga: the run may write {frames}{'' if need.certain else ' at most'}{checkpoints}; {room}"


def _text(count: int) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"

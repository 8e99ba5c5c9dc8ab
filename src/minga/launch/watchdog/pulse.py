"""Pulses of ranks: a few numbers in a file for each rank, which the agent of its host reads.

The files lie in memory, in a folder for each host and start of a run. A rank writes without a system call, and what it
wrote last is there after it was killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import platform
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["LEFT", "PHASES", "Pulse", "PulseFile", "pulse_folder", "read_pulses"]

PHASES: Final = ("starting", "stepping", "observing", "checkpoint", "finishing", "left")
"""Activities of a rank; the last one is that of a rank that has ended by itself."""
LEFT: Final = PHASES[-1]

_WORDS: Final = struct.Struct("=6q")
_SUFFIX: Final = ".pulse"
_IN_MEMORY: Final = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Pulse:
    """State of a rank as it writes it.

    Attributes
    ----------
    rank
        Number of the rank.
    pid
        Its process on this host.
    beats
        Number of times that its thread has renewed the pulse.
    step
        Steps done.
    rounds
        Polls of long steps: progress inside a step.
    phase
        One of :data:`PHASES`.
    """

    rank: int
    pid: int
    beats: int
    step: int
    rounds: int
    phase: str


class PulseFile:
    """File of the pulse of this process as a rank; it is kept open until the process ends.

    Parameters
    ----------
    folder
        Folder of the pulses on this host.
    rank
        Number of the rank.

    Raises
    ------
    OSError
        If the file cannot be made.
    """

    def __init__(self, folder: Path, rank: int) -> None:
        path = folder / f"{rank:07d}{_SUFFIX}"
        temporary = path.with_suffix(".partial")
        temporary.write_bytes(_WORDS.pack(rank, os.getpid(), 0, 0, 0, 0))
        with temporary.open("r+b") as stream:
            self._memory = mmap.mmap(stream.fileno(), _WORDS.size)
        self._words = memoryview(self._memory).cast("q")
        temporary.replace(path)

    def write(self, beats: int, step: int, rounds: int, phase: str) -> None:
        """Renew the pulse."""
        self._words[2], self._words[3], self._words[4] = beats, step, rounds
        self._words[5] = PHASES.index(phase)


def read_pulses(folder: Path) -> list[Pulse]:
    """Return the pulses in a folder, in the order of ranks; those that cannot be read are left out."""
    found = []
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        with contextlib.suppress(OSError, struct.error, IndexError):
            rank, pid, beats, step, rounds, phase = _WORDS.unpack(path.read_bytes())
            found.append(Pulse(rank, pid, beats, step, rounds, PHASES[phase]))
    return found


def pulse_folder(token: str) -> Path:
    """Return the folder of pulses on this host of the start of a run that has a token.

    It depends on no variable of the environment, in which ranks and the agent may differ. Hosts of a lab, which share
    a file system, have folders of their own.
    """
    return (_IN_MEMORY if _IN_MEMORY.is_dir() else Path("/tmp")) / f"minga-{token}-{_place()}"


def _place() -> str:
    """Return a text that is the same for processes that see each other, and differs between hosts and containers."""
    said = [platform.node()]
    with contextlib.suppress(OSError):
        said.append(Path("/proc/self/ns/pid").readlink().name)
    return hashlib.sha256(" ".join(said).encode()).hexdigest()[:8]

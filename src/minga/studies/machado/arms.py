"""The ways in which frames leave a solver: each takes a frame when it is called, and is closed at the end.

`Buffered` is the original program of the paper, and `TwoProcesses` is its proposal.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import SerialComm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import RunError
from minga.options import OutputSettings
from minga.output.snapshots.snapshots import Snapshots
from minga.studies.machado.disks import Paced
from minga.studies.machado.files import Files

__all__ = ["ARMS", "Arm", "Order"]

_SHARED: Final = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Order:
    """One run.

    Attributes
    ----------
    arm
        One of `ARMS`.
    size
        Cells along an axis.
    steps
        Steps from one frame to the next.
    frames
        Number of frames.
    rate
        Bytes per second of the disk.
    depth
        Bytes of its page cache.
    copy
        Least seconds that bringing a frame from the solver into the page cache takes.
    buffers
        Number of buffers of "overlapped".
    codec
        Codec of "overlapped".
    folder
        An empty directory for the frames.
    """

    arm: str
    size: int
    steps: int
    frames: int
    rate: float = 1e12
    depth: float = 0.0
    copy: float = 0.0
    buffers: int = 2
    codec: str = "none"
    folder: str = ""


class Arm(Protocol):
    """A way in which frames leave the solver."""

    def take(self, step: int, engine: Engine) -> None:
        """Take the present frame."""

    def close(self) -> None:
        """Return when the program could end."""

    @property
    def backlog(self) -> float:
        """Seconds for which the disk is still busy at that time."""

    @property
    def counters(self) -> dict[str, Any]:
        """Counters of the run, by name."""


def p_of(model: Model, engine: Engine) -> NDArray[Any]:
    """Return p in the memory of the solver."""
    ((_, values),) = engine.blocks(model.field("p"))
    return values


class Nothing:
    """No output."""

    backlog = 0.0

    def __init__(self, order: Order, model: Model) -> None:
        self.counters: dict[str, Any] = {}

    def take(self, step: int, engine: Engine) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Buffered:
    """Computing and writing into the page cache in turn: the original program of the paper."""

    def __init__(self, order: Order, model: Model) -> None:
        self._model, self._files = model, Files(Path(order.folder), order.rate, order.depth, order.copy)

    def take(self, step: int, engine: Engine) -> None:
        """Write the frame into the page cache."""
        self._files.write(p_of(self._model, engine))

    def close(self) -> None:
        """Do nothing: the program does not wait for the disk."""

    @property
    def backlog(self) -> float:
        """Seconds until the disk has everything."""
        return self._files.cache.backlog

    @property
    def counters(self) -> dict[str, Any]:
        """Seconds of waiting for the cache, and by which frames took longer than `copy`."""
        return {"stall": self._files.stalled, "slower_than_copy": self._files.slower}


class Durable:
    """Computing and writing in turn, each frame being on the disk before the solver continues."""

    backlog = 0.0

    def __init__(self, order: Order, model: Model) -> None:
        self._model, self._folder = model, Path(order.folder)
        self._index, self._spent = 0, 0.0
        self._disk = Paced(order.rate, lambda: self._spent)

    def take(self, step: int, engine: Engine) -> None:
        """Write the frame to the disk."""
        values = p_of(self._model, engine)
        began = time.perf_counter()
        self._disk(values.nbytes)
        path = self._folder / f"{self._index:04}"
        with path.with_suffix(".partial").open("wb", buffering=0) as file:
            file.write(np.ascontiguousarray(values).data)
            os.fsync(file.fileno())
        path.with_suffix(".partial").rename(path)
        folder = os.open(self._folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self._index += 1
        self._spent += time.perf_counter() - began

    def close(self) -> None:
        """Do nothing: everything is on the disk."""

    @property
    def counters(self) -> dict[str, Any]:
        """Seconds of writing, and by which the real disk was slower."""
        return {"write": self._spent, "late": self._disk.late}


class TwoProcesses:
    """A second process that writes into the page cache; frames are handed over by blocking calls through one buffer."""

    def __init__(self, order: Order, model: Model) -> None:
        self._model = model
        self._shared = tempfile.NamedTemporaryFile(dir=_SHARED if _SHARED.is_dir() else None)  # noqa: SIM115
        nbytes = order.size**3 * 4
        self._shared.truncate(nbytes)
        self._buffer: NDArray[Any] = np.frombuffer(mmap.mmap(self._shared.fileno(), nbytes), np.float32)
        words = [sys.executable, "-m", "minga.studies.machado.second", self._shared.name, json.dumps(asdict(order))]
        self._second = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._stalled = 0.0
        self._told: dict[str, float] = {"backlog": 0.0}
        self._hear()

    def _hear(self) -> str:
        """Return the next line of the second process."""
        assert self._second.stdout is not None
        line = self._second.stdout.readline()
        if not line:
            raise RunError(f"the second process ended with status {self._second.wait()}")
        return line

    def _say(self, word: str) -> None:
        """Send a line to the second process."""
        assert self._second.stdin is not None
        self._second.stdin.write(f"{word}\n")
        self._second.stdin.flush()

    def take(self, step: int, engine: Engine) -> None:
        """Hand the frame over when the one before it has been written."""
        if step:
            began = time.perf_counter()
            self._hear()
            self._stalled += time.perf_counter() - began
        values = p_of(self._model, engine)
        self._buffer.reshape(values.shape)[...] = values
        self._say("frame")

    def close(self) -> None:
        """Wait for the last frame and for the end of the second process."""
        self._hear()
        self._say("end")
        self._told = json.loads(self._hear())
        self._second.communicate()
        self._shared.close()

    @property
    def backlog(self) -> float:
        """Seconds until the disk has everything."""
        return self._told["backlog"]

    @property
    def counters(self) -> dict[str, Any]:
        """Seconds of waiting for the second process, and its own counters."""
        return {"stall": self._stalled, **self._told}


class Overlapped:
    """minga's own writer: a bounded queue of buffers and a thread, every frame durable."""

    backlog = 0.0

    def __init__(self, order: Order, model: Model) -> None:
        settings = OutputSettings.model_validate(
            {"every": order.steps, "buffers": order.buffers, "codec": order.codec, "durable": True, "accuracy": 1e-3}
        )
        self._disk = Paced(order.rate, self._spent)
        self._snapshots: Snapshots | None = None
        self._snapshots = Snapshots(
            Path(order.folder) / "fields.zarr", model, [model.field("p")], settings, SerialComm(), throttle=self._disk
        )

    def _spent(self) -> float:
        """Return the seconds of writing so far."""
        counters = self._snapshots and self._snapshots.counters
        return counters.write + counters.fsync if counters else 0.0

    def take(self, step: int, engine: Engine) -> None:
        """Copy the frame into a buffer."""
        assert self._snapshots is not None
        self._snapshots.take(step, engine)

    def close(self) -> None:
        """Wait until all frames are on the disk."""
        assert self._snapshots is not None
        self._snapshots.close()

    @property
    def counters(self) -> dict[str, Any]:
        """The counters of the writer, and the seconds by which the real disk was slower."""
        assert self._snapshots is not None
        return {**self._snapshots.counters.as_dict(), "late": self._disk.late}


ARMS: Final[dict[str, Callable[[Order, Model], Arm]]] = {
    "none": Nothing,
    "buffered": Buffered,
    "durable": Durable,
    "processes": TwoProcesses,
    "overlapped": Overlapped,
}
"""Functions that make each arm, by name."""

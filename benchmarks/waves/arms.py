"""The ways in which frames leave a solver. Each is called with a step and the engine, and closed in the end.

The paper: "Paralelização de computação e escrita em aplicações de simulação de propagação de ondas utilizando o padrão
de comunicação MPI" (Machado, Lorenzon, Navaux): `Buffered` is its original, `TwoProcesses` what it proposes.
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
from typing import Any, Protocol

import numpy as np

import minga as mg
from benchmarks.waves.disks import Paced
from benchmarks.waves.files import Files
from minga.engine.comm import SerialComm
from minga.options import OutputSettings
from minga.output.snapshots.snapshots import Snapshots

ROOT = Path(__file__).parents[2]
SHARED = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Order:
    """One run.

    arm      "none", "buffered", "durable", "processes", "overlapped"
    size     cells along an axis; every that many `steps` there is a frame, `frames` in all
    rate     of the disk, bytes a second
    depth    of its cache, bytes
    copy     seconds that bringing a frame from the solver into the cache takes at least
    buffers  of "overlapped"
    codec    of "overlapped"
    folder   an empty directory for the frames
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
    """Takes frames; `close` returns when the program could end, `backlog` says for how long the disk is busy then."""

    def take(self, step: int, engine: mg.Engine) -> None: ...

    def close(self) -> None: ...

    @property
    def backlog(self) -> float: ...

    @property
    def counters(self) -> dict[str, Any]: ...


def p_of(model: mg.Model, engine: mg.Engine) -> np.ndarray:
    """The solver's own memory of p."""
    ((_, values),) = engine.blocks(model.field("p"))
    return values


class Nothing:
    """No output."""

    backlog = 0.0

    def __init__(self, order: Order, model: mg.Model) -> None:
        self.counters: dict[str, Any] = {}

    def take(self, step: int, engine: mg.Engine) -> None:
        pass

    def close(self) -> None:
        pass


class Buffered:
    """Compute, write into the page cache, compute, ...: the paper's original program."""

    def __init__(self, order: Order, model: mg.Model) -> None:
        self._model, self._files = model, Files(Path(order.folder), order.rate, order.depth, order.copy)

    def take(self, step: int, engine: mg.Engine) -> None:
        self._files.write(p_of(self._model, engine))

    def close(self) -> None:
        pass

    @property
    def backlog(self) -> float:
        return self._files.cache.backlog

    @property
    def counters(self) -> dict[str, Any]:
        return {"stall": self._files.stalled, "slower_than_copy": self._files.slower}


class Durable:
    """The same, but that every frame is on the disk before the solver goes on."""

    backlog = 0.0

    def __init__(self, order: Order, model: mg.Model) -> None:
        self._model, self._folder = model, Path(order.folder)
        self._index, self._spent = 0, 0.0
        self._disk = Paced(order.rate, lambda: self._spent)

    def take(self, step: int, engine: mg.Engine) -> None:
        values = p_of(self._model, engine)
        began = time.perf_counter()
        self._disk(values.nbytes)
        path = self._folder / f"{self._index:04}"
        with path.with_suffix(".partial").open("wb", buffering=0) as file:
            file.write(np.ascontiguousarray(values))
            os.fsync(file.fileno())
        path.with_suffix(".partial").rename(path)
        folder = os.open(self._folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self._index += 1
        self._spent += time.perf_counter() - began

    def close(self) -> None:
        pass

    @property
    def counters(self) -> dict[str, Any]:
        return {"write": self._spent, "late": self._disk.late}


class TwoProcesses:
    """A second process writes into the page cache; one buffer between them, handed over by blocking calls."""

    def __init__(self, order: Order, model: mg.Model) -> None:
        self._model = model
        self._shared = tempfile.NamedTemporaryFile(dir=SHARED if SHARED.is_dir() else None)  # noqa: SIM115
        self._nbytes = order.size**3 * 4
        self._shared.truncate(self._nbytes)
        self._buffer = np.frombuffer(mmap.mmap(self._shared.fileno(), self._nbytes), np.float32)
        words = [sys.executable, "-m", "benchmarks.waves.second", self._shared.name, json.dumps(asdict(order))]
        self._second = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=ROOT
        )
        self._stalled, self._told = 0.0, {"backlog": 0.0}
        self._hear()

    def _hear(self) -> str:
        assert self._second.stdout is not None
        line = self._second.stdout.readline()
        if not line:
            raise SystemExit(f"the second process ended with status {self._second.wait()}")
        return line

    def _say(self, word: str) -> None:
        assert self._second.stdin is not None
        self._second.stdin.write(f"{word}\n")
        self._second.stdin.flush()

    def take(self, step: int, engine: mg.Engine) -> None:
        if step:
            began = time.perf_counter()
            self._hear()  # the frame before has been written
            self._stalled += time.perf_counter() - began
        values = p_of(self._model, engine)
        self._buffer.reshape(values.shape)[...] = values
        self._say("frame")

    def close(self) -> None:
        self._hear()
        self._say("end")
        self._told = json.loads(self._hear())
        self._second.communicate()
        self._shared.close()

    @property
    def backlog(self) -> float:
        return self._told["backlog"]

    @property
    def counters(self) -> dict[str, Any]:
        return {"stall": self._stalled, **self._told}


class Overlapped:
    """minga's own writer: a bounded queue of buffers and a thread, every frame durable."""

    backlog = 0.0

    def __init__(self, order: Order, model: mg.Model) -> None:
        settings = OutputSettings(
            every=order.steps, buffers=order.buffers, codec=order.codec, durable=True, accuracy=1e-3
        )  # type: ignore[arg-type]
        self._disk = Paced(order.rate, self._spent)
        self._snapshots: Snapshots | None = None
        self._snapshots = Snapshots(
            Path(order.folder) / "fields.zarr", model, [model.field("p")], settings, SerialComm(), throttle=self._disk
        )

    def _spent(self) -> float:
        counters = self._snapshots and self._snapshots.counters
        return counters.write + counters.fsync if counters else 0.0

    def take(self, step: int, engine: mg.Engine) -> None:
        assert self._snapshots is not None
        self._snapshots.take(step, engine)

    def close(self) -> None:
        assert self._snapshots is not None
        self._snapshots.close()

    @property
    def counters(self) -> dict[str, Any]:
        assert self._snapshots is not None
        return {**self._snapshots.counters.as_dict(), "late": self._disk.late}


ARMS: dict[str, Callable[[Order, mg.Model], Arm]] = {
    "none": Nothing,
    "buffered": Buffered,
    "durable": Durable,
    "processes": TwoProcesses,
    "overlapped": Overlapped,
}

"""The paper's experiment on one core, a writer's core, and a disk of any speed: what is computed is scaled down, the
ratios between computing, copying and writing are those of the paper.

A frame takes `c` seconds to compute and `rho c` to reach the disk: rho = 0.62 is the paper's SSD beside its GPU, 2.36
its hard disk. Its frames went into a page cache that holds 0.56 of a run of 101 of them, and took 0.13 c to get there.
None of its programs waited for the disk. The durable arms do: a frame counts when it is on the disk.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results import Target
from benchmarks.waves.arms import ROOT, Order
from benchmarks.waves.expected import expected

SSD, DISK = 0.62, 2.36
COPY, CACHED, SHORT, LONG = 0.13, 0.56, 101, 151
SHAPE = {(SSD, SHORT): (1.10, 1.16), (SSD, LONG): (1.10, 1.16), (DISK, SHORT): (1.04, 1.12), (DISK, LONG): (0.98, 1.04)}
"""Times of the original by those of two processes, by rho and frames: the paper has 1.131, 1.132, 1.091 and 1.02."""
GAIN = {SSD: 1.5, DISK: 1.35}
"""The least that overlapping gains where every frame must be on the disk; without any cost it is 1.6 and 1.4."""
ZFP = ROOT / ".venv-waves" / "zfpy"
ACCURACY = 1e-3


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the experiment is.

    size        cells along an axis
    seconds     to compute from one frame to the next, about
    repetitions of every run
    frames      of a short and of a long run
    buffers     of the overlapped arms
    rhos        write time by compute time
    """

    size: int = 80
    seconds: float = 0.048
    repetitions: int = 3
    frames: tuple[int, ...] = (SHORT, LONG)
    buffers: tuple[int, ...] = (2, 4)
    rhos: tuple[float, ...] = (SSD, DISK)

    @classmethod
    def of(cls, quick: bool) -> Scale:
        return cls(24, 0.004, 1, (11,), (2,), (SSD,)) if quick else cls()


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the experiment: its name, its order but for the folder, and what it stands for."""

    name: str
    arm: str
    rho: float
    order: Order


def measure_paper(quick: bool) -> dict[str, Any]:
    """The whole experiment; what is stored."""
    scale = Scale.of(quick)
    with tempfile.TemporaryDirectory() as folder:
        steps, interval = _calibrate(scale, Path(folder))
        runs = list(plan(scale, steps, interval))
        found: dict[str, list[dict[str, Any]]] = {run.name: [] for run in runs}
        frames = Frames()
        numbers = random.Random(5)
        for number in range(scale.repetitions):
            for run in numbers.sample(runs, len(runs)):
                print(f"  {number + 1}/{scale.repetitions} {run.name}", file=sys.stderr, flush=True)
                place = Path(folder) / "run"
                place.mkdir()
                found[run.name].append(carry_out(replace(run.order, folder=str(place))))
                frames.compare(run, place, found[run.name][-1])
                shutil.rmtree(place)
    results = {run.name: _summary(run, found[run.name]) for run in runs}
    quiet = results["none"]["returned"]["median"] / (runs[0].order.frames - 1)
    for run in runs:
        results[run.name]["expected"] = round(expected(run.order, quiet), 4)
    return {
        "scale": {**asdict(scale), "steps_a_frame": steps, "frame_bytes": scale.size**3 * 4},
        "seconds_a_frame": {"calibrated": interval, "measured": quiet},
        "codec": _codec(),
        "frames_equal": frames.equal,
        "largest_error_of_compressed_frames": frames.error,
        "results": results,
        "targets": [{**asdict(target), "met": target.met} for target in targets(results, runs, quiet, frames)],
    }


def _calibrate(scale: Scale, folder: Path) -> tuple[int, float]:
    """Steps from frame to frame that take about as long as they should, and how long that is."""
    trial = Order("none", scale.size, 4, 11)
    steps = max(1, round(scale.seconds / (carry_out(trial)["returned"] / 40)))
    took = carry_out(replace(trial, steps=steps, frames=21))["returned"]
    return steps, took / 20


def plan(scale: Scale, steps: int, interval: float) -> Iterator[Run]:
    """All runs of a repetition. `interval`: seconds from frame to frame without output."""
    size = scale.size**3 * 4
    first = Order("none", scale.size, steps, scale.frames[0])
    yield Run("none", "none", 0.0, first)
    for rho in scale.rhos:
        order = replace(first, rate=size / (rho * interval), depth=CACHED * scale.frames[0] * size)
        for frames in scale.frames:
            for arm in ("buffered", "processes"):
                run = replace(order, arm=arm, frames=frames, copy=COPY * interval)
                yield Run(f"{arm}, rho {rho}, {frames} frames", arm, rho, run)
        yield Run(f"durable, rho {rho}", "durable", rho, replace(order, arm="durable"))
        for buffers in scale.buffers if rho == scale.rhos[0] else scale.buffers[-1:]:
            run = replace(order, arm="overlapped", buffers=buffers)
            yield Run(f"overlapped {buffers}, rho {rho}", "overlapped", rho, run)
        if rho > 1:
            run = replace(order, arm="overlapped", buffers=scale.buffers[-1], codec=_codec())
            yield Run(f"compressed, rho {rho}", "compressed", rho, run)


def _codec() -> str:
    """zfp where `make bench-waves` has put it, else blosc."""
    return "zfp" if ZFP.is_dir() else "blosc"


def carry_out(order: Order) -> dict[str, Any]:
    """A run in a process of its own."""
    environment = {**os.environ}
    if order.codec == "zfp":
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), str(ZFP)]))
    words = [sys.executable, "-m", "benchmarks.waves.one_run", json.dumps(asdict(order))]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"the run {order} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


class Frames:
    """Whether all runs left the same frames."""

    def __init__(self) -> None:
        self.equal = True
        self.error: float | None = None
        self._sums: list[int] = []
        self._samples: dict[int, np.ndarray] = {}
        self._waiting: list[dict[int, np.ndarray]] = []

    def compare(self, run: Run, folder: Path, result: dict[str, Any]) -> None:
        """Compare a run's frames with those of runs before."""
        if run.arm == "none":
            return
        if run.arm == "compressed":
            self._waiting.append({k: frame for k, frame in enumerate(_read(run, folder)) if k % 10 == 0})
            self._check_error()
            return
        sums = []
        for number, frame in enumerate(_read(run, folder)):
            sums.append(zlib.crc32(np.ascontiguousarray(frame)))
            if number % 10 == 0 and number not in self._samples:
                self._samples[number] = frame.copy()
        result["frames"] = len(sums)
        common = min(len(sums), len(self._sums))
        if len(sums) != run.order.frames or len(set(sums)) < len(sums) // 2 or sums[:common] != self._sums[:common]:
            self.equal = False
        self._sums = max(self._sums, sums, key=len)
        self._check_error()

    def _check_error(self) -> None:
        """The largest error of compressed frames, by the frame's largest value, where there is the original."""
        for several in self._waiting if self._samples else ():
            for number, frame in several.items():
                if number in self._samples:
                    most = float(abs(self._samples[number]).max()) or 1.0
                    error = float(abs(frame - self._samples[number]).max()) / most
                    self.error = max(self.error or 0.0, error)
        if self._samples:
            self._waiting = []


def _read(run: Run, folder: Path) -> Iterator[np.ndarray]:
    """The frames that a run left."""
    shape = (run.order.size,) * 3
    if run.order.arm != "overlapped":
        for path in sorted(folder.iterdir()):
            yield np.fromfile(path, np.float32).reshape(shape)
        return
    if run.order.codec == "zfp":
        sys.path.append(str(ZFP))
    from minga.output.store import FrameReader

    reader = FrameReader.open(folder / "fields.zarr")
    for index in range(len(reader.steps)):
        yield reader.frame("p", index)


def _summary(run: Run, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Median, mean and deviation of what was measured; the counters of the last repetition."""
    content: dict[str, Any] = {"order": {k: v for k, v in asdict(run.order).items() if k != "folder"}, "rho": run.rho}
    for key in ("returned", "durable", "compute"):
        values = [one[key] for one in found]
        content[key] = {
            "median": round(statistics.median(values), 4),
            "mean": round(statistics.mean(values), 4),
            "sd": round(statistics.stdev(values), 4) if len(values) > 1 else 0.0,
        }
    grown = [(one["peak"] - one["base"]) / run.order.size**3 / 4 for one in found if one["peak"] and one["base"]]
    if grown:
        content["memory_in_frames"] = round(max(grown), 2)
    return content | {"counters": found[-1]["counters"]}


def targets(
    results: Mapping[str, Mapping[str, Any]], runs: Sequence[Run], quiet: float, frames: Frames
) -> Iterator[Target]:
    """What should come out, of what was measured. `quiet`: seconds from frame to frame without output."""
    took = {run.name: float(results[run.name]["returned"]["median"]) for run in runs}
    for run in runs:
        if run.arm == "buffered" and (limits := SHAPE.get((run.rho, run.order.frames))) is not None:
            second = run.name.replace("buffered", "processes")
            ratio = took[run.name] / took[second]
            yield Target(f"{run.name} / two processes", ratio, "at least", limits[0])
            yield Target(f"{run.name} / two processes", ratio, "at most", limits[1])
        if run.arm == "overlapped":
            one_by_one = f"durable, rho {run.rho}"
            yield Target(f"{one_by_one} / {run.name}", took[one_by_one] / took[run.name], "at least", GAIN[run.rho])
            write = run.rho * quiet
            bound = (run.order.frames - 1) * max(quiet, write) + write
            yield Target(f"{run.name} / (max(compute, write) + drain)", took[run.name] / bound, "at most", 1.05)
            if "memory_in_frames" in results[run.name]:
                grown = results[run.name]["memory_in_frames"]
                yield Target(
                    f"{run.name}: memory beyond the model's", grown, "at most", run.order.buffers + 1, "frames"
                )
        if run.arm == "compressed":
            alone = (run.order.frames - 1) * quiet
            yield Target(f"{run.name} / compute", took[run.name] / alone, "at most", 1.1)
    yield Target("all runs left the same frames", float(frames.equal), "at least", 1)
    if frames.error is not None:
        yield Target("error of compressed frames by their largest value", frames.error, "at most", ACCURACY)

"""The experiment of Machado, Lorenzon and Navaux, repeated on one core, a core for writing, and a disk of any speed.

"Paralelização de computação e escrita em aplicações de simulação de propagação de ondas utilizando o padrão de
comunicação MPI". Computing is scaled down; the ratios between computing, copying and writing are those of the paper.

A frame takes `c` seconds to compute and `rho c` to reach the disk: rho = 0.62 is the SSD of the paper beside its GPU,
2.36 its hard disk. Its frames went into a page cache that holds 0.56 of a run of 101 of them, and took 0.13 c to get
there. None of its programs waited for the disk. The durable arms do: a frame counts when it is on the disk.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import RunError
from minga.studies.machado.arms import Order
from minga.studies.machado.expected import expected

__all__ = ["Sizes", "failed", "measure", "sizes", "tables"]

Say = Callable[[str], None]

SSD: Final = 0.62
DISK: Final = 2.36
COPY: Final = 0.13
CACHED: Final = 0.56
SHORT: Final = 101
LONG: Final = 151
PAPER: Final[Mapping[tuple[float, int], float]] = {
    (SSD, SHORT): 1.131,
    (SSD, LONG): 1.132,
    (DISK, SHORT): 1.091,
    (DISK, LONG): 1.02,
}
"""Time of the original program divided by that of two processes, by rho and number of frames: Figs. 2 and 3."""
SHAPE: Final[Mapping[tuple[float, int], tuple[float, float]]] = {
    (SSD, SHORT): (1.10, 1.16),
    (SSD, LONG): (1.10, 1.16),
    (DISK, SHORT): (1.04, 1.12),
    (DISK, LONG): (0.98, 1.04),
}
"""Limits of the same ratio here."""
GAIN: Final[Mapping[float, float]] = {SSD: 1.5, DISK: 1.35}
"""Least gain of overlapping where every frame must be on the disk; without any cost it is 1.6 and 1.4."""
ACCURACY: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Sizes:
    """Extent of the study.

    Attributes
    ----------
    size
        Cells along an axis.
    seconds
        Approximate seconds of computing from one frame to the next.
    repetitions
        Repetitions of every run.
    frames
        Frames of a short and of a long run.
    buffers
        Numbers of buffers of the overlapped arms.
    rhos
        Seconds of writing divided by seconds of computing.
    """

    size: int = 80
    seconds: float = 0.048
    repetitions: int = 3
    frames: tuple[int, ...] = (SHORT, LONG)
    buffers: tuple[int, ...] = (2, 4)
    rhos: tuple[float, ...] = (SSD, DISK)


def sizes(*, quick: bool) -> Sizes:
    """Return sizes for a study of some minutes, or of half a minute, whose times are meaningless."""
    return Sizes(24, 0.004, 1, (11,), (2,), (SSD,)) if quick else Sizes()


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the study: its name, the arm and rho that it stands for, and its order but for the folder."""

    name: str
    arm: str
    rho: float
    order: Order


def measure(how: Sizes, say: Say, packages: Path | None = None) -> dict[str, Any]:
    """Carry out all runs in random order, and return their times and the comparison of their frames as data.

    Parameters
    ----------
    how
        Extent of the study.
    say
        Function that reports progress.
    packages
        Directory with the package zfpy, if it is not installed; without both, blosc compresses.
    """
    codec = "zfp" if packages is not None or importlib.util.find_spec("zfpy") else "blosc"
    with tempfile.TemporaryDirectory() as folder:
        steps, interval = _calibrate(how)
        runs = list(plan(how, steps, interval, codec))
        found: dict[str, list[dict[str, Any]]] = {run.name: [] for run in runs}
        frames = Frames(packages)
        numbers = random.Random(5)
        for number in range(how.repetitions):
            for run in numbers.sample(runs, len(runs)):
                say(f"{number + 1}/{how.repetitions} {run.name}")
                place = Path(folder) / "run"
                place.mkdir()
                found[run.name].append(carry_out(replace(run.order, folder=str(place)), packages))
                frames.compare(run, place, found[run.name][-1])
                shutil.rmtree(place)
    results = {run.name: _summary(run, found[run.name]) for run in runs}
    quiet = results["none"]["returned"]["median"] / (runs[0].order.frames - 1)
    for run in runs:
        results[run.name]["expected"] = round(expected(run.order, quiet), 4)
    return {
        "scale": {**asdict(how), "steps_a_frame": steps, "frame_bytes": how.size**3 * 4},
        "seconds_a_frame": {"calibrated": interval, "measured": quiet},
        "codec": codec,
        "frames_equal": frames.equal,
        "largest_error_of_compressed_frames": frames.error,
        "results": results,
        "targets": list(_targets(results, runs, quiet, frames)),
    }


def _calibrate(how: Sizes) -> tuple[int, float]:
    """Return the steps from one frame to the next that take about as long as they should, and their seconds."""
    trial = Order("none", how.size, 4, 11)
    steps = max(1, round(how.seconds / (carry_out(trial)["returned"] / 40)))
    took = carry_out(replace(trial, steps=steps, frames=21))["returned"]
    return steps, took / 20


def plan(how: Sizes, steps: int, interval: float, codec: str) -> Iterator[Run]:
    """Yield all runs of a repetition.

    Parameters
    ----------
    how
        Extent of the study.
    steps, interval
        Steps from one frame to the next, and their seconds without output.
    codec
        Codec of compressed frames.
    """
    size = how.size**3 * 4
    first = Order("none", how.size, steps, how.frames[0])
    yield Run("none", "none", 0.0, first)
    for rho in how.rhos:
        order = replace(first, rate=size / (rho * interval), depth=CACHED * how.frames[0] * size)
        for frames in how.frames:
            for arm in ("buffered", "processes"):
                run = replace(order, arm=arm, frames=frames, copy=COPY * interval)
                yield Run(f"{arm}, rho {rho}, {frames} frames", arm, rho, run)
        yield Run(f"durable, rho {rho}", "durable", rho, replace(order, arm="durable"))
        for buffers in how.buffers if rho == how.rhos[0] else how.buffers[-1:]:
            run = replace(order, arm="overlapped", buffers=buffers)
            yield Run(f"overlapped {buffers}, rho {rho}", "overlapped", rho, run)
        if rho > 1:
            run = replace(order, arm="overlapped", buffers=how.buffers[-1], codec=codec)
            yield Run(f"compressed, rho {rho}", "compressed", rho, run)


def carry_out(order: Order, packages: Path | None = None) -> dict[str, Any]:
    """Do a run in a process of its own; raise RunError if it fails."""
    environment = {**os.environ}
    if packages is not None:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), str(packages)]))
    words = [sys.executable, "-m", "minga.studies.machado.one_run", json.dumps(asdict(order))]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"the run {order.arm!r} ended with status {done.returncode}: {said}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


class Frames:
    """Comparison of the frames that runs left.

    Attributes
    ----------
    equal
        True if all runs left the same frames, apart from compressed ones.
    error
        Largest error of compressed frames relative to the largest value of the frame; None if there were none.
    """

    def __init__(self, packages: Path | None = None) -> None:
        self.equal = True
        self.error: float | None = None
        self._packages = packages
        self._sums: list[int] = []
        self._samples: dict[int, NDArray[Any]] = {}
        self._waiting: list[dict[int, NDArray[Any]]] = []

    def compare(self, run: Run, folder: Path, result: dict[str, Any]) -> None:
        """Compare the frames of a run with those of the runs before it, and count them in its result."""
        if run.arm == "none":
            return
        if run.arm == "compressed":
            self._waiting.append({k: frame for k, frame in enumerate(self._read(run, folder)) if k % 10 == 0})
            self._check_error()
            return
        sums = []
        for number, frame in enumerate(self._read(run, folder)):
            sums.append(zlib.crc32(np.ascontiguousarray(frame).data))
            if number % 10 == 0 and number not in self._samples:
                self._samples[number] = frame.copy()
        result["frames"] = len(sums)
        common = min(len(sums), len(self._sums))
        if len(sums) != run.order.frames or len(set(sums)) < len(sums) // 2 or sums[:common] != self._sums[:common]:
            self.equal = False
        self._sums = max(self._sums, sums, key=len)
        self._check_error()

    def _check_error(self) -> None:
        """Update the largest error of compressed frames whose original is known."""
        for several in self._waiting if self._samples else ():
            for number, frame in several.items():
                if number in self._samples:
                    most = float(abs(self._samples[number]).max()) or 1.0
                    error = float(abs(frame - self._samples[number]).max()) / most
                    self.error = max(self.error or 0.0, error)
        if self._samples:
            self._waiting = []

    def _read(self, run: Run, folder: Path) -> Iterator[NDArray[Any]]:
        """Yield the frames that a run left."""
        shape = (run.order.size,) * 3
        if run.order.arm != "overlapped":
            for path in sorted(folder.iterdir()):
                yield np.fromfile(path, np.float32).reshape(shape)
            return
        if run.order.codec == "zfp" and self._packages is not None:
            sys.path.append(str(self._packages))
        from minga.output.store import FrameReader

        reader = FrameReader.open(folder / "fields.zarr")
        for index in range(len(reader.steps)):
            yield reader.frame("p", index)


def _summary(run: Run, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return median, mean and standard deviation of the times, and the counters of the last repetition."""
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


def _targets(
    results: Mapping[str, Mapping[str, Any]], runs: Sequence[Run], quiet: float, frames: Frames
) -> Iterator[dict[str, Any]]:
    """Yield the expected results, and whether they were found.

    Parameters
    ----------
    results, runs, frames
        The measured times, the runs, and the comparison of their frames.
    quiet
        Seconds from one frame to the next without output.
    """
    took = {run.name: float(results[run.name]["returned"]["median"]) for run in runs}
    for run in runs:
        if run.arm == "buffered" and (limits := SHAPE.get((run.rho, run.order.frames))) is not None:
            ratio = took[run.name] / took[run.name.replace("buffered", "processes")]
            yield _target(f"{run.name} / two processes", ratio, "at least", limits[0])
            yield _target(f"{run.name} / two processes", ratio, "at most", limits[1])
        if run.arm == "overlapped":
            one_by_one = f"durable, rho {run.rho}"
            yield _target(f"{one_by_one} / {run.name}", took[one_by_one] / took[run.name], "at least", GAIN[run.rho])
            write = run.rho * quiet
            bound = (run.order.frames - 1) * max(quiet, write) + write
            yield _target(f"{run.name} / (max(compute, write) + drain)", took[run.name] / bound, "at most", 1.05)
            if "memory_in_frames" in results[run.name]:
                grown = results[run.name]["memory_in_frames"]
                yield _target(
                    f"{run.name}: memory beyond the model's", grown, "at most", run.order.buffers + 1, "frames"
                )
        if run.arm == "compressed":
            alone = (run.order.frames - 1) * quiet
            yield _target(f"{run.name} / compute", took[run.name] / alone, "at most", 1.1)
    yield _target("all runs left the same frames", float(frames.equal), "at least", 1)
    if frames.error is not None:
        yield _target("error of compressed frames by their largest value", frames.error, "at most", ACCURACY)


def _target(what: str, found: float, sense: str, limit: float, unit: str = "") -> dict[str, Any]:
    """Return an expected result, and whether it was found."""
    met = found >= limit if sense == "at least" else found <= limit
    return {"what": what, "found": found, "sense": sense, "limit": limit, "unit": unit, "met": met}


def tables(result: Mapping[str, Any]) -> str:
    """Return the results as text, next to those of the paper."""
    scale, frame = result["scale"], result["seconds_a_frame"]["measured"]
    lines = [
        f"{scale['size']}^3 cells; {scale['steps_a_frame']} steps from one frame to the next take c = {frame:.3g} s",
        "Disks are emulated, and take rho c for a frame.",
        "",
        f"  {'run':34}{'seconds':>9}{'sd':>8}{'expected':>10}",
    ]
    for name, run in result["results"].items():
        took = run["returned"]
        lines.append(f"  {name:34}{took['median']:9.2f}{took['sd']:8.2f}{run['expected']:10.2f}")
    if found := list(_speedups(result["results"])):
        lines += ["", "Figs. 2 and 3. Times of the original program by those of two processes; in brackets the paper's"]
        lines += found
    error = result["largest_error_of_compressed_frames"]
    lines += ["", f"The frames of all runs are {'equal' if result['frames_equal'] else 'NOT EQUAL'}."]
    lines += [] if error is None else [f"Largest error of compressed frames by their largest value: {error:.2g}"]
    return "\n".join(lines)


def _speedups(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each ratio of the paper that was measured."""
    for (rho, frames), printed in PAPER.items():
        one, two = (results.get(f"{arm}, rho {rho}, {frames} frames") for arm in ("buffered", "processes"))
        if one is not None and two is not None:
            ratio = one["returned"]["median"] / two["returned"]["median"]
            yield f"  {'SSD' if rho == SSD else 'hard disk':10}{frames} frames  {ratio:.3f} ({printed:g})"


def failed(result: Mapping[str, Any]) -> list[str]:
    """Return the statements that do not hold, which depend on no clock."""
    return [] if result["frames_equal"] else ["all runs left the same frames"]

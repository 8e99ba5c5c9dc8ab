"""Execution of one experiment of a study: what is not installed is left out by name, and disturbances are reported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from minga.errors import CaseError, LaunchError, RunError
from minga.launch.implementations import NAMES, Implementation, find_implementation

__all__ = ["Bench", "Experiment", "busy_cores", "left_out", "run_all", "run_experiment"]

Result = dict[str, Any]
Value = TypeVar("Value")

_BUSY: Final = 0.5
"""Fraction of the cores in use by other programs above which times are meaningless."""
_GLANCE: Final = 0.4


class Bench:
    """State shared by experiments: output, extent, and measurements that several of them show."""

    def __init__(self, say: Callable[[str], None], *, quick: bool) -> None:
        self.say, self.quick = say, quick
        self._kept: dict[str, Any] = {}

    def once(self, name: str, measure: Callable[[], Value]) -> Value:
        """Return the result of ``measure``, which is called only the first time."""
        if name not in self._kept:
            self._kept[name] = measure()
        found: Value = self._kept[name]
        return found

    @property
    def mpi(self) -> str:
        """Name of the first MPI implementation found here; LaunchError if there is none."""
        there, missing = self.libraries()
        if not there:
            raise LaunchError("; ".join(missing.values()), remedy="pip install mpich")
        return there[0].name

    def libraries(self) -> tuple[list[Implementation], dict[str, str]]:
        """Return the MPI implementations found here, and why others are missing. With ``quick`` only the first one."""
        there, missing = [], {}
        for name in NAMES:
            try:
                there.append(find_implementation(name))
            except LaunchError as error:
                missing[NAMES[name]] = error.message
        return there[:1] if self.quick else there, missing


Experiment = tuple[str, Callable[[Bench], Result]]
"""Title and function of an experiment."""


def run_all(
    experiments: Mapping[str, Experiment],
    names: Sequence[str],
    bench: Bench,
    draw: Callable[[str, Result], Path | None],
    timed: Collection[str] | None = None,
) -> Result:
    """Run experiments of a study and return their results as data, with facts about the machine and their duration.

    Parameters
    ----------
    experiments
        All experiments by name.
    names
        Names of those to run.
    bench
        State shared by them.
    draw
        Function that draws the figure of a result, given its name too, and returns its path; None without a figure.
    timed
        Names of the experiments that measure times; by default all.
    """
    began = time.perf_counter()
    found: Result = {"emulated": True, "quick": bench.quick, "cores": os.cpu_count(), "experiments": {}}
    for name in names:
        title, experiment = experiments[name]
        bench.say(f"{name} {title} ...")
        found["experiments"][name] = result = run_experiment(
            title, experiment, bench, timed=timed is None or name in timed
        )
        picture = draw(name, result)
        if picture is not None:
            result["picture"] = str(picture)
        bench.say(_summary(name, result))
    return found | {"seconds": round(time.perf_counter() - began, 1)}


def run_experiment(title: str, experiment: Callable[[Bench], Result], bench: Bench, *, timed: bool = True) -> Result:
    """Run one experiment and return its result with its title and duration.

    Parameters
    ----------
    title
        Title of the result.
    experiment
        Function that measures; a LaunchError from it leaves the experiment out, other errors are failures.
    bench
        State shared by experiments.
    timed
        Whether the statements depend on times, which are not judged if other programs keep this machine busy before or
        after the experiment.
    """
    began = time.perf_counter()
    before = busy_cores() if timed else None
    try:
        found = experiment(bench)
    except LaunchError as error:  # a tool that is not installed
        found = {"left out": left_out(error), "shape": {}}
    except (CaseError, RunError) as error:  # the other experiments are measured nevertheless
        found = {"failed": error.message, "shape": {"it comes to its end": False}}
    result = {"title": title, **found, "seconds": round(time.perf_counter() - began, 1)}
    cores = os.cpu_count() or 1
    busy = max(before or 0.0, (busy_cores() if timed else None) or 0.0)
    if busy > _BUSY * cores:
        result["disturbed"] = f"other programs kept {busy:.1f} of {cores} cores busy"
    return result


def _summary(name: str, result: Mapping[str, Any]) -> str:
    """Return one line about a result: how many of its statements hold, and what was left out."""
    held = sum(map(bool, result["shape"].values()))
    without = result.get("left out", "")
    missing = ", ".join(without) if isinstance(without, Mapping) else without
    return f"{name} {result['title']}: {held} of {len(result['shape'])} statements hold" + (
        f"; left out: {missing}" if missing else ""
    )


def left_out(error: LaunchError) -> str:
    """Return why something is not measured, and what would change that."""
    return f"{error.message} ({error.remedy})" if error.remedy else error.message


def busy_cores() -> float | None:
    """Return the number of cores in use by other programs; None if the system does not report it."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None

    def clock() -> tuple[int, int]:
        values = [int(word) for word in stat.read_text().splitlines()[0].split()[1:9]]
        return sum(values), values[3] + values[4]  # idle, and waiting for disks

    all_before, idle_before = clock()
    time.sleep(_GLANCE)
    all_after, idle_after = clock()
    passed = max(1, all_after - all_before)
    return (os.cpu_count() or 1) * (1.0 - (idle_after - idle_before) / passed)

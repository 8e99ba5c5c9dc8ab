"""Runs that are killed at random moments and resumed on other numbers of ranks until they are complete."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import minga

__all__ = ["killed"]

CASES: Final = {
    "burning forest": """\
model = "automaton"
[grid]
shape = [192, 256]
boundary = "periodic"
[automaton]
rule = "forest_fire.py:forest_fire"
init = {soup = 0.4}
seed = 7
[automaton.parameters]
growth = 0.01
lightning = 1e-4
""",
    "reaction and diffusion": """\
model = "pde"
[grid]
shape = [96, 128]
boundary = "periodic"
[pde]
equations = {u = "0.2*laplace(u) - u*v**2 + 0.04*(1 - u)", v = "0.1*laplace(v) + u*v**2 - 0.1*v"}
initial = {u = "1 - 0.5*random()", v = "0.25*random()"}
integrator = "rk4"
dt = 0.5
""",
}
SECONDS: Final = 3.0
"""Seconds that a run would take on one rank if it were left alone."""
VICTIMS: Final = ("rank", "launcher", "starter", "host")
"""A rank; `minga run`; MPI's program between them; all processes at once, as when the power fails."""
PATIENCE: Final = 30.0
RANKS: Final = (1, 2, 3, 4)


def killed(kills: int, folder: Path, seed: int = 1) -> dict[str, Any]:
    """Return what came of runs that were killed so often.

    Parameters
    ----------
    kills
        Number of kills.
    folder
        An empty directory.
    seed
        Seed of the choice of victims, moments and numbers of ranks.
    """
    chance = random.Random(seed)
    cases = [_Case(name, folder / name.replace(" ", "-"), text) for name, text in CASES.items()]
    done: Counter[str] = Counter()
    started: Counter[str] = Counter()
    gone: list[float] = []
    faults: list[str] = []
    complete = resumed = 0
    while done.total() < kills:
        case = chance.choice(cases)
        fresh = True
        while True:
            ranks = chance.choice(RANKS)
            started[str(ranks)] += 1
            resumed += not fresh
            job = case.start(ranks)
            victim = chance.choice(VICTIMS)
            _wait(lambda job=job: job.poll() is not None, chance.uniform(0.3, 1.3 * case.seconds + 1.5))
            if job.poll() is None and done.total() < kills:
                gone.append(_kill(job, victim, chance))
                done[victim] += 1
            job.wait()
            fresh = not (case.run / "case.toml").exists()
            if case.finished:
                complete += 1
                faults += case.differences()
                break
            if job.returncode == 0:
                faults.append(f"{case.name}: ended with status 0 and no result")
                break
    return {
        "kills": done.total(), "by_victim": dict(done), "starts_by_ranks": dict(sorted(started.items())),
        "resumed": resumed, "complete": complete, "differing": faults,
        "seconds_until_all_processes_were_gone": {"median": statistics.median(gone), "largest": max(gone)},
    }  # fmt: skip


class _Case:
    """A case, its results without a kill, and the directory of the run that is killed."""

    def __init__(self, name: str, folder: Path, text: str) -> None:
        self.name, self.folder = name, folder
        self.run, self.log = folder / "run", folder / "log"
        folder.mkdir()
        shutil.copy(Path(minga.__file__).parent / "examples" / "rules" / "forest_fire.py", folder)
        self.steps = 200
        for _ in range(3):  # the first run compiles, the second one is timed, the third one is the reference
            (folder / "case.toml").write_text(f"{text}\n{self._options()}")
            shutil.rmtree(folder / "alone", ignore_errors=True)
            job = self._minga("run", folder / "case.toml", "--out", folder / "alone", "-n", 1)
            assert job.wait() == 0, self.log.read_text()
            self.seconds = json.loads((folder / "alone" / "result.json").read_text())["seconds"]
            self.steps = (
                max(40, round(self.steps * SECONDS / self.seconds)) if self.seconds < SECONDS / 2 else self.steps
            )
        self.expected = left(folder / "alone")

    def _options(self) -> str:
        return (
            f"[run]\nsteps = {self.steps}\n[output]\nevery = {max(1, self.steps // 5)}\npictures = 0\nreport = false\n"
            f"[checkpoint]\nevery = {max(1, self.steps // 20)}\n"
        )

    def _minga(self, *words: object) -> subprocess.Popen[bytes]:
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "minga", *map(str, words)], stdout=log, stderr=log, start_new_session=True
            )

    def start(self, ranks: int) -> subprocess.Popen[bytes]:
        """Start the run, or resume it."""
        if not (self.run / "case.toml").exists():
            shutil.rmtree(self.run, ignore_errors=True)
        if self.run.exists():
            return self._minga("run", "--resume", self.run, "-n", ranks)
        return self._minga("run", self.folder / "case.toml", "--out", self.run, "-n", ranks)

    @property
    def finished(self) -> bool:
        """True if the run has its result; it may have been killed after writing it."""
        return (self.run / "result.json").exists()

    def differences(self) -> list[str]:
        """Return what differs from the run that was left alone, and remove the run."""
        found = left(self.run)
        shutil.rmtree(self.run)
        names = {**self.expected, **found}
        return [f"{self.name}: {name}" for name in names if self.expected.get(name) != found.get(name)]


def left(run: Path) -> dict[str, str]:
    """Return what must be the same: every file of the store, the series, the digest, the observables and the end."""
    files = [*sorted(path for path in (run / "fields.zarr").rglob("*") if path.is_file()), run / "series.json"]
    found = {
        str(file.relative_to(run)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.exists()
    }
    result = json.loads((run / "result.json").read_text())
    return {**found, **{name: json.dumps(result[name]) for name in ("digest", "observables", "ended", "steps")}}


def _kill(job: subprocess.Popen[bytes], victim: str, chance: random.Random) -> float:
    """Kill a victim; return the seconds until all processes of the run were gone."""
    family = _descendants(job.pid)
    ranks = [pid for pid in family if b"minga.cli.rank" in _words(pid)]
    chosen = {
        "rank": ranks and [chance.choice(ranks)],
        "launcher": [job.pid],
        "starter": [pid for pid in family if b"mpiexec" in _words(pid)][:1],
        "host": [job.pid, *family],
    }[victim] or [job.pid]
    began = time.monotonic()
    for pid in chosen:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    everyone = [job.pid, *family]
    if not _wait(lambda: job.poll() is not None and not any(map(_alive, everyone)), PATIENCE):
        raise SystemExit(f"processes were left {PATIENCE:g} s after a {victim} was killed: {everyone}")
    return time.monotonic() - began


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and only waits to be asked for its status does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _wait(condition: Any, seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(0.005)
    return True

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
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
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
SECONDS: Final = 1.0
"""Seconds that a run would take on one rank if it were left alone."""
VICTIMS: Final = ("rank", "launcher", "starter", "host")
"""A rank; `minga run`; MPI's program between them; all processes at once, as when the power fails."""
PATIENCE: Final = 30.0
RANKS: Final = (1, 1, 1, 2, 2, 3, 3, 4)
"""Numbers of ranks, small ones more often."""
EARLY: Final = 0.1
"""Probability that the moment of a kill is counted from the start of the program, not of the run."""
KILLS: Final = (1, 1, 1, 2)
"""Least numbers of kills of a run, one of which is chosen."""


def killed(runs: int, folder: Path, seed: int = 1, beside: int = 3) -> dict[str, Any]:
    """Return what came of so many runs, each of which was killed, and resumed on other numbers of ranks.

    Parameters
    ----------
    runs
        Number of runs.
    folder
        An empty directory.
    seed
        Seed of the choice of victims, moments and numbers of ranks.
    beside
        Number of runs that go on at the same time.
    """
    cases = [_Case(name, folder / name.replace(" ", "-"), text) for name, text in CASES.items()]

    def one(number: int) -> _Story:
        case, chance = cases[number % len(cases)], random.Random(f"{seed} {number}")
        story = _survive(_Run(case, folder / f"run{number}"), chance)
        print(f"run {number} of {runs}: {story.by_victim.total()} kills", file=sys.stderr, flush=True)
        return story

    with ThreadPoolExecutor(beside) as pool:
        stories = list(pool.map(one, range(runs)))
    gone = [seconds for story in stories for seconds in story.gone]
    by_victim: Counter[str] = sum((story.by_victim for story in stories), Counter())
    by_ranks: Counter[str] = sum((story.by_ranks for story in stories), Counter())
    return {
        "runs": runs, "kills": by_victim.total(), "by_victim": dict(sorted(by_victim.items())),
        "starts_by_ranks": dict(sorted(by_ranks.items())), "resumed": sum(story.resumed for story in stories),
        "killed_and_resumed": sum(story.by_victim.total() > 0 and story.resumed > 0 for story in stories),
        "equal": sum(not story.faults for story in stories),
        "differing": [fault for story in stories for fault in story.faults],
        "seconds_until_all_processes_were_gone": {"median": statistics.median(gone), "largest": max(gone)},
    }  # fmt: skip


@dataclass
class _Story:
    """What happened to a run: kills and starts, how often it was resumed, what was wrong with it."""

    by_victim: Counter[str] = field(default_factory=Counter)
    by_ranks: Counter[str] = field(default_factory=Counter)
    resumed: int = 0
    gone: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def _survive(run: _Run, chance: random.Random) -> _Story:
    """Kill a run at random moments, and resume it each time on another number of ranks, until it is complete."""
    story, wanted, ranks = _Story(), chance.choice(KILLS), 0
    while True:
        ranks = chance.choice([number for number in RANKS if number != ranks])
        story.by_ranks[str(ranks)] += 1
        story.resumed += run.begun
        spared = run.begun and story.by_victim.total() >= wanted
        job = run.start(ranks)
        hit = not spared and _hit(run, job, chance, story)
        status = job.wait()
        if run.finished and not story.resumed:
            shutil.rmtree(run.place)  # it ended before it was killed
        elif run.finished:
            story.faults += run.differences()
            return story
        elif not hit:
            story.faults.append(f"{run.case.name}: status {status} and no result\n{run.log.read_text()[-2000:]}")
            return story


def _hit(run: _Run, job: subprocess.Popen[bytes], chance: random.Random, story: _Story) -> bool:
    """Kill a part of a job at a random moment; False if the job has ended before."""
    victim, early, moment = chance.choice(VICTIMS), chance.random() < EARLY, chance.uniform(0.0, run.case.seconds)
    _wait(lambda: early or run.begun or job.poll() is not None, PATIENCE)
    if _wait(lambda: job.poll() is not None, moment):
        return False
    story.gone.append(_kill(job, victim, chance))
    story.by_victim[victim] += 1
    return True


class _Case:
    """A case, what is left of it without a kill, and how many seconds it takes once it has begun."""

    def __init__(self, name: str, folder: Path, text: str) -> None:
        self.name, self.folder = name, folder
        folder.mkdir()
        shutil.copy(Path(minga.__file__).parent / "examples" / "rules" / "forest_fire.py", folder)
        steps, alone = 200, folder / "alone"
        for _ in range(3):  # the first run compiles, the second one is timed, the third one is the reference
            (folder / "case.toml").write_text(f"{text}\n{_options(steps)}")
            shutil.rmtree(alone, ignore_errors=True)
            job = _minga(folder / "log", "run", folder / "case.toml", "--out", alone, "-n", 1)
            _wait(lambda: (alone / "case.toml").exists(), PATIENCE)
            began = time.monotonic()
            assert job.wait() == 0, (folder / "log").read_text()
            self.seconds = time.monotonic() - began
            computing = json.loads((alone / "result.json").read_text())["seconds"]
            steps = max(40, round(steps * SECONDS / computing)) if computing < SECONDS / 2 else steps
        self.expected = left(alone)


class _Run:
    """A run of a case that is killed, and its directory."""

    def __init__(self, case: _Case, place: Path) -> None:
        self.case, self.place, self.log = case, place, place.with_suffix(".log")

    @property
    def begun(self) -> bool:
        """True if there is something to resume."""
        return (self.place / "case.toml").exists()

    @property
    def finished(self) -> bool:
        """True if the run has its result; it may have been killed after writing it."""
        return (self.place / "result.json").exists()

    def start(self, ranks: int) -> subprocess.Popen[bytes]:
        """Start the run, or resume it."""
        if self.begun:
            return _minga(self.log, "run", "--resume", self.place, "-n", ranks)
        shutil.rmtree(self.place, ignore_errors=True)
        return _minga(self.log, "run", self.case.folder / "case.toml", "--out", self.place, "-n", ranks)

    def differences(self) -> list[str]:
        """Return what differs from the run that was left alone, and remove the run."""
        expected, found = self.case.expected, left(self.place)
        shutil.rmtree(self.place)
        names = {**expected, **found}
        return [f"{self.case.name}: {name}" for name in names if expected.get(name) != found.get(name)]


def _options(steps: int) -> str:
    return (
        f"[run]\nsteps = {steps}\n[output]\nevery = {max(1, steps // 5)}\npictures = 0\nreport = false\n"
        f"[checkpoint]\nevery = {max(1, steps // 20)}\n"
    )


def _minga(log: Path, *words: object) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "minga", *map(str, words)], stdout=file, stderr=file, start_new_session=True,
            env={**os.environ, "MINGA_WAIT": "patient"},
        )  # fmt: skip


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

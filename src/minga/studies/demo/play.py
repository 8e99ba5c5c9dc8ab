"""Running the parts of the demo, one command after another."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from minga.cli.doctor import Finding
from minga.errors import CaseError, suggest
from minga.lab.cli.checks import labs
from minga.studies.demo.parts import PARTS, Part

__all__ = ["Outcome", "chosen", "play"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a part: the directories of its runs, the seconds it took, or the reason why it is missing."""

    part: Part
    runs: tuple[Path, ...]
    seconds: float
    skipped: str = ""
    failed: str = ""


def chosen(names: Sequence[str] | None) -> list[Part]:
    """Return the parts of these names in the order of the demo; all of them by default.

    Raises
    ------
    CaseError
        If there is no part of a name.
    """
    known = [part.name for part in PARTS]
    for name in names or ():
        if name not in known:
            raise CaseError(
                f"there is no part {name!r}; the parts are {', '.join(known)}",
                key="--only",
                suggestion=suggest(name, known),
            )
    return [part for part in PARTS if not names or part.name in names]


def play(part: Part, directory: Path, possible: Callable[[], Finding] = labs) -> Outcome:
    """Run the commands of a part; each writes to its own directory, and what it says to a file beside it."""
    if part.needs_labs:
        finding = possible()
        if not finding.data.get("version"):  # no labs, or labs without quotas, in which all machines are equal
            return Outcome(part, (), 0.0, skipped=finding.text)
    began = time.perf_counter()
    runs: list[Path] = []
    for number, show in enumerate(part.shows, 1):
        run = directory / (part.name if len(part.shows) == 1 else f"{part.name}-{number}")
        log = run.with_suffix(".log")
        with log.open("w", encoding="utf-8") as stream:
            words = [sys.executable, "-m", "minga", *show.arguments(run)]
            status = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, check=False, env=_environment()
            ).returncode
        if status:
            return Outcome(part, tuple(runs), time.perf_counter() - began, failed=f"{_last_line(log)} (see {log})")
        runs.append(run)
    return Outcome(part, tuple(runs), time.perf_counter() - began)


def _environment() -> dict[str, str]:
    """Return the environment with this Python's programs first, as labs start ``minga`` by its name."""
    programs = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": programs + os.pathsep + os.environ.get("PATH", "")}


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it left no message"

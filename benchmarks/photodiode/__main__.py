"""Measure photodiodes: minga beside DEVSIM, and native iterations beside those that Python drives.

python -m benchmarks.photodiode                everything, some four minutes; stores
                                               benchmarks/results/photodiode/FAMILY.json, and puts the tables of all
                                               families of processors into docs/performance.md
python -m benchmarks.photodiode --only loop    a part ("digits", "speed", "loop", "ac", "transients"); --update: into
                                               the stored file
python -m benchmarks.photodiode --quick        small and few: numbers that mean nothing
python -m benchmarks.photodiode --table        the stored numbers as Markdown, without measuring

DEVSIM comes with `make bench-photodiode`; where it is not installed it is left out, and the file says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import asked
from benchmarks.machine import by_name, measured
from benchmarks.page import shown
from benchmarks.photodiode.digits import measure_digits
from benchmarks.photodiode.loop import measure_loop
from benchmarks.photodiode.peer import PYTHON, version
from benchmarks.photodiode.report import markdown
from benchmarks.photodiode.spectra import measure_spectra
from benchmarks.photodiode.speed import measure_speed
from benchmarks.photodiode.transients import measure_transients
from benchmarks.timing import Effort

PARTS = ("digits", "speed", "loop", "ac", "transients")


def run(parts: Sequence[str], quick: bool, python: Path = PYTHON) -> dict[str, Any]:
    """Measure these parts; what is stored. `python`: that of DEVSIM; without it nothing is beside minga."""
    devsim = version(python)
    peer = python if devsim else None
    items: dict[str, Callable[[bool], Any]] = {
        "digits": lambda quick: measure_digits(quick, peer) if peer else None,
        "speed": lambda quick: measure_speed(quick, peer),
        "loop": measure_loop,
        "ac": lambda quick: measure_spectra(quick, peer) if peer else None,
        "transients": lambda quick: measure_transients(quick, peer),
    }
    effort = Effort.least() if quick else Effort(rounds=3)
    return measured(lambda: {"devsim": devsim, **by_name(items, parts, quick)}, quick, effort)


def main() -> int:
    about = "Measure photodiodes"
    options = asked("benchmarks.photodiode", about, PARTS, "photodiode", table=True, update=True)
    shown(options, "photodiode", run, markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure waves beside their peers, and the paper's experiment; store the numbers with a description of the machine.

python -m benchmarks.waves                both, about fifteen minutes; stores benchmarks/results/waves/FAMILY.json, and
                                          puts the tables of all families of processors into docs/performance.md
python -m benchmarks.waves --only speed   a part ("speed" or "paper"); --update: into the stored file
python -m benchmarks.waves --quick        small and few: numbers that mean nothing
python -m benchmarks.waves --table        the stored numbers as Markdown, without measuring

Devito and zfp come with `make bench-waves`; what is not installed is left out, and the file says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.command import asked
from benchmarks.machine import by_name, measured
from benchmarks.page import shown
from benchmarks.timing import Effort
from benchmarks.waves.report import markdown, targets_of
from benchmarks.waves.speed import measure_speed
from minga.studies.machado import study

ZFP: Final = Path(__file__).parents[2] / ".venv-waves" / "zfpy"


def measure_paper(quick: bool) -> dict[str, Any]:
    """The experiment of Machado, Lorenzon and Navaux, with zfp where `make bench-waves` has put it."""
    packages = ZFP if ZFP.is_dir() else None
    return study.measure(
        study.sizes(quick=quick), lambda line: print(f"  {line}", file=sys.stderr, flush=True), packages
    )


PARTS: Final[dict[str, Callable[[bool], Any]]] = {
    "speed": lambda quick: [found.as_json() for found in measure_speed(quick)],
    "paper": measure_paper,
}


def run(parts: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure these parts; what is stored."""
    return measured(lambda: by_name(PARTS, parts, quick), quick, Effort.least() if quick else Effort())


def main() -> int:
    about = "Measure waves beside their peers"
    options = asked("benchmarks.waves", about, PARTS, "waves", table=True, update=True)
    content = shown(options, "waves", run, markdown)
    for place, target in targets_of(content) if content else ():
        if not target["met"]:
            print(f"MISSED {place} {target['what']} {target['found']:.3g}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

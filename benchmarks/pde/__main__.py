"""Measure equations from text beside py-pde, schemes beside Devito, and convolutions beside SciPy.

python -m benchmarks.pde                   everything, some ten minutes; stores
                                           benchmarks/results/pde/FAMILY.json, and puts the tables of all families of
                                           processors into docs/performance.md
python -m benchmarks.pde --only explicit   a part ("gallery", "explicit", "convolutions"); --update: into the
                                           stored file
python -m benchmarks.pde --quick           one problem and few steps: numbers that mean nothing
python -m benchmarks.pde --table           the stored numbers as Markdown, without measuring

py-pde and Devito come with `make bench-pde`; where they are not installed they are left out, and the file says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.command import asked
from benchmarks.machine import by_name, measured
from benchmarks.page import shown
from benchmarks.pde.compare import explicit, gallery
from benchmarks.pde.convolutions import convolutions
from benchmarks.pde.report import markdown
from benchmarks.timing import Effort

PARTS: Final[dict[str, Callable[[bool], Any]]] = {
    "gallery": gallery,
    "explicit": explicit,
    "convolutions": convolutions,
}


def run(parts: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure these parts and return what is stored."""
    return measured(lambda: by_name(PARTS, parts, quick), quick, Effort.least() if quick else Effort(rounds=3))


def main() -> int:
    """Measure what the command line asks for."""
    options = asked("benchmarks.pde", "Measure equations from text", PARTS, "pde", table=True, update=True)
    shown(options, "pde", run, markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())

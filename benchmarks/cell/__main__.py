"""Measure electrodeposition: one scheme beside the other, multigrid by size, and a line beside FiPy and DEVSIM.

python -m benchmarks.cell                  everything, some ten minutes; stores
                                           benchmarks/results/cell/FAMILY.json, and puts the tables of all families of
                                           processors into docs/performance.md
python -m benchmarks.cell --only line      a part ("schemes", "multigrid", "line"); --update: into the stored file
python -m benchmarks.cell --quick          small and few: numbers that mean nothing
python -m benchmarks.cell --table          the stored numbers as Markdown, without measuring

FiPy and DEVSIM come with `make bench-cell`; where one is not installed it is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.cell.line import measure_line
from benchmarks.cell.multigrid import measure_multigrid
from benchmarks.cell.report import markdown
from benchmarks.cell.schemes import measure_schemes
from benchmarks.command import asked
from benchmarks.machine import by_name, measured
from benchmarks.page import shown
from benchmarks.timing import Effort

PARTS: Final[dict[str, Callable[[bool], Any]]] = {
    "schemes": measure_schemes,
    "multigrid": measure_multigrid,
    "line": measure_line,
}


def run(parts: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure these parts; what is stored."""
    return measured(lambda: by_name(PARTS, parts, quick), quick, Effort.least() if quick else Effort(rounds=3))


def main() -> int:
    options = asked("benchmarks.cell", "Measure electrodeposition", PARTS, "cell", table=True, update=True)
    shown(options, "cell", run, markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())

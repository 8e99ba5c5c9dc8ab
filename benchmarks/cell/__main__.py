"""Measure electrodeposition: one scheme beside the other, multigrid by size, and a line beside FiPy.

python -m benchmarks.cell                  everything, some ten minutes; stores benchmarks/results/cell.json, and puts
                                           its tables into docs/performance.md
python -m benchmarks.cell --only line      a part ("schemes", "multigrid", "line"); --update: into the stored file
python -m benchmarks.cell --quick          small and few: numbers that mean nothing
python -m benchmarks.cell --table          the stored numbers as Markdown, without measuring

FiPy comes with `make bench-cell`; where it is not installed it is left out, and the file says so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.cell.line import measure_line
from benchmarks.cell.multigrid import measure_multigrid
from benchmarks.cell.report import markdown, update_page
from benchmarks.cell.schemes import measure_schemes
from benchmarks.command import asked
from benchmarks.machine import describe, load
from benchmarks.timing import Effort

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
PARTS = ("schemes", "multigrid", "line")


def run(parts: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure these parts; what is stored."""
    began = time.perf_counter()
    effort = Effort.least() if quick else Effort(rounds=3)
    content: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": describe(effort),
    }
    for part in parts:
        print(f"{part} ...", file=sys.stderr, flush=True)
        if part == "schemes":
            content[part] = measure_schemes(quick)
        elif part == "line":
            content[part] = measure_line(quick)
        else:
            content[part] = measure_multigrid(quick)
    return content | {"seconds": round(time.perf_counter() - began, 1), "load_at_the_end": load()}


def main() -> int:
    options = asked("benchmarks.cell", "Measure electrodeposition", PARTS, "cell.json", table=True, update=True)
    if options.table:
        print(markdown(options.before()), end="")
        return 0
    content = options.whole(run(options.only, options.quick))
    print(markdown(content), end="")
    if options.store(content):
        PAGE.write_text(update_page(PAGE.read_text(), markdown(content)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

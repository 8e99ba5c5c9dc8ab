"""Measure shots and gradients of waves beside Devito; store the numbers with a description of the machine.

python -m benchmarks.seismics                some minutes; stores benchmarks/results/seismics/FAMILY.json, and puts the
                                             tables of all families of processors into docs/performance.md
python -m benchmarks.seismics --quick        small and few: numbers that mean nothing
python -m benchmarks.seismics --table        the stored numbers as Markdown, without measuring

Devito comes with `make bench-seismics`; where it is not installed it is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.command import asked
from benchmarks.families import family, stored
from benchmarks.machine import by_name, measured
from benchmarks.page import shown
from benchmarks.seismics.speed import measure_speed
from benchmarks.timing import Effort

PARTS: Final = {"speed": measure_speed}
COLUMNS: Final = ("forward", "devito forward", "gradient", "devito gradient")


def run(parts: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure these parts; what is stored."""
    return measured(lambda: by_name(PARTS, parts, quick), quick, Effort.least() if quick else Effort())


def markdown(content: Mapping[str, Any]) -> str:
    """The numbers as a table."""
    machine = content["machine"]
    lines = [
        f"{content['date'][:10]}, {machine['processor']} ({machine['llvm_name']}), one thread.",
        "",
        "| seconds of processor time | "
        + " | ".join((*COLUMNS, "forward, Devito / minga", "gradient, Devito / minga"))
        + " |",
        "|---|" + "---|" * (len(COLUMNS) + 2),
    ]
    for row in content.get("speed") or ():
        cells = [row["seconds"].get(name) for name in COLUMNS] + [row["ratios"].get(w) for w in ("forward", "gradient")]
        shown_cells = ["" if value is None else f"{value:.2f}" for value in cells]
        lines.append(f"| order {row['order']}, {row['steps']} steps | " + " | ".join(shown_cells) + " |")
    return "\n".join([*lines, ""])


def tables() -> str:
    """The stored numbers of all families of processors."""
    return "\n".join(markdown(content) for content in stored("seismics").values())


def main() -> int:
    options = asked(
        "benchmarks.seismics",
        "Measure shots and gradients",
        PARTS,
        f"seismics/{family()}.json",
        table=True,
        update=True,
    )
    shown(options, "seismics", run, markdown, all_stored=tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure, show a table, and store the numbers with a description of the machine.

python -m benchmarks                   everything, eight minutes; stores benchmarks/results/core/FAMILY.json, for
                                       the family of this processor, and puts the tables into docs/performance.md
python -m benchmarks --only jacobi     a part; stores only where --out says
python -m benchmarks --only jacobi --update   puts the part, with its date, among the stored numbers of the family
python -m benchmarks --quick           small sizes and few repetitions: numbers that mean nothing
python -m benchmarks --table           the stored numbers as Markdown, without measuring
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.blocks import measure_blocks
from benchmarks.command import asked, family
from benchmarks.compilation import measure_compilation
from benchmarks.families import side_by_side, stored, updated
from benchmarks.functions import measure_functions, measure_random
from benchmarks.machine import measured
from benchmarks.overhead import measure_overhead
from benchmarks.page import put_into_page
from benchmarks.peers import library
from benchmarks.report import markdown, terminal
from benchmarks.results import Found
from benchmarks.small_steps import measure_small_steps
from benchmarks.solver import measure_solver
from benchmarks.stencils import measure_jacobi, measure_life
from benchmarks.timing import Effort
from benchmarks.tti import measure_tti

ITEMS: dict[str, Callable[[Effort], Iterator[Found]]] = {
    "jacobi": measure_jacobi,
    "life": measure_life,
    "blocks": measure_blocks,
    "small": measure_small_steps,
    "tti": measure_tti,
    "compile": measure_compilation,
    "overhead": measure_overhead,
    "random": measure_random,
    "functions": measure_functions,
    "solver": measure_solver,
}


def run(names: Sequence[str], effort: Effort) -> dict[str, object]:
    """Measure these items; what is stored."""
    if library() is None:
        print("No gcc found: its loops are left out. Install gcc to compare.", file=sys.stderr)

    def items() -> dict[str, object]:
        results = []
        for name in names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            results += [found.as_json() for found in ITEMS[name](effort)]
        return {"rounds": effort.rounds, "results": results}

    return measured(items, effort.quick, effort)


def page(contents: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the tables of all families, the one with their ratios side by side first."""
    beside = [*side_by_side(contents)]
    head = "\n".join([*beside, "", ""]) if beside else ""
    return head + "\n".join(markdown(content) for content in contents.values())


def main() -> int:
    options = asked(
        "benchmarks", "Measure minga beside its peers", ITEMS, f"core/{family()}.json", table=True, update=True
    )
    if options.table:
        print(markdown(options.before()) if options.out else page(stored("core")), end="")
        return 0
    content = run(options.only, Effort.least() if options.quick else Effort())
    terminal(content)
    if options.store(updated(options.before(), content) if options.update else content):
        put_into_page("table", page(stored("core")))
    return 0


if __name__ == "__main__":
    sys.exit(main())

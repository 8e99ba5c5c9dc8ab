"""The experiments of ``minga bench tinetti``, with their numbers kept.

python -m benchmarks.tinetti                 everything, half an hour; stores benchmarks/results/tinetti.json
python -m benchmarks.tinetti --only E8       a part; stores only where --out says
python -m benchmarks.tinetti --only E8 --update   a part anew, in the stored file
python -m benchmarks.tinetti --quick         small and few: numbers that mean nothing

Needs Linux and root (see docs/lab.md); PVM, Open MPI and Intel MPI are measured where they are installed. The pictures
of docs/tinetti.md are drawn anew with what is stored.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.command import asked
from benchmarks.machine import measured
from benchmarks.timing import Effort
from minga.studies import report
from minga.studies.tinetti.study import NAMES, draw, measure

IMAGES: Final = Path(__file__).parent.parent.parent / "docs" / "images"
SHOWN: Final = ("E5", "E8", "E10")


def run(names: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure these experiments; what is stored."""

    def experiments() -> dict[str, Any]:
        found = measure(names, lambda line: print(line, file=sys.stderr, flush=True), None, quick=quick)
        return {"emulated": True, "results": found["experiments"]}

    return measured(experiments, quick, Effort())


def draw_shown(results: Mapping[str, Any]) -> None:
    """The pictures of the page."""
    for name in SHOWN:
        if results.get(name, {}).get("panels"):
            draw(name, results[name], IMAGES)


def main() -> int:
    options = asked("benchmarks.tinetti", "Repeat a study of local networks", NAMES, "tinetti.json", update=True)
    content = options.whole(run(options.only, options.quick))
    if options.store(content):
        draw_shown(content["results"])
    found = {"experiments": {name: content["results"][name] for name in options.only}}
    print(report.tables(found))
    for statement in report.failed(found):
        print(f"does not hold: {statement}", file=sys.stderr)
    return 1 if report.failed(found) else 0


if __name__ == "__main__":
    sys.exit(main())

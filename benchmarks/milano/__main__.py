"""Tables and figures of ``minga bench milano``, with their numbers kept, and where the seconds of a sweep go.

python -m benchmarks.milano                   everything; stores benchmarks/results/milano.json, and puts its tables
                                              into docs/performance.md and docs/milano.md
python -m benchmarks.milano --only table-2    a part; stores only where --out says
python -m benchmarks.milano --only table-2 --update   a part anew, in the stored file
python -m benchmarks.milano --quick           small and few: numbers that mean nothing
python -m benchmarks.milano --table           the stored numbers as Markdown, without measuring

Needs Linux and root for the times (see docs/lab.md). Tables 7 to 9 and Fig. 3 are one measurement: ask for them
together.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.command import asked
from benchmarks.machine import measured
from benchmarks.milano.losses import losses
from benchmarks.milano.report import SWEEPS_PAGE, markdown, sweeps_markdown
from benchmarks.page import put_into_page, shown
from benchmarks.timing import Effort
from minga.studies.milano.labs import nodes
from minga.studies.milano.study import NAMES, measure

PARTS: Final = (*NAMES, "losses")


def run(names: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure these parts; what is stored."""

    def parts() -> dict[str, Any]:
        asked_for = [name for name in names if name in NAMES]
        found = measure(asked_for, lambda line: print(line, file=sys.stderr, flush=True), None, quick=quick)
        results = found["experiments"]
        if "losses" in names:
            results["losses"] = losses(nodes(), quick)
        return {"emulated": True, "results": results}

    return measured(parts, quick, Effort())


def main() -> int:
    options = asked("benchmarks.milano", "Repeat a paper on relaxation", PARTS, "milano.json", table=True, update=True)
    content = shown(options, "milano", run, markdown)
    if content is not None and not options.out and (options.complete or options.update):
        put_into_page("milano", sweeps_markdown(content), SWEEPS_PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())

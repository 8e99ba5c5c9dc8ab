"""python -m benchmarks.check: measure a core set in two minutes, and compare its ratios with the family's stored ones.

The exit status is 1 if a ratio has fallen by more than a tenth, and 2 if nothing is stored for this family. Only what
was measured in turns in one run is compared: minga beside gcc's loops and a copy, the engine beside its bare kernel.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.__main__ import run
from benchmarks.command import family
from benchmarks.families import LEAST, Change, changes, stored
from benchmarks.timing import Effort

CORE: Final = ("jacobi", "life", "small", "tti", "functions")
EFFORT: Final = Effort(rounds=5)
"""Fewer rounds than what is stored, of samples that last as long: short runs of the engine are slower."""


def main(
    arguments: Sequence[str] | None = None, measure: Callable[[Sequence[str], Effort], dict[str, Any]] = run
) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CORE, default=CORE, help="a part of the core set")
    options = parser.parse_args(arguments)
    known = stored("core")
    if family() not in known:
        there = ", ".join(known) or "none"
        print(f"nothing is stored for processors of the family {family()} (there: {there}): run make bench first")
        return 2
    found = changes(known[family()], measure(options.only, EFFORT))
    for change in found:
        print(_line(change))
    slower = [change for change in found if change.slower]
    print(f"{len(found)} ratios compared with those of {known[family()]['date'][:10]}, {len(slower)} slower")
    return 1 if slower else 0


def _line(change: Change) -> str:
    mark = f"SLOWER than {LEAST:g} of before" if change.slower else ""
    return f"{change.result:50} {change.pair:18} {change.before[0]:7.2f} -> {change.now[0]:7.2f}  {mark}".rstrip()


if __name__ == "__main__":
    sys.exit(main())

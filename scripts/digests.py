"""Digests of all shipped cases after a few steps, on one, two and three ranks: results that may not change by one bit.

python scripts/digests.py          compares with those that are stored
python scripts/digests.py --store  stores them; only where results were meant to change
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import minga as mg
from minga.case.examples import examples
from minga.cli.case import find_source, read_case
from minga.engine.comm import Comm

STORED: Final = Path(__file__).parents[1] / "benchmarks" / "results" / "digests.json"
RANKS: Final = (1, 2, 3)
STEPS: Final = {"electrodeposition": 1, "photodiode": 1, "recovery": 40}
"""Numbers of steps of models whose steps are long, and of single cases; all others take `USUAL` steps."""
USUAL: Final = 12


def digest_of(name: str, ranks: int) -> str:
    """Return the digest of a shipped case after a few steps, which all ranks must agree on."""

    def on_rank(comm: Comm) -> str:
        case = read_case(find_source(name))
        steps = min(case.run.steps, STEPS.get(name, STEPS.get(case.section, USUAL)))
        return str(mg.run(case.model, steps, comm=comm).attrs["digest"])

    first, *others = mg.run_virtual(ranks, on_rank)
    if any(other != first for other in others):
        raise SystemExit(f"{name}: ranks disagree")
    return first


def main(arguments: list[str]) -> int:
    """Compare or store; return 1 where a digest differs."""
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    found: dict[str, str] = {}
    wrong = 0
    for name in examples():
        digests = {ranks: digest_of(name, ranks) for ranks in RANKS}
        found[name] = digests[1]
        expected = stored.get(name) if "--store" not in arguments else digests[1]
        same = set(digests.values()) == {expected}
        wrong += not same
        sys.stdout.write(f"{name:24} {digests[1]} {'' if same else f'DIFFERS: {digests}, stored {expected}'}\n")
        sys.stdout.flush()
    if "--store" in arguments and not wrong:
        STORED.write_text(json.dumps(found, indent=2) + "\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The command line that all benchmarks have: which parts, how thoroughly, and where the numbers go.

A full run is stored in `results/`; a quick one, whose numbers mean nothing, or some parts only where --out says.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asked for.

    only    names of parts, in the order in which they were given
    quick   small and few
    out     a file to store in
    stored  the file of full runs
    parts   all parts there are
    flags   what else was said
    """

    only: tuple[str, ...]
    quick: bool
    out: Path | None
    stored: Path
    parts: tuple[str, ...]
    flags: frozenset[str]

    @property
    def complete(self) -> bool:
        """Whether all parts are measured as they should be."""
        return set(self.only) == set(self.parts) and not self.quick

    @property
    def source(self) -> Path:
        """The file of numbers that were measured before."""
        return self.out or self.stored

    def store(self, content: Mapping[str, object]) -> bool:
        """Store what was found where it is to be; whether it replaces the numbers of the last full run."""
        if self.out or self.complete:
            self.source.parent.mkdir(parents=True, exist_ok=True)
            self.source.write_text(json.dumps(content, indent=1) + "\n")
        return self.complete and not self.out


def asked(
    module: str,
    description: str,
    parts: Iterable[str],
    results: str,
    *,
    flags: Mapping[str, str] | None = None,
    arguments: Sequence[str] | None = None,
) -> Asked:
    """Read the command line of `python -m module`. `results`: a file in results/; `flags`: words and what they do."""
    names = tuple(parts)
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="small and few: only to see that everything runs")
    parser.add_argument("--out", type=Path, help=f"the file to store (default: results/{results}, of a full run only)")
    for word, help_text in (flags or {}).items():
        parser.add_argument(f"--{word}", action="store_true", help=help_text)
    given = parser.parse_args(arguments)
    said = frozenset(word for word in flags or {} if getattr(given, word))
    if "update" in said and given.quick:
        parser.error("quick numbers mean nothing: they are not stored")
    return Asked(tuple(given.only), given.quick, given.out, RESULTS / results, names, said)

"""The command line that all benchmarks have: which parts, how thoroughly, and where the numbers go.

A full run is stored in `results/`. A quick one, whose numbers mean nothing, or some parts are stored only where --out
says, or with --update, which puts them into the stored file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minga.compile.target import host_target

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asked for.

    only       names of parts, in the order in which they were given
    quick      small and few
    out        a file to store in
    stored     the file of full runs
    parts      all parts there are
    table      show what is stored, and measure nothing
    update     put what is measured into the stored file
    by_family  whether each family of processors has a file
    """

    only: tuple[str, ...]
    quick: bool
    out: Path | None
    stored: Path
    parts: tuple[str, ...]
    table: bool
    update: bool
    by_family: bool

    @property
    def complete(self) -> bool:
        """Whether all parts are measured as they should be."""
        return set(self.only) == set(self.parts) and not self.quick

    @property
    def source(self) -> Path:
        """The file of numbers that were measured before."""
        return self.out or self.stored

    def before(self) -> dict[str, Any]:
        """The numbers that were measured before; ends the program where there are none."""
        try:
            found: dict[str, Any] = json.loads(self.source.read_text())
        except FileNotFoundError:
            sys.exit(f"{self.source} is not there: measure everything once, without --table and --update")
        return found

    def whole(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """What was found; with --update among what was found before. Parts are entries of `content`, or of its
        "results"."""
        if not self.update:
            return dict(content)
        about = {key: value for key, value in content.items() if key not in (*self.parts, "results")}
        before = self.before() if self.source.exists() else about
        here = "results" in content
        parts = {name: (content["results"] if here else content)[name] for name in self.only}
        anew = {name: {key: content[key] for key in ("date", "machine", "load_at_the_end")} for name in parts}
        changed = {"results": {**before.get("results", {}), **parts}} if here else parts
        return {**before, **changed, "updated": {**before.get("updated", {}), **anew}}

    def store(self, content: Mapping[str, Any]) -> bool:
        """Store what was found where it is to be; whether it replaces the numbers of the last full run."""
        if self.out or self.complete or self.update:
            self.source.parent.mkdir(parents=True, exist_ok=True)
            self.source.write_text(json.dumps(content, indent=1) + "\n")
        return (self.complete or self.update) and not self.out


def family() -> str:
    """Return LLVM's name of this processor, such as znver4 or sapphirerapids: what kernels are compiled for."""
    return host_target().cpu


def asked(
    module: str,
    description: str,
    parts: Iterable[str],
    results: str,
    *,
    table: bool = False,
    update: bool = False,
    arguments: Sequence[str] | None = None,
) -> Asked:
    """Read the command line of `python -m module`. `results`: a file in results/, or a folder with one for each family
    of processors."""
    names, by_family = tuple(parts), not results.endswith(".json")
    results = f"{results}/{family()}.json" if by_family else results
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="small and few: only to see that everything runs")
    parser.add_argument("--out", type=Path, help=f"the file to store (default: results/{results}, of a full run only)")
    if table:
        parser.add_argument("--table", action="store_true", help="print the stored numbers, without measuring")
    if update:
        parser.add_argument("--update", action="store_true", help="put the parts into the stored file")
    given = parser.parse_args(arguments)
    anew = getattr(given, "update", False)
    if anew and given.quick:
        parser.error("quick numbers mean nothing: they are not stored")
    shown = getattr(given, "table", False)
    return Asked(tuple(given.only), given.quick, given.out, RESULTS / results, names, shown, anew, by_family)

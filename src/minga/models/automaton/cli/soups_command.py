"""Typer interface of ``minga soups``, which :mod:`minga.models.automaton.soups.census` implements."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["soups"]

SHOWN = 24
"""Objects that the terminal lists."""


def _number(text: object) -> int:
    """Return the number of soups; raise CaseError for text that is not a whole number."""
    from minga.errors import CaseError

    try:
        return int(str(text))
    except ValueError:
        raise CaseError(
            f"{text!r} is not a number of soups", key="SOUPS", remedy="give a whole number: minga soups 1000"
        ) from None


def soups(
    count: Annotated[int, typer.Argument(metavar="SOUPS", help="Number of soups.", parser=_number)] = 100,
    first: Annotated[int, typer.Option("--first", help="Number of the first soup: hosts share a search by it.")] = 0,
    rule: Annotated[str, typer.Option("--rule", help="A rule by the number of live neighbours.")] = "B3/S23",
    symmetry: Annotated[
        str, typer.Option("--symmetry", help="C1 (none), C2_4, C4_4 (rotations), D2_+2 or D4_+4 (reflections).")
    ] = "C1",
    seed: Annotated[int, typer.Option("--seed", help="Seed of all soups.")] = 0,
    size: Annotated[int, typer.Option("--size", help="Rows and columns of random cells.")] = 16,
    density: Annotated[float, typer.Option("--density", help="Probability of live cells.")] = 0.5,
    steps: Annotated[int, typer.Option("--steps", help="Steps after which a soup is given up.")] = 30000,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Processes that share the soups; by default one for each core.")
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write the census to this JSON file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Run random cells until only known objects are left, and count these by their apgcodes."""
    from minga.cli.outputs import check_output
    from minga.engine.pin import available_cores
    from minga.errors import CaseError, DiskError
    from minga.models.automaton.soups.census import Search, census
    from minga.output.directory import write_whole

    if count < 1 or first < 0 or first + count > 2**32:
        raise CaseError(f"soups {first} to {first + count - 1}: expected some of 0 .. 2**32 - 1", key="SOUPS")
    if workers is not None and workers < 1:
        raise CaseError(
            f"{workers} processes: expected at least one", key="--workers", remedy="leave it out: one for each core"
        )
    check_output(out, "--out", force=force)
    search = Search(rule, seed, symmetry, size, density, steps)

    def tell(done: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\rminga: {done} of {count} soups")

    found = census(search, range(first, first + count), workers or len(available_cores()), tell).as_data(search)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    print(f"{found['soups']} soups of {rule}, symmetry {symmetry}: {found['objects']} objects")
    for name, number in list(found["counts"].items())[:SHOWN]:
        print(f"  {name:<20} {number:>10}  first in soup {found['samples'][name]}")
    if len(found["counts"]) > SHOWN:
        print(f"  and {len(found['counts']) - SHOWN} more kinds")
    if out is not None:
        text = json.dumps(found, indent=1) + "\n"
        try:
            write_whole(out, text)
        except DiskError:
            sys.stdout.write(text)  # so that what has been computed is not lost
            raise

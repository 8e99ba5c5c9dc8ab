"""The command ``minga demo``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option("--out", help="Directory of the page and of the runs.")] = Path("runs/demo"),
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Run only this part, such as waves; may be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing demo in the directory --out.")] = False,
) -> None:
    """Run a few simulations from different fields, and write one page for a browser that shows them."""
    import minga
    from minga.errors import CaseError
    from minga.launch.exit_codes import FAILED, OK
    from minga.output.directory import disk_errors
    from minga.studies.demo.page import headline, write_page
    from minga.studies.demo.play import chosen, play

    parts = chosen(only)
    if out.exists() and not force and (not out.is_dir() or any(out.iterdir())):
        raise CaseError(f"{out} exists and is not empty", key="--out", remedy="add --force, or name another directory")
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for number, part in enumerate(parts, 1):
        _print(f"{number}/{len(parts)}  {part.title}")
        for show in part.shows:
            _print(f"     minga {show.command}")
        outcome = play(part, out)
        outcomes.append(outcome)
        if outcome.failed:
            _print(f"     failed: {outcome.failed}")
        elif outcome.skipped:
            _print(f"     left out here: {outcome.skipped}")
        else:
            _print(f"     {headline(part, outcome.runs[0])}; {outcome.seconds:.0f} s with start and pictures")
    page = write_page(out, outcomes, minga.__version__)
    _print(f"\nThe page is {page}; to open it: xdg-open {shlex.quote(str(page))}")
    raise typer.Exit(FAILED if any(outcome.failed for outcome in outcomes) else OK)


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

"""The commands ``minga bench ...`` as typer shows them; what they do is in :mod:`minga.cli.bench`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Repeat published measurements on this machine.")


@app.callback()
def root() -> None:
    """Repeat published measurements on this machine."""


@app.command("milano-tables")
def milano_tables(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller and fewer: seconds instead of minutes.")] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write results here, a JSON file.")] = None,
    pictures: Annotated[
        Path | None, typer.Option("--pictures", metavar="DIRECTORY", help="Draw Figs. 6 and 7 there.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tables 1 to 4 of Milano, Mocskos and Marshall: what cutting the grid and changing the order of a sweep do."""
    from minga.cli import bench as command

    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
    result = command.measure(command.sizes(quick=quick), lambda line: print(line, file=sys.stderr), pictures)
    text = json.dumps(result, allow_nan=False)
    if out is not None:
        out.write_text(text + "\n")
    print(text if as_json else command.tables(result))

"""The commands ``minga bench ...`` as typer shows them; what they do is in :mod:`minga.papers`."""

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
    from minga.papers import milano
    from minga.record.directory import write_whole

    if pictures is not None:
        _make(pictures)
    result = milano.measure(milano.sizes(quick=quick), lambda line: print(line, file=sys.stderr), pictures)
    text = json.dumps(result, allow_nan=False)
    if out is not None:
        write_whole(out, text + "\n")
    print(text if as_json else milano.tables(result))


@app.command("bounanos")
def bounanos(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller and fewer: less than a minute.")] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="One experiment, such as E6; may be repeated.")
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write results here, a JSON file.")] = None,
    pictures: Annotated[
        Path | None, typer.Option("--pictures", metavar="DIRECTORY", help="Draw figures there.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with all tables and figures.")] = None,
    lab: Annotated[
        Path | None, typer.Option("--lab", metavar="FILE", help="Show what benchmarks.bounanos found in a lab beside.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Bounanos, Fleury, Nicolas and Vickers: drift-diffusion on an emulated cluster, organised in several ways.

    Status 1 if something that the paper says of its figures does not hold.
    """
    import tempfile

    from minga.errors import CaseError, suggest
    from minga.papers import bounanos as command
    from minga.record.directory import write_whole

    names = tuple(only or command.NAMES)
    for name in names:
        if name not in command.NAMES:
            raise CaseError(
                f"there is no experiment {name!r}",
                suggestion=suggest(name, command.NAMES),
                remedy=f"choose among {', '.join(command.NAMES)}",
            )
    beside = None if lab is None else command.read_lab_runs(lab)
    with tempfile.TemporaryDirectory() as directory:
        drawn = pictures or (Path(directory) if html is not None else None)
        if pictures is not None:
            _make(pictures)
        how = command.sizes(quick=quick)
        result = command.measure(how, names, lambda line: print(line, file=sys.stderr), drawn)
        if beside is not None:
            result["lab"] = beside
        if html is not None:
            write_whole(html, command.page(result))
    text = json.dumps(result, allow_nan=False)
    if out is not None:
        write_whole(out, text + "\n")
    print(text if as_json else command.tables(result))
    for statement in command.failed(result):
        print(f"does not hold: {statement}", file=sys.stderr)
    if command.failed(result):
        raise typer.Exit(1)


def _make(directory: Path) -> None:
    """A directory for pictures, before what is drawn there is measured."""
    from minga.record.directory import disk_errors

    with disk_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)

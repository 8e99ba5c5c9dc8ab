"""Typer interface of the commands ``minga bench ...``, which :mod:`minga.studies` implements."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Repeat published measurements on this machine.")

Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Run only this experiment, such as E6; may be repeated."),
]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="Write the results to this JSON file.")]
Pictures = Annotated[
    Path | None, typer.Option("--pictures", metavar="DIRECTORY", help="Draw the figures into this directory.")
]
Page = Annotated[Path | None, typer.Option("--html", help="Write an HTML page with all tables and figures.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.callback()
def root() -> None:
    """Repeat published measurements on this machine."""


@app.command("milano")
def milano(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer and smaller measurements: a minute instead of most of an hour.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Repeat only this table or figure, such as table-2; repeatable."),
    ] = None,
    out: Out = None,
    pictures: Pictures = None,
    html: Page = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Milano, Mocskos and Marshall: sweeps on blocks, messages behind them, and 14 unequal nodes in a box.

    Tables 1 to 9, Figs. 3, 6 and 7, and the paper's errors. What needs a lab is left out, by name, without root. The
    exit status is 1 if an expected result does not hold.
    """
    from minga.studies import report
    from minga.studies.milano import study as command

    names = _chosen(only, command.NAMES)
    _check_outputs(out, html, force=force)
    with _drawing(pictures, html) as drawn:
        found = command.measure(names, _say, drawn, quick=quick)
        _write_page(html, command.page, found, pictures)
    _tell(found, out, as_json, report.tables)
    _judge(report.failed(found))


@app.command("bounanos")
def bounanos(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and smaller experiments: less than a minute.")] = False,
    only: Only = None,
    out: Out = None,
    pictures: Pictures = None,
    html: Page = None,
    lab: Annotated[
        Path | None,
        typer.Option(
            "--lab", metavar="FILE", help="Show next to the results those that benchmarks.bounanos found in a lab."
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Bounanos, Fleury, Nicolas and Vickers: drift-diffusion on an emulated cluster, organised in several ways.

    The exit status is 1 if a statement of the paper about its figures does not hold.
    """
    from minga.studies.bounanos import study as command

    names = _chosen(only, command.NAMES)
    _check_outputs(out, html, force=force)
    beside = None if lab is None else command.read_lab_runs(lab)
    with _drawing(pictures, html) as drawn:
        result = command.measure(command.sizes(quick=quick), names, _say, drawn)
        if beside is not None:
            result["lab"] = beside
        _write_page(html, command.page, result, pictures)
    _tell(result, out, as_json, command.tables)
    _judge(command.failed(result))


@app.command("machado")
def machado(
    quick: Annotated[
        bool, typer.Option("--quick", help="One small and short run of each kind: seconds instead of minutes.")
    ] = False,
    out: Out = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Machado, Lorenzon and Navaux: frames of waves written while the next ones are computed, on emulated disks.

    The exit status is 1 if runs leave different frames.
    """
    from minga.studies.machado import study as command

    _check_outputs(out, force=force)
    found = command.measure(command.sizes(quick=quick), _say)
    _tell(found, out, as_json, command.tables)
    _judge(command.failed(found))


@app.command("mpi")
def mpi(
    case: Annotated[str, typer.Argument(metavar="CASE", help="A case file, or the name of an example.")],
    lab: Annotated[
        str | None,
        typer.Option("--lab", metavar="LAB", help="Run in this lab, one rank per node; by default on this machine."),
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option("--hosts", metavar="FILE", help="Run on these hosts; see `minga run --help`."),
    ] = None,
    shell: Annotated[
        str, typer.Option("--shell", metavar="COMMAND", help="Program that reaches hosts, in place of ssh.")
    ] = "ssh",
    libraries: Annotated[
        str | None,
        typer.Option("--mpi", metavar="NAMES", help="MPI libraries to compare; by default mpich,openmpi,impi."),
    ] = None,
    ranks: Annotated[int | None, typer.Option("-n", "--ranks", help="Number of ranks.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Seconds for which each variant is timed.")] = 4.0,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set an entry of the case; may be repeated.")
    ] = None,
    out: Out = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw both tables into this .png or .svg file.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """MPICH, Open MPI and Intel MPI on a case, blocking and overlapped: Tables 5 and 6 of Milano, Mocskos and Marshall.

    The exit status is 1 if their results differ in any bit.
    """
    from minga.launch.implementations import NAMES
    from minga.studies.cli.mpi import LibrariesRequest, compare
    from minga.studies.tinetti import mpi_compared

    names = tuple(NAMES) if libraries is None else tuple(filter(None, libraries.split(",")))
    _check_outputs(out, picture=picture, force=force)
    found = compare(LibrariesRequest(case, tuple(overrides or ()), lab, hosts, shell, names, ranks, seconds), _say)
    if picture is not None:
        mpi_compared.draw(found, picture)
    _tell(found, out, as_json, mpi_compared.tables)
    _judge(mpi_compared.failed(found))


@app.command("printista")
def printista(
    quick: Annotated[
        bool, typer.Option("--quick", help="A small lattice and few steps: seconds instead of a minute.")
    ] = False,
    out: Out = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Printista and Saez: messages of an automaton by mapping, and its times on the cores of this machine.

    The exit status is 1 if a count differs from the paper's, or if runs differ in any bit.
    """
    from minga.studies.printista import study as command

    _check_outputs(out, force=force)
    found = command.measure(command.sizes(quick=quick), _say)
    _tell(found, out, as_json, command.tables)
    _judge(command.failed(found))


@app.command("tinetti")
def tinetti(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer and smaller experiments: minutes instead of half an hour.")
    ] = False,
    only: Only = None,
    out: Out = None,
    pictures: Pictures = None,
    html: Page = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Tinetti's study of local networks, in clusters in a box: messages, broadcasts, overlap, matrix product, balance.

    The exit status is 1 if an expected result does not hold.
    """
    from minga.studies import report
    from minga.studies.tinetti import study as command

    names = _chosen(only, command.NAMES)
    _check_outputs(out, html, force=force)
    with _drawing(pictures, html) as drawn:
        found = command.measure(names, _say, drawn, quick=quick)
        _write_page(html, command.page, found, pictures)
    _tell(found, out, as_json, report.tables)
    _judge(report.failed(found))


# Shared by the commands -----------------------------------------------------------------------------------------------
def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _chosen(only: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Return the named experiments, or all of them; raise CaseError for an unknown name."""
    from minga.errors import CaseError, suggest

    for name in only or ():
        if name not in known:
            raise CaseError(
                f"there is no experiment {name!r}",
                suggestion=suggest(name, known),
                remedy=f"choose among {', '.join(known)}",
            )
    return tuple(only or known)


def _check_outputs(
    out: Path | None, html: Path | None = None, picture: Path | None = None, *, force: bool = False
) -> None:
    """Raise CaseError if an output file cannot be written, before anything is measured."""
    from minga.cli.outputs import check_output

    check_output(out, "-o", force=force)
    check_output(html, "--html", force=force)
    check_output(picture, "--picture", (".png", ".svg"), force=force)


@contextlib.contextmanager
def _drawing(pictures: Path | None, html: Path | None) -> Iterator[Path | None]:
    """Yield the directory for figures: the named one, a temporary one if only a page needs them, or None."""
    if pictures is not None:
        _make(pictures)
    with tempfile.TemporaryDirectory() as directory:
        yield pictures or (Path(directory) if html is not None else None)


def _make(directory: Path) -> None:
    """Create a directory for pictures, before anything that is drawn there is measured."""
    from minga.output.directory import disk_errors

    with disk_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)


def _write_page(
    html: Path | None, page: Callable[[Mapping[str, Any]], str], found: Mapping[str, Any], pictures: Path | None
) -> None:
    """Write the page with its figures, and drop the names of figures that were drawn for the page alone."""
    from minga.output.directory import write_whole

    if html is not None:
        write_whole(html, page(found))
    if pictures is None:
        for result in found["experiments"].values():
            result.pop("picture", None)


def _tell(
    found: Mapping[str, Any], out: Path | None, as_json: bool, tables: Callable[[Mapping[str, Any]], str]
) -> None:
    """Store and print the results."""
    from minga.output.directory import write_whole

    text = json.dumps(found, allow_nan=False)
    if out is not None:
        write_whole(out, text + "\n")
    print(text if as_json else tables(found))


def _judge(failed: Sequence[str]) -> None:
    """Exit with status 1 if statements do not hold, after printing them."""
    for statement in failed:
        print(f"does not hold: {statement}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)

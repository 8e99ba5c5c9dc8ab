"""The command ``minga``. Each command lives in a module of its own, imported when called: help is quick."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from minga.errors import MingaError

__all__ = ["app", "main"]

app = typer.Typer(
    name="minga",
    help="Structured-grid simulations on the computers you have.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Structured-grid simulations on the computers you have."""
    if version:
        from importlib.metadata import version as version_of

        sys.stdout.write(f"minga {version_of('minga')}\n")
        raise typer.Exit


@app.command()
def run(
    case: Annotated[
        str,
        typer.Argument(metavar="CASE", help="A TOML file, a Python file that defines a model, or an example's name."),
    ],
    ranks: Annotated[
        int | None,
        typer.Option(
            "-n", "--ranks", help="MPI ranks; by default one for each physical core, but at most one per 4096 cells."
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", help="Threads of each rank; 1 by default.")] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change an entry of the case: run.steps=10."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The run's directory; by default runs/NAME.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run that --out holds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Run a case, such as `minga run life -n 2`. Everything it leaves goes to one directory."""
    from minga.cli import run as command
    from minga.record.directory import RunDirectory

    request = command.Request(case, ranks, threads, tuple(overrides or ()), out, force)
    with contextlib.redirect_stdout(sys.stderr):  # what a Python case prints must not meet the result
        result, status = command.run(request)
    if result is not None:
        if as_json:
            _print(json.dumps(result, allow_nan=False))
        else:
            _print(command.summary(result, RunDirectory(Path(result["run"]))))
        if status == command.INTERRUPTED:
            sys.stderr.write(f"minga: stopped after step {result['steps']}; everything up to there is kept\n")
    raise typer.Exit(status)


@app.command()
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's directory.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    field: Annotated[
        str | None, typer.Option("--field", help="The field; may be left out if there is only one.")
    ] = None,
    form: Annotated[str | None, typer.Option("--format", help="npy or png; by default the ending of --out.")] = None,
    frame: Annotated[int, typer.Option("--frame", help="Number of the frame from 0; -1 is the last.")] = -1,
) -> None:
    """Write one frame of a field as a NumPy file or a picture."""
    from minga.cli.export import export as command

    _print(command(run, field, form, out, frame))


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Show what minga finds on this machine: compiler, cores, MPI, GPU, and what is wrong with it."""
    from minga.cli import doctor as command

    findings = command.examine()
    sick = any(finding.state == "problem" for finding in findings)
    if as_json:
        _print(json.dumps(command.as_json(findings)))
    else:
        marks = {"ok": "ok", "note": "note", "problem": "PROBLEM"}
        for finding in findings:
            _print(f"{marks[finding.state]:8}{finding.name:14}{finding.text}")
    raise typer.Exit(1 if sick else 0)


def main() -> None:
    """Run the command line; errors a person can act on are one message on standard error and an exit status."""
    try:
        app()
    except MingaError as error:
        if _speaks():
            sys.stderr.write(f"minga: {error}\n")
        sys.exit(error.exit_status)


def _speaks() -> bool:
    """Whether this process is the one of its job that reports what all of them found wrong."""
    from minga.cli.launcher import surrounding_job

    job = surrounding_job()
    return job is None or job.rank == 0


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

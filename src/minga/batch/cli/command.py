"""Typer interface of the command ``minga submit``, which :mod:`minga.batch.cli.submit` implements."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from minga.cli import completion

__all__ = ["submit"]


def submit(
    case: Annotated[
        str,
        typer.Argument(
            metavar="CASE",
            help="A TOML file, a Python file that defines a model, or the name of an example.",
            autocompletion=completion.cases,
        ),
    ],
    time: Annotated[
        str, typer.Option("--time", metavar="TIME", help='Time limit of each job: "2h", "90 min", or "02:00:00".')
    ],
    nodes: Annotated[int, typer.Option("--nodes", "-N", min=1, help="Number of nodes.")] = 1,
    partition: Annotated[
        str | None, typer.Option("--partition", "-p", help="Partition of the cluster; by default that of Slurm.")
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option("-n", "--ranks", min=1, help="Number of ranks; by default the jobs use all cores of their nodes."),
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Threads of each rank.")] = None,
    margin: Annotated[
        str | None,
        typer.Option(
            "--margin",
            metavar="TIME",
            help="Time before the limit at which the run writes a checkpoint and ends; by default 5 % of it, at least "
            "two minutes and at most ten.",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set an entry of the case, such as run.steps=10; may be repeated.",
            autocompletion=completion.keys,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Directory of the run; by default runs/NAME.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run in the directory --out.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run; CASE is its directory.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the script of the job, and submit nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    sbatch: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- SBATCH...]", help="More options of sbatch, for example -- --account=ab12."),
    ] = None,
) -> None:
    """Run a case in jobs of Slurm, one after another until it is complete: `minga submit life --nodes 4 --time 2h`."""
    from minga.batch.cli import submit as command

    request = command.SubmitRequest(
        case, time, nodes, partition, ranks, threads, margin, tuple(overrides or ()), out, force, resume, dry_run,
        tuple(sbatch or ()),
    )  # fmt: skip
    with contextlib.redirect_stdout(sys.stderr):  # output of a Python case must not mix with the result
        found = command.submit(request)
    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        print(found.text(), end="")

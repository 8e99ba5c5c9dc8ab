"""Typer interface of the commands ``minga lab ...``, which :mod:`minga.lab.cli.lab` implements."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from minga.lab.cli import completion
from minga.launch.exit_codes import INTERRUPTED

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Emulate a heterogeneous cluster on this machine: `minga lab run three-ages -- minga run life`.",
)

Target = typer.Argument(
    metavar="LAB",
    help="A TOML file that describes a lab, or the name of a lab that ships with minga.",
    autocompletion=completion.labs,
)
Quota = typer.Option(
    "--quota/--no-quota", help="Apply CPU shares and memory limits; --no-quota emulates only the network."
)


@app.command()
def up(lab: Annotated[str, Target], quota: Annotated[bool, Quota] = True) -> None:
    """Build a lab: network namespaces as nodes, shaped links, and a CPU share for each node."""
    from minga.lab.cli import lab as command

    _print(command.start(lab, quota))


@app.command()
def down(
    labs: Annotated[list[str] | None, Target] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all of your labs.")] = False,
) -> None:
    """End the processes in a lab and remove the lab, even if parts of it are already gone."""
    from minga.lab.cli import lab as command

    _print(command.down(labs or [], everything))


@app.command()
def status(
    lab: Annotated[str | None, Target] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """Show the nodes of labs: CPU shares, processes, and traffic over their links."""
    from minga.lab.cli import lab as command

    found = command.status(lab)
    _print(json.dumps(found) if as_json else "\n".join(map(command.describe, found)) or "no lab is up")


@app.command(name="list")
def listing() -> None:
    """List the labs that are up and those that ship with minga."""
    from minga.lab.cli import lab as command

    _print(command.listing())


@app.command()
def run(
    lab: Annotated[str, Target],
    words: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENT]...", help="The program that every rank runs.")
    ],
    ranks: Annotated[
        int | None, typer.Option("-n", "--ranks", min=1, help="Number of MPI ranks; by default one per node.")
    ] = None,
    per_node: Annotated[int | None, typer.Option("--per-node", min=1, help="Number of ranks on each node.")] = None,
    mpi: Annotated[str, typer.Option("--mpi", help="MPI library: mpich, openmpi or impi.")] = "mpich",
    mpi_home: Annotated[
        Path | None,
        typer.Option("--mpi-home", help="Installation directory of that MPI library, with bin and lib in it."),
    ] = None,
    node: Annotated[str | None, typer.Option("--node", help="Run the program once, on this node, without MPI.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the lab up afterwards.")] = False,
    quota: Annotated[bool, Quota] = True,
) -> None:
    """Run a program as MPI ranks on the nodes of a lab, which is built for it and then removed unless it was up."""
    from minga.lab.cli import lab as command

    request = command.RunRequest(lab, tuple(words), ranks, per_node, mpi, mpi_home, node, keep, quota)
    try:
        raise typer.Exit(command.run(request))
    except KeyboardInterrupt:
        sys.stderr.write("minga: interrupted; nothing is left running\n")
        raise typer.Exit(INTERRUPTED) from None


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

"""The commands ``minga lab ...`` as typer shows them; what they do is in :mod:`minga.cli.lab`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from minga.cli import completion
from minga.launch.exit_codes import INTERRUPTED

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="A heterogeneous cluster in this one machine: `minga lab run three-ages -- minga run life`.",
)

Target = typer.Argument(
    metavar="LAB", help="A TOML file that describes the lab, or a shipped lab's name.", autocompletion=completion.labs
)
Quota = typer.Option("--quota/--no-quota", help="Shares of the CPU and limits of memory; without, only the network.")


@app.command()
def up(lab: Annotated[str, Target], quota: Annotated[bool, Quota] = True) -> None:
    """Build a lab: network namespaces as nodes, shaped links, and a share of the CPU for each."""
    from minga.cli import lab as command

    _print(command.start(lab, quota))


@app.command()
def down(
    labs: Annotated[list[str] | None, Target] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all labs of yours.")] = False,
) -> None:
    """End what runs in a lab and remove everything that was made, also where half of it is gone."""
    from minga.cli import lab as command

    _print(command.down(labs or [], everything))


@app.command()
def status(
    lab: Annotated[str | None, Target] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """Show the nodes of labs: shares, processes, and what crossed their links."""
    from minga.cli import lab as command

    found = command.status(lab)
    _print(json.dumps(found) if as_json else "\n".join(map(command.describe, found)) or "no lab is up")


@app.command(name="list")
def listing() -> None:
    """List the labs that are up, and those that ship with minga."""
    from minga.cli import lab as command

    _print(command.listing())


@app.command()
def run(
    lab: Annotated[str, Target],
    words: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENT]...", help="What every rank runs.")],
    ranks: Annotated[int | None, typer.Option("-n", "--ranks", min=1, help="MPI ranks; one a node by default.")] = None,
    per_node: Annotated[int | None, typer.Option("--per-node", min=1, help="Ranks on each node.")] = None,
    mpi: Annotated[str, typer.Option("--mpi", help="mpich, openmpi or impi.")] = "mpich",
    mpi_home: Annotated[
        Path | None, typer.Option("--mpi-home", help="Where that MPI is installed: the directory with bin and lib.")
    ] = None,
    node: Annotated[str | None, typer.Option("--node", help="Run it once, on this node, without MPI.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the lab up afterwards.")] = False,
    quota: Annotated[bool, Quota] = True,
) -> None:
    """Run a program as MPI ranks on the nodes of a lab. It is built for this, and removed after, unless it is up."""
    from minga.cli import lab as command

    request = command.RunRequest(lab, tuple(words), ranks, per_node, mpi, mpi_home, node, keep, quota)
    try:
        raise typer.Exit(command.run(request))
    except KeyboardInterrupt:
        sys.stderr.write("minga: interrupted; nothing is left running\n")
        raise typer.Exit(INTERRUPTED) from None


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

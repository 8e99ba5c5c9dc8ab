"""The command ``minga measure`` as typer shows it; what it does is in :mod:`minga.cli.measure`."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from minga.cli import completion

__all__ = ["measure"]


def measure(
    case: Annotated[
        list[str] | None,
        typer.Option(
            "--case",
            metavar="CASE",
            help="Time this case's kernels; may be repeated. By default laplace, life and heat.",
            autocompletion=completion.cases,
        ),
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option("--hosts", metavar="FILE", help="Measure these hosts over ssh, one a line; no MPI is needed."),
    ] = None,
    network: Annotated[
        bool | None, typer.Option("--network/--no-network", help="Only the network, or all but it; by default both.")
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="About how long to measure.")] = 60.0,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The file to write: machine.json by default.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw times and bandwidths: an .svg or .png file.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a report of the network: one page of HTML.")
    ] = None,
    shell: Annotated[
        str, typer.Option("--shell", help="Runs a command on a host, called as SHELL HOST COMMAND.")
    ] = "ssh",
    name: Annotated[str, typer.Option("--name", help="What to call the machine.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the machine; -o writes it too.")] = False,
) -> None:
    """Measure this machine, a list of hosts, or the job this is started in, for `minga plan` and `minga run --machine`.

    Topology, memory, speeds of kernels against size, and what messages cost: all in one JSON file.
    """
    from minga.cli import measure as command

    target = out if out is not None or as_json else Path("machine.json")
    request = command.MeasureRequest(tuple(case or ()), hosts, network, seconds, target, plot, shell, name, html, force)
    with contextlib.redirect_stdout(sys.stderr):
        machine = command.measure(request)
    if machine is not None:
        print(json.dumps(machine.data, allow_nan=False) if as_json else command.summary(machine, target))

"""Typer interface of the command ``minga measure``, which :mod:`minga.network.measuring.cli.measure` implements."""

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
            help="Time the kernels of this case; may be repeated. By default laplace, life and heat.",
            autocompletion=completion.cases,
        ),
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(
            "--hosts", metavar="FILE", help="Measure the hosts in this file, one per line, over ssh; MPI is not needed."
        ),
    ] = None,
    network: Annotated[
        bool | None,
        typer.Option("--network/--no-network", help="Measure only the network, or everything else; by default both."),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Approximate duration of the measurement.")] = 60.0,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The file to write; by default machine.json.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw times and bandwidths into an .svg or .png file."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a report on the network as an HTML page.")
    ] = None,
    shell: Annotated[
        str, typer.Option("--shell", help="Program that runs a command on a host, called as SHELL HOST COMMAND.")
    ] = "ssh",
    name: Annotated[str, typer.Option("--name", help="Name of the machine.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the machine as JSON; a file is then written only with -o.")
    ] = False,
) -> None:
    """Measure this machine, a list of hosts, or the surrounding job, for `minga plan` and `minga run --machine`.

    The topology, memory, speeds of kernels by size, and costs of messages are written to one JSON file.
    """
    from minga.network.measuring.cli import measure as command

    target = out if out is not None or as_json else Path("machine.json")
    request = command.MeasureRequest(tuple(case or ()), hosts, network, seconds, target, plot, shell, name, html, force)
    with contextlib.redirect_stdout(sys.stderr):
        machine = command.measure(request)
    if machine is not None:
        print(json.dumps(machine.data, allow_nan=False) if as_json else command.summary(machine, target))

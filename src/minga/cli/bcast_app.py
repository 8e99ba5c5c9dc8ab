"""The command ``minga bcast`` as typer shows it; what it does is in :mod:`minga.cli.bcast`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["bcast"]


def bcast(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to send.")],
    to: Annotated[
        str, typer.Option("--to", metavar="PATH", help="Where it goes there: a file or directory; {host} is the name.")
    ],
    hosts: Annotated[
        Path | None, typer.Option("--hosts", metavar="FILE", help="The hosts that get it, one a line.")
    ] = None,
    lab: Annotated[
        str | None, typer.Option("--lab", metavar="LAB", help="Between the nodes of this lab, which must be up.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="HOST", help="The listed host that has FILE; by default it is here."),
    ] = None,
    route: Annotated[
        str, typer.Option("--route", help="multicast, broadcast or chain; auto takes the first that works.")
    ] = "auto",
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="100Mb/s", help="What the network can take; found out by default.")
    ] = None,
    network: Annotated[
        str | None, typer.Option("--network", metavar="10.0.0.0/24", help="The network to use, if hosts have several.")
    ] = None,
    on_loss: Annotated[
        str, typer.Option("--on-loss", help="raise: nobody gets it if a host is lost; exclude: the others do.")
    ] = "raise",
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    shell: Annotated[
        str, typer.Option("--shell", help="Runs a command on a host, called as SHELL HOST COMMAND.")
    ] = "ssh",
    dead_timeout: Annotated[
        float, typer.Option("--dead-timeout", help="Seconds of silence after which a host is lost.")
    ] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Send a file to many hosts at once: it crosses a shared network once, however many they are."""
    from minga.cli import bcast as command

    request = command.BroadcastRequest(
        file, to, hosts, lab, source, route, rate, network, on_loss, force, shell, dead_timeout
    )  # fmt: skip
    result = command.bcast(request)
    print(json.dumps(result) if as_json else command.text(result))

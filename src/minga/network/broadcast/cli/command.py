"""Typer interface of the command ``minga bcast``, which :mod:`minga.network.broadcast.cli.bcast` implements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from minga.network.broadcast.options import DEAD_TIMEOUT

__all__ = ["bcast"]


def bcast(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file or directory to send; - for the standard input.")
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="PATH",
            help="Destination on each host: a file or a directory; {host} stands for the host's name.",
        ),
    ],
    hosts: Annotated[
        Path | None,
        typer.Option("--hosts", metavar="FILE", help="A file that lists the receiving hosts, one per line."),
    ] = None,
    lab: Annotated[
        str | None,
        typer.Option("--lab", metavar="LAB", help="Send between the nodes of this lab, which must be up."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="HOST", help="The listed host that has FILE; by default this machine."),
    ] = None,
    route: Annotated[
        str, typer.Option("--route", help="multicast, broadcast or chain; auto takes the first that works.")
    ] = "auto",
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="100Mb/s", help="Rate that the network can sustain; measured by default."),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option("--network", metavar="10.0.0.0/24", help="The network to use if the hosts have several."),
    ] = None,
    on_loss: Annotated[
        str,
        typer.Option(
            "--on-loss", help="If a host is lost: raise (no host gets the file) or exclude (the others still get it)."
        ),
    ] = "raise",
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    shell: Annotated[
        str, typer.Option("--shell", help="Program that runs a command on a host, called as SHELL HOST COMMAND.")
    ] = "ssh",
    dead_timeout: Annotated[
        float, typer.Option("--dead-timeout", help="Seconds of silence after which a host counts as lost.")
    ] = DEAD_TIMEOUT,
    compress: Annotated[
        str,
        typer.Option("--compress", help="zstd, zlib or off; auto compresses where the network is the bottleneck."),
    ] = "auto",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--no-resume", help="Continue a broken transfer, and leave parts that a later one can continue."
        ),
    ] = True,
    late: Annotated[
        float,
        typer.Option("--late", metavar="SECONDS", help="Time for which hosts that do not answer are tried again."),
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Send a file, a directory or a pipe to many hosts at once. It crosses a shared network only once."""
    from minga.errors import MingaError
    from minga.network.broadcast.cli import bcast as command
    from minga.network.broadcast.cli.outcome import as_json as error_as_json

    request = command.BroadcastRequest(
        file, to, hosts, lab, source, route, rate, network, on_loss, force, shell, dead_timeout, compress, resume, late
    )  # fmt: skip
    try:
        result = command.bcast(request)
    except MingaError as error:
        if as_json:
            print(json.dumps(error_as_json(error)))
        raise
    print(json.dumps(result) if as_json else command.text(result))

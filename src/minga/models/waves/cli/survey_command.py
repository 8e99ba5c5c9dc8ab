"""Typer interface of the command ``minga survey``, which :mod:`minga.models.waves.cli.survey` implements."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["survey"]


def survey(
    case: Annotated[Path, typer.Argument(metavar="CASE.toml", help="A case of waves with the table [survey].")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE.sgy", help="The SEG-Y file; by default named like the case."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replace an entry of the case.")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("-n", "--ranks", help="Number of MPI ranks; by default 1, or what the hosts take.")
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(
            "--hosts", metavar="FILE", help="A file that lists the hosts to use, one a line; they are reached by ssh."
        ),
    ] = None,
    shell: Annotated[
        str, typer.Option("--shell", help="Program that is called as SHELL HOST COMMAND, in place of ssh.")
    ] = "ssh",
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of each rank.")] = 1,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the case, and show the shots, the sampling and the file's size.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    also: Annotated[
        list[Path] | None,
        typer.Option("--also", metavar="FILE", help="Write the traces also as NAME.rsf or NAME.zarr; repeatable."),
    ] = None,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="Draw the geometry, a gather and its spectrum.")
    ] = True,
    gain: Annotated[str, typer.Option("--gain", help="Gain of the gather's picture: agc, power or none.")] = "agc",
) -> None:
    """Compute all shots of a survey into one SEG-Y file.

    After an interruption or a full disk, the same command computes the shots that are missing.
    """
    from minga.models.waves.cli import survey as command

    request = command.SurveyRequest(
        str(case), out, tuple(settings or ()), ranks, threads, check, force, tuple(also or ()), pictures, gain,
        hosts, shell,
    )  # fmt: skip
    said, status = command.survey(request)
    if said:
        sys.stdout.write(said + "\n")
        sys.stdout.flush()
    raise typer.Exit(status)

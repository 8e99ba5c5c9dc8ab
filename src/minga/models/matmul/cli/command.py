"""Typer interface of the command ``minga matmul``, which :mod:`minga.models.matmul.cli.matmul` implements."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["matmul"]


def _factor(text: str) -> complex:
    """Return a real or complex number."""
    return complex(text)


def matmul(
    a: Annotated[Path, typer.Argument(metavar="A.npy", help="A matrix of f4, f8, c8 or c16, written by numpy.save.")],
    b: Annotated[Path, typer.Argument(metavar="B.npy", help="Another matrix of the same type.")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="C.npy", help="File for the result; it appears when it is complete."),
    ] = None,
    alpha: Annotated[
        complex, typer.Option("--alpha", parser=_factor, metavar="NUMBER", help="Factor of the product, such as 1+2j.")
    ] = 1.0,
    beta: Annotated[
        complex,
        typer.Option("--beta", parser=_factor, metavar="NUMBER", help="Factor of the matrix --c, which is added."),
    ] = 0.0,
    c: Annotated[Path | None, typer.Option("--c", metavar="C0.npy", help="The matrix that is added.")] = None,
    transpose_a: Annotated[bool, typer.Option("--transpose-a", help="Multiply with the transpose of A.")] = False,
    transpose_b: Annotated[bool, typer.Option("--transpose-b", help="Multiply with the transpose of B.")] = False,
    ranks: Annotated[
        int | None, typer.Option("-n", "--ranks", help="Number of MPI ranks on this machine; by default 1.")
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(
            "--hosts", metavar="FILE", help="Start ranks on the hosts in this file, one per line; slots=2 starts two."
        ),
    ] = None,
    shell: Annotated[
        str, typer.Option("--shell", help="Program that runs a command on a host, called as SHELL HOST COMMAND.")
    ] = "ssh",
    machine: Annotated[
        Path | None,
        typer.Option("--machine", metavar="FILE", help="A machine file to plan with; by default the ranks are timed."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", help="BLAS threads of each rank; by default chosen by the BLAS.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="2GB", help="Largest part of the matrices that a rank holds in memory."),
    ] = None,
    layout: Annotated[
        str,
        typer.Option("--layout", help="auto, rows, columns (rectangles), alone, or equal (equal numbers of rows)."),
    ] = "auto",
    width: Annotated[int | None, typer.Option("--width", help="Number of columns of a panel of B.")] = None,
    route: Annotated[
        str | None,
        typer.Option(
            "--route", help="Route of the panels: pairwise, collective, chain or group; by default the fastest."
        ),
    ] = None,
    from_one: Annotated[
        bool,
        typer.Option("--from-one", help="Only rank 0 reads and writes files; it sends the others their data."),
    ] = False,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Only show how the work would be divided, how long it would take, and if ranks pay off."
        ),
    ] = False,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Check the result with random vectors.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file that -o names, unless it is an operand.")
    ] = False,
) -> None:
    """Multiply two matrices on machines of unequal speed: C = alpha A B + beta C0.

    If a rank is lost, the others continue without it. A partial result is kept, and the same command resumes from it.
    """
    from minga.models.matmul.cli import matmul as command

    request = command.MatmulRequest(
        a, b, out, c, alpha, beta, transpose_a, transpose_b, ranks, hosts, shell, machine, threads, memory, layout,
        width, route, from_one, plan, check, as_json, force,
    )  # fmt: skip
    said = command.matmul(request)
    if said is not None:
        sys.stdout.write(said + "\n")
        sys.stdout.flush()

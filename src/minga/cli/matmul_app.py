"""The command ``minga matmul`` as typer shows it; what it does is in :mod:`minga.cli.matmul`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["matmul"]


def matmul(
    a: Annotated[Path, typer.Argument(metavar="A.npy", help="A matrix of f4 or f8, written by numpy.save.")],
    b: Annotated[Path, typer.Argument(metavar="B.npy", help="Another one of the same type.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="C.npy", help="The result; it appears when it is complete.")
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="Factor of the product.")] = 1.0,
    beta: Annotated[float, typer.Option("--beta", help="Factor of the matrix --c, which is added.")] = 0.0,
    c: Annotated[Path | None, typer.Option("--c", metavar="C0.npy", help="The matrix that is added.")] = None,
    transpose_a: Annotated[bool, typer.Option("--transpose-a", help="Multiply with the transpose of A.")] = False,
    transpose_b: Annotated[bool, typer.Option("--transpose-b", help="Multiply with the transpose of B.")] = False,
    ranks: Annotated[int | None, typer.Option("-n", "--ranks", help="MPI ranks on this machine; 1 by default.")] = None,
    hosts: Annotated[
        Path | None, typer.Option("--hosts", metavar="FILE", help="Start ranks on these hosts, one a line, slots=2.")
    ] = None,
    shell: Annotated[
        str, typer.Option("--shell", help="Reaches a host, called as ssh is: SHELL HOST COMMAND.")
    ] = "ssh",
    machine: Annotated[
        Path | None,
        typer.Option("--machine", metavar="FILE", help="A machine file to plan by; by default the ranks are timed."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", help="Threads of the BLAS of each rank; its own choice by default.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="2GB", help="Most that a rank holds of the matrices.")
    ] = None,
    layout: Annotated[
        str, typer.Option("--layout", help="auto, rows, columns (rectangles), alone, or equal (rows for all alike).")
    ] = "auto",
    width: Annotated[int | None, typer.Option("--width", help="Columns of a panel of B.")] = None,
    route: Annotated[
        str | None,
        typer.Option("--route", help="How panels travel: pairwise, collective, chain or group; the best by default."),
    ] = None,
    from_one: Annotated[
        bool, typer.Option("--from-one", help="Only rank 0 reads and writes files, and sends others what they need.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say who would do what, how long that takes, if it pays.")
    ] = False,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Check the result with random vectors.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file that -o names; an operand never.")] = False,
) -> None:
    """Multiply two matrices on machines of unequal speed: C = alpha A B + beta C0.

    A rank that is lost is done without, and what is there of the result is kept: the same command goes on with it.
    """
    from minga.cli import matmul as command

    request = command.MatmulRequest(
        a, b, out, c, alpha, beta, transpose_a, transpose_b, ranks, hosts, shell, machine, threads, memory, layout,
        width, route, from_one, plan, check, as_json, force,
    )  # fmt: skip
    said = command.matmul(request)
    if said is not None:
        sys.stdout.write(said + "\n")
        sys.stdout.flush()

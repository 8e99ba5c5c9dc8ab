"""Agreement of all ranks before a product begins: on the operands, the destination of the result, and any error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from minga.engine.comm import Comm
from minga.errors import CaseError, MingaError
from minga.models.matmul.operands import Array, Range, mapped_part, shared
from minga.models.matmul.problem import Problem
from minga.models.matmul.result import ArrayResult, PartialFile, Result, coherent
from minga.paths import check_free, same_file

__all__ = ["agree_on_problem", "open_result", "separate_c0"]


def agree_on_problem(comm: Comm, read: Callable[[], Problem], given: bool) -> tuple[Problem, bool]:
    """Return the product as this rank sees it, and whether all ranks see the operands. Collective.

    Parameters
    ----------
    comm
        The ranks.
    read
        Reads the product, where its operands can be seen.
    given
        Whether this rank may read the operands.

    Raises
    ------
    MingaError
        If the product is invalid; the same error on all ranks.
    """
    problem: Problem | None = None
    error: MingaError | None = None
    if given or comm.rank == 0:
        try:
            problem = read()
        except MingaError as found:
            error = found
    digest = None if problem is None or not given else problem.fingerprints()
    answers = comm.gather((digest, error))
    first: tuple[MingaError | None, Problem | None, bool] | None = None
    if answers is not None:
        alike = all(found == answers[0][0] and found is not None for found, _ in answers)
        first = (answers[0][1], None if problem is None else problem.hidden(), alike)
    fault, hidden, seen = comm.bcast(first)
    if fault is not None:
        raise fault
    return (problem if problem is not None and (seen or comm.rank == 0) else hidden), seen


def open_result(
    comm: Comm, problem: Problem, out: Array | Path | None, seen: bool, *, overwrite: bool = False
) -> tuple[Result | None, bool]:
    """Return where this rank stores blocks of the result, and whether all ranks can store theirs. Collective.

    Where rank 0 stores all blocks, the destination is None on the other ranks.

    Raises
    ------
    MingaError
        If the result cannot be stored there; the same error on all ranks.
    """
    result: Result | None = None
    error: MingaError | None = None
    if comm.rank == 0:
        try:
            result = _opened(problem, out, overwrite)
        except MingaError as found:
            error = found
    fault, token = comm.bcast((error, result.token if isinstance(result, PartialFile) else None))
    if fault is not None:
        raise fault
    if comm.size == 1 or not seen:
        return result, comm.size == 1
    if token is None:
        return result, False
    joined = result if comm.rank == 0 else _joined(out, token, comm.node == 0)
    sees = np.array([joined is not None], np.int64)
    comm.allreduce(sees, "min")
    return (joined if sees[0] else result), bool(sees[0])


def _opened(problem: Problem, out: Array | Path | None, overwrite: bool) -> Result:
    shape: Range = (problem.rows, problem.columns)
    if isinstance(out, Path):
        if out.suffix != ".npy":
            raise CaseError(f"{out} does not end in .npy, the format of the result", key="-o", remedy="name it C.npy")
        for operand in (problem.a, problem.b):
            if operand.stored is not None and (mapped := mapped_part(operand.stored)) and same_file(mapped.file, out):
                raise CaseError(f"out is the file of {operand.name}", key="out", remedy="name another file")
        check_free(out, overwrite, key="out", how="overwrite=True (--force on the command line)")
        return PartialFile.begin(out, problem.identity(), shape, problem.dtype)
    if out is None:
        return ArrayResult(np.empty(shape, problem.dtype))
    if out.shape != shape or out.dtype != problem.dtype or not out.flags.writeable:
        raise CaseError(
            f"out is {'x'.join(map(str, out.shape))} {_said(out.dtype)}, but the result is {shape[0]}x{shape[1]} "
            f"{problem.dtype.str[1:]}",
            key="out",
            remedy="give a writable array of that shape and type, or leave it out",
        )
    for operand in (problem.a, problem.b):
        if operand.stored is not None and shared(out, operand.stored):
            raise CaseError(f"out lies in the memory of {operand.name}", key="out", remedy="give another array")
    return ArrayResult(out)


def _said(dtype: np.dtype[Any]) -> str:
    return dtype.str[1:] if dtype.isnative else f"{dtype.str[1:]} in the other byte order"


def separate_c0(problem: Problem, out: Array) -> Problem:
    """Copy C0 if it shares memory with the result, because the check needs it afterwards; return the product."""
    c = problem.c
    if c is None or c.stored is None or not shared(out, c.stored):
        return problem
    return replace(problem, c=replace(c, stored=c.stored.copy()))


def _joined(out: Array | Path | None, token: str, near: bool) -> PartialFile | None:
    """Return the file that rank 0 has begun, if this rank sees it; ``near`` if it is on the machine of rank 0."""
    if not isinstance(out, Path):
        return None
    try:
        found = PartialFile.join(out)
        return found if found.token == token and (near or coherent(found.folder)) else None
    except (OSError, ValueError, KeyError):
        return None

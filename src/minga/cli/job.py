"""Checks for ranks that the user has started on several hosts: they must read the same case, and have enough cores."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from typing import Any

from minga.cli.case import Case
from minga.engine.comm import Comm
from minga.engine.pin import available_cores
from minga.errors import CaseError, MingaError

__all__ = ["agreed_case", "crowded", "shared_cores"]


def agreed_case(comm: Comm, read: Callable[[], Case]) -> Case:
    """Read the case on every rank, and check that all have read the same; collective.

    Files may differ between hosts that do not share a file system.

    Raises
    ------
    MingaError
        On every rank, if one of them could not read the case, or read another case than rank 0.
    """
    case: Case | None = None
    error: MingaError | None = None
    try:
        case = read()
    except MingaError as found:
        error = found
    answers = comm.gather((platform.node(), error, None if case is None else _digest(case)))
    agreed: MingaError | None = comm.bcast(None if answers is None else _fault(answers))
    if agreed is not None:
        raise agreed
    assert case is not None  # otherwise there was an error
    return case


def crowded(comm: Comm, threads: int) -> tuple[str, ...]:
    """Return notes on nodes whose ranks must share cores; collective, equal on all ranks."""
    found = comm.gather((comm.node, platform.node(), available_cores()))
    return comm.bcast(None if found is None else _crowds(found, threads))  # type: ignore[no-any-return]


def shared_cores(ranks: int, threads: int, cores: int, of: str = "") -> str:
    """Return a note that there are more workers than cores."""
    return (
        f"{ranks * threads} workers (ranks x threads) share {cores} physical core{'s' if cores != 1 else ''}{of}; "
        "the run will be slower than with one each"
    )


def _crowds(ranks: list[tuple[int, str, tuple[tuple[int, ...], ...]]], threads: int) -> tuple[str, ...]:
    notes = []
    for node in dict.fromkeys(entry[0] for entry in ranks):
        mine = [entry for entry in ranks if entry[0] == node]
        cores = len({core for _, _, cores in mine for core in cores})  # a launcher may have bound ranks to cores
        if len(mine) * threads > cores:
            notes.append(f"minga: {shared_cores(len(mine), threads, cores, f' of {mine[0][1]}')}")
    return tuple(notes)


def _fault(answers: list[tuple[str, MingaError | None, str | None]]) -> MingaError | None:
    """Return the error of the first rank that failed to read the case or read another one; None if all agree."""
    first, _, expected = answers[0]
    for host, error, digest in answers:
        if error is not None:
            if host == first:
                return error
            return CaseError(f"on {host}: {error}")
        if digest != expected:
            return CaseError(
                f"{host} has another case, or other files that it names, than {first}",
                remedy="copy the case with all its files to every host, or run it from a directory that all share",
            )
    return None


def _digest(case: Case) -> str:
    """Return a digest of the content of a case: its table, and the content of the files that it names."""
    content: list[Any] = [json.dumps(case.table, sort_keys=True, default=str)]
    content += sorted(hashlib.sha256(file.read_bytes()).hexdigest() for file in case.files)
    content.append(case.source.path.read_bytes().hex() if case.source.is_python else "")
    return hashlib.sha256("\n".join(content).encode()).hexdigest()

"""Compilation of many kernels side by side, in processes: LLVM compiles one kernel at a time in each process."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from minga.compile.cache import Cache, default_cache
from minga.compile.jit import object_code
from minga.compile.llvm import about, key_of, print_llvm
from minga.compile.target import Target, host_target
from minga.errors import MingaError
from minga.lang.graph import KernelGraph

__all__ = ["Job", "compile_together", "perform"]

LEAST: Final = 12
"""Number of kernels from which further processes pay: starting one takes as long as compiling about five."""
MOST: Final = 8
"""Largest number of processes: the passes in Python before them are not shared."""


@dataclass(frozen=True, slots=True)
class Job:
    """The LLVM IR of a kernel, and where its object belongs in the cache."""

    key: str
    about: dict[str, str]
    ir: str


def compile_together(kernels: Iterable[tuple[KernelGraph, bool]], workers: int) -> int:
    """Compile kernels into the cache, if many of them are missing there.

    A kernel that fails here is left to :func:`minga.compile.llvm.compile_kernel`, which says why.

    Parameters
    ----------
    kernels
        Graphs, each with whether its reductions are computed.
    workers
        Number of cores for processes, this one included; at most eight are used.

    Returns
    -------
    int
        Number of kernels that were missing and are compiled here; 0 if these are too few.
    """
    cache, target = default_cache(), host_target()
    workers = min(workers, MOST)
    if cache is None or workers < 2 or not sys.executable:
        return 0
    wanted = {key_of(graph, target, reductions): (graph, reductions) for graph, reductions in kernels}
    missing = {key: kernel for key, kernel in wanted.items() if key not in cache}
    if len(missing) < LEAST:
        return 0
    jobs = sorted(_printed(missing.items(), target), key=lambda job: len(job.ir), reverse=True)
    others: list[subprocess.Popen[bytes]] = []
    try:
        with contextlib.suppress(OSError):  # no room for the file, or no such program: the run compiles these kernels
            others += (_started(jobs[k::workers], cache, target) for k in range(1, workers))
        perform(jobs[::workers], cache, target)
        for process in others:
            process.wait()
    finally:
        for process in others:
            process.kill()
            process.wait()
    return len(jobs)


def perform(jobs: Iterable[Job], cache: Cache, target: Target) -> None:
    """Compile kernels one after the other and store their objects, until one cannot be stored."""
    for job in jobs:
        with contextlib.suppress(RuntimeError):  # of LLVM
            if not cache.store(job.key, object_code(job.ir, target), job.about):
                return


def _printed(kernels: Iterable[tuple[str, tuple[KernelGraph, bool]]], target: Target) -> Iterator[Job]:
    for key, (graph, reductions) in kernels:
        with contextlib.suppress(MingaError):
            yield Job(key, about(graph, target), print_llvm(graph, target=target, reductions=reductions))


def _started(jobs: Sequence[Job], cache: Cache, target: Target) -> subprocess.Popen[bytes]:
    """Start a process that performs jobs; no module of the working directory (`-P`) takes the place of one of ours."""
    with tempfile.TemporaryFile() as file:
        pickle.dump((jobs, cache, target), file)
        file.seek(0)
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "minga.compile.worker"],
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

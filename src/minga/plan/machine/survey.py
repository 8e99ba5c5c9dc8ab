"""Measurements of hosts for ``minga measure``: cores, memory, bandwidth, and speeds of kernels.

The results are entries of a machine file (:mod:`minga.plan.machine.machine_file`), with all samples.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from minga.compile.explain import kernel
from minga.engine.comm import Comm, SerialComm
from minga.engine.model import Model
from minga.engine.program import Program
from minga.engine.quotas import quota
from minga.plan.cost import work_of
from minga.plan.links import Link, Links
from minga.plan.machine.machine import FORMAT, LEVELS, VERSION
from minga.plan.machine.machine_file import tree_settings
from minga.plan.machine.resources import available_memory, cache_bytes, processor_name, total_memory
from minga.plan.probe.probe import sample_sizes
from minga.plan.probe.rehearsal import Sample
from minga.plan.topology import read_tree
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["Kernel", "cpus_of_node", "document", "links_entry", "memory_bandwidth", "survey"]

Builder = Callable[[float], Model]
"""Function that makes a model of about so many cells."""
Progress = Callable[[float, str], None]
"""Function that is called with the share that is done, 0 to 1, and with what comes next."""

_STREAM_BYTES: Final = 1 << 26
"""Minimum bytes of an array of the bandwidth kernels: more than caches hold."""
_MEMORY_PART: Final = 8
"""Divisor of the free memory that gives the maximum memory of a measurement."""
_SHOWN: Final = 4096
"""Maximum number of samples per size that are kept; longer series are thinned evenly."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel to time: its name, and a function that makes a model of a given size."""

    name: str
    build: Builder


def survey(
    kernels: Sequence[Kernel],
    comm: Comm | None = None,
    cores: int | None = None,
    seconds: float = 20.0,
    on_progress: Progress | None = None,
    *,
    bandwidth: bool = True,
    cpus: Sequence[int] | None = None,
) -> list[dict[str, Any]] | None:
    """Measure this host, or all hosts of ``comm``.

    With a single rank, kernels run on one core and then on ``cores`` cores at once, as threads of a team. With several
    ranks, each rank uses one core, and all of them work at the same time.

    Parameters
    ----------
    kernels
        The kernels to time.
    comm
        The ranks; by default, this process alone.
    cores
        Number of cores; by default, all that this process may use.
    seconds
        Approximate time for all measurements.
    on_progress
        Called before each measurement.
    bandwidth
        True if the memory bandwidth is measured, too.
    cpus
        The processors of this node; by default, all that its ranks may use.

    Returns
    -------
    list of dict, or None
        The entries of `nodes` of a machine file on rank 0, None on the others. In addition, an entry has `alone`, the
        speeds of one core while the others are idle.
    """
    comm = comm or SerialComm()
    tree = read_tree(cpus_of_node(comm) if cpus is None else cpus)
    teams = [1] if comm.size > 1 else sorted({1, cores or len(tree)})
    parts = len(teams) * (len(kernels) + 1)
    share, done = seconds / parts, 0
    bandwidths: dict[int, dict[str, float]] = {}
    speeds: dict[int, dict[str, dict[str, Any]]] = {}
    for team in teams:
        busy = "one core" if team == 1 and comm.size == 1 else "all cores"
        if bandwidth:
            _say(on_progress, done / parts, f"memory bandwidth, {busy}")
            bandwidths[team] = memory_bandwidth(team, share, comm)
        speeds[team] = {}
        for item in kernels:
            done += 1
            _say(on_progress, done / parts, f"{item.name}, {busy}")
            digest, entry = _kernel_entry(item, team, len(tree), share, comm)
            speeds[team][digest] = entry
        done += 1
    mine = (comm.node, platform.node(), processor_name(), total_memory(), tree, bandwidths, speeds)
    gathered = comm.gather(mine)
    if gathered is None:
        return None
    nodes: dict[int, list[Any]] = {}
    for number, *rest in gathered:
        nodes.setdefault(number, []).append(rest)
    return [_node_entry(nodes[number]) for number in sorted(nodes)]


def memory_bandwidth(threads: int = 1, seconds: float = 0.5, comm: Comm | None = None) -> dict[str, float]:
    """Measure the bytes per second of ``copy`` (b = a) and ``triad`` (c = a + s b) of arrays that no cache holds.

    Both are kernels of minga. Bytes are counted as in STREAM (J. McCalpin, *Memory Bandwidth and Machine Balance*,
    1995): those that a kernel reads and writes, without what caches fetch in addition. All ranks of ``comm`` measure at
    the same time.
    """
    comm = comm or SerialComm()
    cells = _stream_cells(threads)
    found = {}
    for name, arrays in (("copy", 2), ("triad", 3)):
        model = _stream(name, cells)
        sample = sample_sizes(model, [cells], threads, seconds / 2, comm)[0][1]
        found[name] = 8.0 * arrays * cells / _seconds(sample)
    return found


def document(
    name: str, nodes: Sequence[Mapping[str, Any]], links: Mapping[str, Any], medium: str, measured: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the content of a machine file."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "nodes": list(nodes),
        "links": dict(links),
        "medium": medium,
        "measured": dict(measured),
    }


def links_entry(links: Links, levels: Sequence[str], timed: Collection[int]) -> dict[str, Any]:
    """Return measured links as the entry `links` of a machine file.

    ``levels`` are the levels of the tree that they were measured on, and ``timed`` the numbers of levels in common for
    which a link was measured.
    """
    entry = {"inter-node": link_settings(links.levels[0])} if 0 in timed else {}
    for common, level in enumerate(levels, 1):
        if common in timed and level in ("node", *LEVELS) and level != "core":
            entry[f"intra-{level}"] = link_settings(links.levels[common])
    return entry


def link_settings(link: Link) -> dict[str, Any]:
    """Return a link as an entry of a machine file."""
    segments = [{"least": s.least, "alpha": s.alpha, "beta": s.beta} for s in link.segments]
    return {"segments": segments, "overlap": min(1.0, max(0.0, link.overlap))}


def _kernel_entry(item: Kernel, threads: int, cores: int, seconds: float, comm: Comm) -> tuple[str, dict[str, Any]]:
    """Return the digest and speeds of a kernel; cells and seconds are those of one core."""
    work = work_of(item.build(1.0))
    sizes = [size * work.points / max(1, work.cell_bytes) * threads for size in _sizes(cores)]
    model = item.build(sizes[-1])
    most = model.grid.size
    chosen = sorted({min(most, int(size)) for size in sizes})
    # A fixed pattern may leave only one size.
    found = dict(sample_sizes(model, chosen, threads, seconds, comm))
    entry = {
        "name": item.name,
        "cells": [cells / threads for cells in found],
        "seconds": [_seconds(sample) for sample in found.values()],
        "samples": [_kept(sample) for sample in found.values()],
    }
    return work_of(model).kernel, entry


def _sizes(cores: int) -> list[float]:
    """Return bytes of a core's part that fit into its L1 cache, its L2 cache, its share of the L3 cache, and memory."""
    first, second, third = cache_bytes(1) or 1 << 15, cache_bytes(2) or 1 << 20, cache_bytes(3) or 0
    memory = max(8 * second, 4 * third / cores)
    free = available_memory()
    if free is not None:
        memory = min(memory, free / _MEMORY_PART / cores)
    return sorted({first / 2, second / 2, *([third / 2 / cores] if third / 2 / cores > second else []), memory})


def _seconds(sample: Sample) -> float:
    """Return the seconds that characterise a host: other programs come and go, but a quota stays."""
    return sample.least if quota() is None else sample.typical


def _kept(sample: Sample) -> list[float]:
    step = -(-len(sample.seconds) // _SHOWN)
    return list(sample.seconds[::step])


def _node_entry(ranks: Sequence[Any]) -> dict[str, Any]:
    """Return the entry of one node from the measurements of its ranks."""
    host, cpu, memory, tree, _, _ = ranks[0]
    entry: dict[str, Any] = {"name": host, "hosts": [host], "topology": tree_settings(tree), "cpu": cpu}
    if memory is not None:
        entry["memory"] = memory
    all_bandwidths, all_speeds = [rank[4] for rank in ranks], [rank[5] for rank in ranks]
    most = max(all_speeds[0])
    if all_bandwidths[0]:
        entry["core_bandwidth"] = max(found[1]["triad"] for found in all_bandwidths)
        entry["bandwidth"] = max(entry["core_bandwidth"], sum(found[most]["triad"] for found in all_bandwidths))
    entry["speeds"] = {"cpu": {digest: _merged([found[most][digest] for found in all_speeds])
                               for digest in all_speeds[0][most]}}  # fmt: skip
    entry["alone"] = all_speeds[0][1] if most > 1 else {}
    return entry


def _merged(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a kernel's speed on a typical core of a node: the median of its ranks, which measured the same sizes."""
    if len(entries) == 1:
        return dict(entries[0])
    seconds = [statistics.median(times) for times in zip(*(entry["seconds"] for entry in entries), strict=True)]
    samples = [[time for entry in entries for time in entry["samples"][size]] for size in range(len(seconds))]
    return {**entries[0], "seconds": seconds, "samples": samples}


def _stream_cells(threads: int) -> int:
    size = max(_STREAM_BYTES, 4 * (cache_bytes(3) or 0))
    free = available_memory()
    if free is not None:
        size = min(size, free // (4 * _MEMORY_PART))
    return max(1 << 16, size // 8 // 64 * 64)


@kernel
def _copy(a: Any, b: Any) -> None:
    b[0] = a[0]


@kernel
def _triad(a: Any, b: Any, c: Any, *, s: Any) -> None:
    c[0] = a[0] + s * b[0]


def _stream(name: str, cells: int) -> Model:
    grid = Grid((cells,))
    a, b, c = (Field(letter, grid) for letter in "abc")
    step = Program(name)
    if name == "copy":
        step.apply(_copy, a, b)
        return Model(name=name, grid=grid, fields=(a, b), step=step, initial={"a": 1.0})
    step.apply(_triad, a, b, c, s=3.0)
    return Model(name=name, grid=grid, fields=(a, b, c), step=step, initial={"a": 1.0, "b": 2.0})


def cpus_of_node(comm: Comm) -> list[int]:
    """Return all processors that some rank of this node may use: a launcher may have bound each rank to one."""
    mine = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    found = comm.bcast(comm.gather((comm.node, mine)))
    return sorted({cpu for node, cpus in found if node == comm.node for cpu in cpus})


def _say(on_progress: Progress | None, part: float, what: str) -> None:
    if on_progress is not None:
        on_progress(part, what)

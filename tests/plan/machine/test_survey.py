"""What is found out about this host: plain data that make a machine file."""

from __future__ import annotations

import os
from typing import Any

import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.engine.model import Model
from minga.plan.links import Links
from minga.plan.machine import survey as surveying
from minga.plan.machine.machine_file import machine_of
from minga.plan.machine.survey import Kernel, cpus_of_node, document, links_entry, memory_bandwidth, survey


@mg.kernel
def smooth(u: Any, new: Any) -> None:
    new[0, 0] = 0.5 * (u[-1, 0] + u[1, 0])


def build(cells: float) -> Model:
    side = max(64, round(cells**0.5 / 64) * 64)
    grid = mg.Grid((side, side), periodic=True)
    u = mg.Field("u", grid, slots=2)
    step = mg.Program("smooth")
    step.apply(smooth, u, u.next)
    step.rotate(u)
    return mg.Model(name="smooth", grid=grid, fields=(u,), step=step)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes and arrays that take no time."""
    monkeypatch.setattr(surveying, "_sizes", lambda cores: [1 << 16, 1 << 18])
    monkeypatch.setattr(surveying, "_stream_cells", lambda threads: 1 << 16)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_this_host_becomes_a_machine() -> None:
    told: list[tuple[float, str]] = []
    nodes = survey([Kernel("smooth", build)], None, 2, 0.2, lambda part, what: told.append((part, what)))
    assert nodes is not None
    (node,) = nodes
    alone = node.pop("alone")
    machine = machine_of(document("here", nodes, {}, "switch", {"alone": alone}))
    group = machine.rank_group(1, kernel="smooth")
    assert group.speeds[0].cells.tolist() == pytest.approx([4096, 16384], rel=0.5)
    assert machine.nodes[0].bandwidth is not None
    assert machine.nodes[0].core_bandwidth is not None
    assert machine.nodes[0].bandwidth >= machine.nodes[0].core_bandwidth > 0
    (entry,) = node["speeds"]["cpu"].values()
    assert entry["name"] == "smooth"
    assert [len(samples) >= 2 for samples in entry["samples"]] == [True, True]
    assert list(alone) == list(node["speeds"]["cpu"])
    assert [part for part, _ in told] == sorted(part for part, _ in told)
    assert {what for _, what in told} >= {"smooth, one core", "smooth, all cores"}


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_ranks_of_a_node_are_its_cores() -> None:
    def run(comm: Comm) -> Any:
        return survey([Kernel("smooth", build)], comm, None, 0.1, bandwidth=False)

    nodes, nothing = mg.run_virtual(2, run)
    assert nothing is None
    (node,) = nodes
    assert "bandwidth" not in node
    (entry,) = node["speeds"]["cpu"].values()
    assert len(entry["seconds"]) == 2
    assert not node["alone"]


@pytest.mark.usefixtures("small")
def test_bandwidth_counts_what_a_kernel_reads_and_writes() -> None:
    found = memory_bandwidth(seconds=0.02)
    assert set(found) == {"copy", "triad"}
    assert all(1e8 < rate < 1e13 for rate in found.values())


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="binds threads to processors: run it on Linux")
def test_masks_of_all_ranks_of_a_node_count() -> None:
    """A launcher may have bound each rank to a single processor."""
    allowed = sorted(os.sched_getaffinity(0))

    def run(comm: Comm) -> list[int]:
        # Of this thread only, which is a virtual rank.
        os.sched_setaffinity(0, {allowed[comm.rank % len(allowed)]})
        return cpus_of_node(comm)

    assert mg.run_virtual(2, run) == [allowed[:2]] * 2


def test_only_levels_that_were_timed_are_written() -> None:
    links = Links.uniform(3, [(1e-3, 1e-8), (1e-6, 1e-10), (1e-7, 1e-10)])
    levels = ("node", "chip", "rank")
    assert set(links_entry(links, levels, {0, 1, 3})) == {"inter-node", "intra-node"}
    entry = links_entry(links, levels, {2})
    assert entry["intra-chip"]["segments"] == [{"least": 0, "alpha": 1e-7, "beta": 1e-10}]

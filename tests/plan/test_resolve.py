"""Who does which cells: planned where that pays, as told where somebody told, and never a bit of difference."""

from __future__ import annotations

import json
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.errors import CaseError
from minga.options import RunOptions
from minga.output.account import account_entry, plan_entry
from minga.output.cells import layout_of_cells
from minga.plan import resolve as planning
from minga.plan.links import Links
from minga.plan.placement import place
from minga.plan.resolve import ResolvedPlan, balancer_of, resolve
from minga.plan.topology import Tree
from minga.running.session import Outcome, execute


def model(shape: tuple[int, int] = (80, 64), storage: str = "bytes") -> mg.Model:
    return mg.automaton("B3/S23", shape, init={"soup": 0.4, "seed": 3}, storage=storage)


def machine(folder: Path, *nodes: dict[str, Any], between: str = "20 us") -> Path:
    """A machine file of single cores."""
    path = folder / "machine.json"
    links = {"inter-node": {"latency": between, "bandwidth": "1 Gb/s"}}
    nodes = tuple({"cores": 1} | node for node in nodes)
    path.write_text(json.dumps({"format": "minga machine", "version": 1, "nodes": nodes, "links": links}))
    return path


def resolved(ranks: int, shape: tuple[int, int] = (80, 64), **words: Any) -> ResolvedPlan:
    found = mg.run_virtual(ranks, lambda comm: resolve(model(shape), comm, RunOptions.of(**{"steps": 10} | words)))
    assert len({(each.name, each.mapping, each.halo_depth, each.overlap, each.source) for each in found}) == 1
    first = [layout.fingerprint() for layout in found[0].layouts.values()]
    assert all([layout.fingerprint() for layout in each.layouts.values()] == first for each in found)
    return found[0]


def cells(each: ResolvedPlan) -> list[int]:
    return next(iter(each.layouts.values())).cells().tolist()


def test_one_rank_and_short_runs_need_no_plan() -> None:
    alone = resolve(model(), mg.SerialComm(), RunOptions.of(steps=10**9))
    assert (alone.source, alone.plan, cells(alone)) == ("one rank", None, [80 * 64])
    several = resolved(4)
    assert several.plan is None
    assert (several.name, several.halo_depth, several.overlap) == ("cartesian", 1, True)
    assert "equal shares" in several.source
    assert cells(several) == [80 * 16] * 4


def test_equal_shares_of_several_nodes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the result and what is printed of it, in ``plan.json`` and thus the report; not where it makes no odds."""
    monkeypatch.setattr(planning, "VirtualComm", tuple)  # ranks like any others
    found = resolved(2, topology="2x1")
    assert "2 nodes had equal shares: a run of about" in str(found.unmeasured)
    assert "--machine FILE" in str(found.unmeasured)
    assert resolved(2, topology="1x2").unmeasured is None
    assert resolved(2, topology="2x1", layout="slabs").unmeasured is None

    def run(comm: Comm) -> tuple[Outcome, list[dict[str, Any]]]:
        plans: list[dict[str, Any]] = []
        words = RunOptions.of(steps=2, topology="2x1")
        life = model()
        return execute(life, comm, words, [life.fields[0]], on_plan=lambda _, entry: plans.append(entry)), plans

    outcome, (plan,) = mg.run_virtual(2, run)[0]
    assert [finding.text for finding in outcome.findings] == [plan["unmeasured"]]
    assert plan["unmeasured"].startswith("the ranks on 2 nodes had equal shares")
    assert outcome.facts == {"shares": "equal, nodes not measured"}


@pytest.mark.parametrize(
    ("steps", "stop", "planned"),
    [(100, None, False), (10**9, None, True), (10**9, {"wall_time": 1}, False)],
)
def test_only_a_run_that_takes_a_while_is_measured_for(steps: int, stop: dict[str, int] | None, planned: bool) -> None:
    class Two(mg.SerialComm):
        size = 2

    words = RunOptions.of(steps=steps, stop=stop)
    reason = planning._unplanned(Two(), words, planning._expected(model(), Two(), words))
    assert (reason is None) == planned
    assert planned or "too short to measure" in str(reason)


@pytest.mark.parametrize(
    ("second_a_byte", "steps", "planned"), [(1e-4, 100, True), (1e-10, 100, False), (1e-4, 1, False)]
)
def test_slow_messages_make_a_short_run_worth_a_plan(
    second_a_byte: float, steps: int, planned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 Mcells on two nodes: computing takes a moment, a kilobyte over 80 kb/s takes a tenth of a second."""

    class Two(mg.SerialComm):
        size = 2

    seats = Tree.parse("2x1").seats(2)
    links = Links.uniform(len(seats.levels), ((1e-4, second_a_byte), (1e-6, 1e-10)))
    monkeypatch.setattr("minga.plan.probe.pingpong.links_of", lambda *_: links)
    wide, words = model((1024, 1024)), RunOptions.of(steps=steps)
    assert planning._may_be_long(Two(), words, seats)
    messages = planning._seconds_of_messages(wide, Two(), seats)
    reason = planning._unplanned(Two(), words, planning._expected(wide, Two(), words, messages))
    assert (reason is None) == planned
    assert not planning._may_be_long(Two(), RunOptions.of(steps=steps, layout="slabs"), seats)
    assert not planning._may_be_long(Two(), words, Tree.parse("1x2").seats(2))


def test_words_that_were_given_are_kept() -> None:
    told = resolved(2, layout="slabs:1", mapping="round-robin", halo_depth=3, overlap=False)
    assert told.plan is None
    assert (told.name, told.mapping, told.halo_depth, told.overlap) == ("slabs:1", "round-robin", 3, False)


def test_a_machine_file_gives_each_node_its_share(tmp_path: Path) -> None:
    file = machine(tmp_path, {"name": "new", "speed": "3 Mcells/s"}, {"name": "old", "speed": "1 Mcells/s"})
    found = resolved(2, machine=file)
    assert found.plan is not None
    assert found.uneven
    assert cells(found) == [80 * 48, 80 * 16]
    assert "machine.json" in found.source
    assert "on 2 ranks" in found.summary
    kept = resolved(2, machine=file, layout="slabs", halo_depth=2, overlap=False)
    assert (cells(kept), kept.halo_depth, kept.overlap) == ([40 * 64, 40 * 64], 2, False)


def test_a_node_that_does_not_pay_is_left_out(tmp_path: Path) -> None:
    nodes = ({"name": "new", "speed": "1 Gcells/s"}, {"name": "old", "speed": "1 Mcells/s"})
    found = resolved(2, machine=machine(tmp_path, *nodes, between="50 ms"))
    assert cells(found) == [80 * 64, 0]
    assert "without old" in found.summary


@pytest.mark.few(2)
@pytest.mark.parametrize(("shape", "storage"), [((80, 64), "bytes"), ((23, 130), "bytes"), ((40, 1300), "bits")])
def test_a_planned_run_has_the_same_bits_and_says_what_it_did(
    tmp_path: Path, shape: tuple[int, int], storage: str
) -> None:
    nodes = [{"name": name, "speed": f"{speed} Mcells/s"} for name, speed in (("a", 4), ("b", 2), ("c", 2), ("d", 1))]
    file = machine(tmp_path, *nodes)
    entries: list[dict[str, Any]] = []

    def run(comm: Comm, **words: Any) -> Outcome:
        case = model(shape, storage)
        fields = [case.field(name) for name in case.output]
        return execute(
            case, comm, RunOptions.of(steps=12, **words), fields, on_plan=lambda _, entry: entries.append(entry)
        )

    alone = run(mg.SerialComm())
    outcomes = mg.run_virtual(4, lambda comm: run(comm, machine=file))
    assert {outcome.digest for outcome in outcomes} == {alone.digest}
    _, entry = entries
    json.dumps(entry, allow_nan=False)
    assert [line["host"] for line in entry["ranks"]] == [platform.node()] * 4
    assert sum(line["cells"] for line in entry["ranks"]) == shape[0] * shape[1]
    assert entry["ranks"][0]["cells"] > entry["ranks"][3]["cells"]
    assert entry["blocks"] == outcomes[0].layout
    assert entry["plan"]["word"] == entry["layout"]
    account = outcomes[0].ledger["account"]
    parts = sum(account[name] for name in ("ideal", "imbalance", "network", "balance", "other"))
    assert parts == pytest.approx(account["seconds"], rel=0.2)
    assert account["predicted"]["seconds"] == pytest.approx(12 * entry["seconds_a_step"])
    assert len(account["predicted"]["ranks"]) == len(account["ranks"]) == 4


def test_a_machine_of_other_hosts_is_refused_on_every_rank(tmp_path: Path) -> None:
    file = machine(tmp_path, {"name": "pcs", "hosts": ["lab-pc-1", "lab-pc-2"], "count": 2, "speed": "1 Mcells/s"})
    errors: list[str] = []

    def run(comm: Comm) -> None:
        try:
            resolve(model(), comm, RunOptions.of(steps=1, machine=file))
        except CaseError as error:
            errors.append(str(error))

    mg.run_virtual(2, run)
    assert len(errors) == 2
    assert f"describes lab-pc-1, lab-pc-2, but ranks run on {platform.node()}" in errors[0]
    assert "minga measure" in errors[0]


def test_a_node_without_room_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(planning, "total_memory", lambda: 4096)
    with pytest.raises(CaseError, match=rf"the ranks on {platform.node()} need .* GiB, and it has"):
        resolved(2)
    file = machine(tmp_path, {"name": "tiny", "speed": "1 Mcells/s", "memory": "2 kB", "count": 2})
    with pytest.raises(CaseError, match="tiny"):
        resolved(2, machine=file)


def test_who_balances(tmp_path: Path) -> None:
    equal = machine(tmp_path, {"name": "pc", "speed": "1 Mcells/s", "cores": 2})

    def balanced(**words: Any) -> bool:
        def look(comm: Comm) -> bool:
            settings = RunOptions.of(steps=10, **words)
            return balancer_of(model(), comm, settings, resolve(model(), comm, settings)) is not None

        (one,) = set(mg.run_virtual(2, look))
        return one

    assert not balanced()
    assert not balanced(machine=equal)
    assert balanced(balance=5)
    unequal = machine(tmp_path, {"name": "a", "speed": "2 Mcells/s"}, {"name": "b", "speed": "1 Mcells/s"})
    assert balanced(machine=unequal)
    assert not balanced(machine=unequal, balance="off")


def line(cells: int, compute: float, **others: float) -> dict[str, Any]:
    return {"cells": cells, "seconds": {"compute": compute, **others}}


def test_what_imbalance_and_network_cost() -> None:
    """Powers 20 and 5 (Milano, section 2.1) with equal shares: the slow rank needs four times as long."""
    ranks = [line(500, 25.0, wait=77.0), line(500, 100.0, send=1.0, reduce=1.0, output=50.0, balance=0.5)]
    found = account_entry(ranks, 10, 103.5, None)
    assert found["ideal"] == pytest.approx(1000 / 25)
    assert found["imbalance"] == pytest.approx(60)
    assert found["network"] == pytest.approx(2)
    assert (found["balance"], found["other"]) == pytest.approx((0.5, 1))
    assert found["ranks"][1] == {"rank": 1, "compute": 10.0, "exchange": 0.2}
    assert found["predicted"] is None
    balanced = account_entry([line(800, 40.0), line(200, 40.0)], 10, 40.0, None)
    assert (balanced["ideal"], balanced["imbalance"], balanced["network"]) == pytest.approx((40.0, 0.0, 0.0))
    idle = account_entry([line(1000, 50.0), line(0, 0.0)], 10, 50.0, None)
    assert idle["imbalance"] == pytest.approx(0)


def test_cells_that_were_moved_count_for_as_long_as_they_were_held() -> None:
    """Ranks of speeds 4 and 1: half the steps with equal shares, half with those that fit."""
    ranks = [line(800, 10 * 65 / 4), line(200, 10 * 35)]
    found = account_entry(ranks, 100, 400.0, None, [650, 350])
    assert found["ideal"] == pytest.approx(1000 / 5)


def test_a_plan_entry_without_a_plan(tmp_path: Path) -> None:
    def entry(comm: Comm) -> dict[str, Any]:
        case = model()
        found = resolve(case, comm, RunOptions.of(steps=1))
        with mg.Engine(found.layouts, comm=comm) as engine:
            return plan_entry(found, ["here", "there"], layout_of_cells(engine, case))

    found = mg.run_virtual(2, entry)[0]
    assert found["plan"] is None
    assert found["seconds_a_step"] is None
    assert [each["cells"] for each in found["ranks"]] == [40 * 64, 40 * 64]
    assert "seconds" in found


def test_a_network_of_nodes_counts_without_a_plan() -> None:
    """Blocks in short runs are placed as `place` does it on the same torus."""
    found = resolved(8, topology="torus 4x2", mapping="auto", layout="cartesian")
    life = model()
    (grid, layout), *_ = life.layouts("cartesian", 8).items()
    expected = place(layout, Tree.parse("torus 4x2").seats(8), "auto", grid.periodic)
    assert next(iter(found.layouts.values())).owner.tolist() == expected.owner.tolist()
    assert found.seats.network is not None


def test_weights_count_where_nothing_is_measured() -> None:
    found = resolved(2, weights=(3.0, 1.0))
    assert found.source.startswith("run.weights; ")
    assert cells(found)[0] == pytest.approx(3 * cells(found)[1], rel=0.2)
    with pytest.raises(CaseError, match="the parts of layout 'slabs' are equal"):
        resolved(2, weights=(3.0, 1.0), layout="slabs")
    with pytest.raises(CaseError, match="layout"):
        resolved(2, weights=(3.0, 1.0), layout="cartesian")
    assert cells(resolved(3, weights=(1.0, 1.0, 0.0), layout="slabs")) == [2560, 2560, 0]


def test_unmeasured_nodes_below_switches_have_the_links_of_nodes() -> None:
    seats = Tree.parse("rack=2 node=2 core=2").seats(8)
    links = planning.equal_group(seats).links
    between, inside = links.time(seats, np.array([0, 0, 0]), np.array([4, 2, 1]), 1000).tolist()[1:]
    assert between == pytest.approx(links.time(seats, np.array([0]), np.array([4]), 1000)[0])
    assert inside < between


def test_links_keep_their_meaning_at_other_places() -> None:
    """Measured on two nodes of two cores, described as two racks: between nodes as measured, and within a node."""
    known, seats = Tree.parse("2x2").seats(4), Tree.parse("rack=2 node=1 core=2").seats(4)
    links = Links.uniform(2, [(1e-3, 0.0), (1e-6, 0.0), (1e-7, 0.0)])
    group = replace(planning.equal_group(known), links=links, names=("a", "b"))
    moved = group.at(seats)
    assert moved.names == ("a", "b")
    pairs = np.array([0, 0]), np.array([1, 2])
    assert moved.links.time(seats, *pairs, 8).tolist() == [1e-6, 1e-3]
    assert moved.at(known).links.time(known, *pairs, 8).tolist() == [1e-6, 1e-3]
    assert moved.links.widest(seats).time(8) == 1e-3
    assert moved.links.widest(seats.part(np.array([0, 1]))).time(8) == 1e-6

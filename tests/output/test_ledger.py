"""ledger.json: what was sent to whom, how the ranks sit, and what each level carried."""

from __future__ import annotations

import json
from typing import Any

import pytest

import minga as mg
from minga.engine.comm import Comm, SerialComm
from minga.errors import LayoutError
from minga.options import RunOptions
from minga.running.session import Outcome, execute


def run(comm: Comm, columns: int = 64, **settings: Any) -> Outcome:
    model = mg.automaton("B3/S23", (64, columns), init={"soup": 0.4, "seed": 1}, storage="bytes")
    return execute(model, comm, RunOptions.of(steps=8, **settings), [model.field(name) for name in model.output])


def virtual(ranks: int, **settings: Any) -> Outcome:
    return mg.run_virtual(ranks, lambda comm: run(comm, **settings))[0]


def test_the_ledger_of_four_ranks() -> None:
    ledger = virtual(4, layout="slabs", topology="2x1x2", mapping="sequential").ledger
    json.dumps(ledger, allow_nan=False)  # it is plain data
    ranks = ledger["ranks"]
    for rank, entry in enumerate(ranks):
        assert entry["rank"] == rank
        assert (entry["cells"], entry["blocks"], entry["threads"]) == (64 * 16, 1, 1)
        assert sorted(to["to"] for to in entry["traffic"]) == sorted([(rank - 1) % 4, (rank + 1) % 4])
        assert sum(to["messages"] for to in entry["traffic"]) == entry["messages"]
        assert sum(to["bytes"] for to in entry["traffic"]) == entry["bytes"]
        assert {"compute", "wait", "output"} <= entry["seconds"].keys()
    assert ledger["machine"] == {
        "topology": "2x1x2",
        "levels": ["node", "chip", "core"],
        "seats": [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]],
        "mapping": "sequential",
    }
    levels = {level["name"]: level for level in ledger["levels"]}
    total = sum(entry["messages"] for entry in ranks)
    assert levels["inter-node"]["messages"] == levels["intra-chip"]["messages"] == total // 2
    assert levels["inter-chip"]["messages"] == levels["same core"]["messages"] == 0
    assert sum(level["bytes"] for level in levels.values()) == sum(entry["bytes"] for entry in ranks)


@pytest.mark.slow
def test_mappings_move_blocks_and_change_no_bit() -> None:
    outcomes = {
        mapping: virtual(8, columns=128, layout="cartesian:4x2", topology="2x2x2", mapping=mapping)
        for mapping in ("sequential", "round-robin", "tiles", "bisection", "auto")
    }
    assert len({outcome.digest for outcome in outcomes.values()}) == 1
    owners = {mapping: [block["rank"] for block in outcome.layout] for mapping, outcome in outcomes.items()}
    assert owners["sequential"] == list(range(8))
    assert owners["round-robin"] == [0, 4, 1, 5, 2, 6, 3, 7]
    between = {m: next(iter(outcome.ledger["levels"]))["bytes"] for m, outcome in outcomes.items()}
    assert between["tiles"] == between["auto"] == min(between.values()) < max(between.values())


def test_the_layout_covers_the_cells() -> None:
    layout = virtual(2, layout="slabs").layout
    assert layout == [{"rank": 0, "lo": [0, 0], "hi": [32, 64]}, {"rank": 1, "lo": [32, 0], "hi": [64, 64]}]


def test_a_rank_alone_sends_nothing() -> None:
    ledger = run(SerialComm()).ledger
    assert ledger["ranks"][0]["traffic"] == []
    assert all(level["messages"] == 0 for level in ledger["levels"])
    assert ledger["machine"]["topology"] is None


def test_a_wrong_mapping_is_refused() -> None:
    with pytest.raises(LayoutError, match="not a mapping"):
        run(SerialComm(), mapping="tiled")

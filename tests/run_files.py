"""Directories as runs leave them, made without running anything, for what reads them."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minga.output.directory import RunDirectory
from minga.output.store import FrameStore
from minga.output.variables import variables_of
from minga.space.field import Field

CASE = """\
name = "{name}"
model = "automaton"

[grid]
shape = {shape}
boundary = "periodic"

[automaton]
rule = "B3/S23"
init = {{soup = 0.3, seed = 1}}

[run]
steps = 100
ranks = {ranks}
"""


def make_run(
    path: Path,
    field: Field,
    frames: Mapping[int, np.ndarray],
    *,
    ranks: int = 1,
    name: str = "small",
    layout: Sequence[Mapping[str, Any]] | None = None,
    series: Mapping[str, Sequence[Any]] | None = None,
) -> RunDirectory:
    """A finished run with one field; ``frames`` by step. Only what is named is left out."""
    path.mkdir()
    run = RunDirectory(path)
    shape = list(field.grid.shape)
    store = FrameStore(run.fields, variables_of([field]), {})
    for step, values in frames.items():
        store.append(step, {field.name: values})
    run.case.write_text(CASE.format(name=name, shape=shape, ranks=ranks))
    lines = [ledger_line(rank, ranks) for rank in range(ranks)]
    put(run.ledger, {"ranks": lines, "levels": [{"name": "same node", "messages": 12, "bytes": 1200, "copies": 24}]})
    result = {
        "model": "automaton", "shape": shape, "steps": 100, "ranks": ranks, "threads": 1, "seconds": 0.5,
        "cells_per_second": 1.2e6, "digest": "0123456789abcdef", "observables": {"population": 7},
        "costs": {"bytes_per_cell": 2.0, "flops_per_cell": 9.0, "field_bytes": 4096},
        "environment": {"versions": {"minga": "0.1.0"}, "host": platform.node(), "processor": "made for the purpose"},
    }  # fmt: skip
    put(run.result, result | ({"layout": list(layout)} if layout else {}))
    if series:
        put(run.series, dict(series))
    return run


def add_plan(run: RunDirectory, blocks: Sequence[Mapping[str, Any]], cells: Sequence[int]) -> None:
    """The plan of a run on as many ranks as there are ``cells``, and the account of what came of it."""
    ranks = range(len(cells))
    lines = [
        {"rank": r, "host": f"pc{r}", "cells": cells[r], "compute": 2e-3, "exchange": 1e-3, "hidden": 5e-4,
         "memory": 4096} for r in ranks
    ]  # fmt: skip
    whole = {
        "choices": [
            {"name": "layout", "chosen": "slabs", "naive": "equal parts", "gain": 1e-3, "reason": "by their speed"},
            {"name": "mapping", "chosen": "sequential", "naive": "sequential", "gain": 0.0, "reason": ""},
        ],
        "left_out": [["attic", "its <link> is too slow"]],
    }
    put(run.plan, {
        "layout": "slabs", "mapping": "sequential", "halo_depth": 2, "overlap": True, "source": "measured by the ranks",
        "seconds": 0.4, "seconds_a_step": 2.5e-3, "ranks": lines, "blocks": list(blocks), "plan": whole,
    })  # fmt: skip
    account = {
        "steps": 100, "seconds": 0.5, "ideal": 0.2, "imbalance": 0.05, "network": 0.15, "balance": 0.02, "other": 0.08,
        "ranks": [{"rank": r, "compute": 1e-3 * (r + 1), "exchange": 5e-4} for r in ranks],
        "predicted": {
            "seconds": 0.25, "error": -0.5, "ranks": [{"rank": r, "compute": 2e-3, "exchange": 5e-4} for r in ranks],
        },
    }  # fmt: skip
    decisions = [
        {"step": s, "imbalance": 1.5, "gain": 1e-4, "expected": 0.1, "bytes": 2000, "seconds": 0.01} for s in (20, 60)
    ]
    ledger = json.loads(run.ledger.read_text())
    hindsight = {"steps": 90, "spent": 0.4, "moving": 0.02, "kept": 0.6, "best": 0.35, "regret": 0.2}
    balance = {"looks": 9, "decisions": decisions, "hindsight": hindsight}
    put(run.ledger, ledger | {"account": account, "balance": balance})


def ledger_line(rank: int, ranks: int) -> dict[str, Any]:
    """A rank that computed longer, the higher its number, and sent 600 bytes to the next."""
    sent = [{"to": (rank + 1) % ranks, "messages": 6, "bytes": 600, "copies": 12}] if ranks > 1 else []
    return {
        "rank": rank, "host": platform.node(), "processor": [rank], "threads": 1, "blocks": 1, "cells": 10,
        "seconds": {"compute": 0.1 * (rank + 1), "wait": 0.05, "output": 0.2, "send": 0.0},
        "messages": 6 * len(sent), "bytes": 600 * len(sent), "traffic": sent,
    }  # fmt: skip


def put(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content))

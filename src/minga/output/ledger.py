"""``ledger.json``: the time of each rank by category and the data it sent, as plain data.

==============  ====================================================================================================
``ranks``       one entry a rank: ``rank``; ``host``; ``processor``, the logical processors it may run on; ``threads``;
                ``blocks`` and ``cells`` it owns; ``seconds`` by category (compute, boundary, pack, send, wait, reduce,
                call, other, output); ``messages`` and ``bytes`` it sent; ``traffic``, the same by receiver: ``to``,
                ``messages``, ``bytes``, and ``copies``, the boxes of cells that travelled in the messages; ``skipped``,
                the share of cell updates left out as nothing could change there, ``null`` if none were considered;
                ``snapshots``, the cost of frames on this rank, most of it beside the steps
                (:mod:`minga.output.snapshots.counters`), ``null`` if none were written
``machine``     the placement of the ranks: ``topology``, as given by the user, or ``null`` if it was detected;
                ``levels``, the outermost first; ``seats``, one row a rank, its group on each level, numbered within the
                group around it; ``mapping`` of the blocks (:mod:`minga.plan.placement`)
``levels``      messages, bytes and copies of all ranks by the distance between sender and receiver: ``name`` is such as
                inter-node, inter-chip, intra-chip, same core
``account``     the wall time of the steps by part, and the predicted times: :mod:`minga.output.account`
``sessions``    the sessions of the run, a dict each (:class:`minga.output.checkpoint.head.Session`): one, unless
                it was resumed. ``ranks``, ``levels`` and ``account`` are of the last one; of an earlier one that was
                killed, ``checkpoints`` does not count the checkpoint that it was resumed from
``balance``     the blocks moved between ranks during the run, and the regret of these moves in ``hindsight``
                (:class:`minga.plan.hindsight.Regret`); ``null`` if balancing was off
==============  ====================================================================================================

Messages are counted at their start, in the transport. An exchange packs all data for one rank into one message. During
a run the file holds only the entries so far.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minga.engine.traffic import Traffic
from minga.plan.topology import Tree, traffic_by_level

if TYPE_CHECKING:
    from minga.engine.engine import Engine
    from minga.space.layout import Layout

__all__ = ["blocks_entry", "ledger_entry", "levels_entry", "machine_entry"]


def ledger_entry(
    engine: Engine, layout: Layout, output: float, snapshots: Mapping[str, int | float] | None = None
) -> dict[str, Any]:
    """Return this rank's line of the ledger.

    Parameters
    ----------
    engine
        Engine of the run.
    layout
        Layout of the cells.
    output
        Seconds for which frames delayed the steps, outside of the engine's Programs.
    snapshots
        Cost of writing them beside the steps.
    """
    ledger, rank = engine.ledger, engine.comm.rank
    skipped, looked_at = engine.skipped
    return {
        "rank": rank,
        "host": platform.node(),
        "processor": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
        "threads": engine.threads,
        "blocks": len(layout.blocks_of(rank)),
        "cells": layout.cells_of(rank),
        "seconds": {**ledger.seconds, "output": output},
        "messages": ledger.messages,
        "bytes": ledger.bytes,
        "traffic": [{"to": to, **_plain(traffic)} for to, traffic in ledger.traffic.items()],
        "skipped": skipped / looked_at if looked_at else None,
        "snapshots": None if snapshots is None else dict(snapshots),
    }


def machine_entry(seats: Tree, topology: str | None, mapping: str) -> dict[str, Any]:
    """Return the placement of the ranks in the machine, and the mapping by which blocks were given to them."""
    return {
        "topology": topology,
        "levels": list(seats.levels),
        "seats": seats.paths.tolist(),
        "mapping": mapping,
    }


def levels_entry(ranks: Sequence[Mapping[str, Any]], seats: Tree) -> list[dict[str, Any]]:
    """Return the data that all ranks sent, by level; ``ranks`` are the lines of the ledger in order."""
    sent = [
        {to["to"]: Traffic(to["messages"], to["bytes"], to["copies"]) for to in entry["traffic"]} for entry in ranks
    ]
    return [{"name": name, **_plain(traffic)} for name, traffic in traffic_by_level(sent, seats).items()]


def blocks_entry(layout: Layout) -> list[dict[str, Any]]:
    """Return the blocks of a layout as in ``result.json``: ``rank``, ``lo``, ``hi`` (half-open, in cells)."""
    owners, lows, highs = layout.owner.tolist(), layout.lo.tolist(), layout.hi.tolist()
    return [{"rank": rank, "lo": lo, "hi": hi} for rank, lo, hi in zip(owners, lows, highs, strict=True)]


def _plain(traffic: Traffic) -> dict[str, int]:
    return {"messages": traffic.messages, "bytes": traffic.bytes, "copies": traffic.copies}

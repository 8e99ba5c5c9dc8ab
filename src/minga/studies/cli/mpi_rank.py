"""One rank of ``minga bench mpi``: ``python -m minga.studies.cli.mpi_rank ORDER``, under a launcher.

ORDER is JSON: ``target`` and ``overrides`` specify the case, ``ranks`` is the number of ranks that were started,
``seconds`` the time for which each variant runs, ``sizes`` and ``rounds`` specify the messages; ``layout`` (low and
high ends, owners) is the layout that the job of another library has planned. Rank 0 prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from minga.cli.case import Case, find_source, read_case
from minga.errors import LaunchError
from minga.launch.exit_codes import FAILED, OK
from minga.launch.launcher import library, surrounding_job, world
from minga.launch.rank_end import end_in_error
from minga.space.layout import Layout

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Carry out an order as one rank, and return the exit status."""
    order = json.loads(arguments[0])
    try:
        everyone = world(surrounding_job(), order["ranks"])
    except LaunchError as error:
        sys.stderr.write(f"minga: {error}\n")
        return FAILED
    try:
        found = _measure(everyone, order)
    except BaseException as error:
        end_in_error(error, everyone)
    if everyone.rank == 0:
        print(json.dumps(found), flush=True)
    return OK


def _measure(everyone: Any, order: dict[str, Any]) -> dict[str, Any]:
    from minga.studies.tinetti.mpi_ranks import call_times, time_ways

    case = read_case(find_source(order["target"]), order["overrides"], here=False)
    layout = _layout(case, everyone, order.get("layout"))
    found = time_ways(everyone, case.model, layout, max(1, case.run.steps), order["seconds"])
    calls = call_times(everyone, order["sizes"], order["rounds"]) if everyone.size > 1 else {}
    known = library()
    return {
        **found,
        "vendor": known.vendor,
        "version": known.version,
        "layout": [layout.lo.tolist(), layout.hi.tolist(), layout.owner.tolist()],
        "cells": layout.cells().tolist(),
        "case_steps": case.run.steps,
        "calls": calls,
    }


def _layout(case: Case, everyone: Any, given: list[Any] | None) -> Layout:
    """Return the layout of the planned grid: the given one, that of the case, or one planned for these ranks."""
    from minga.engine.comm import MPIComm
    from minga.plan.cost import work_of
    from minga.plan.planner import make_plan
    from minga.plan.probe.probe import probe_ranks

    grid = case.model.planned_grid
    if given is not None:
        low, high, owner = (np.asarray(part, np.int64) for part in given)
        return Layout(grid.box, everyone.size, low, high, owner)
    if case.run.layout != "auto":
        return case.model.layouts(case.run.layout, everyone.size)[grid]
    comm = MPIComm(everyone)
    group = probe_ranks(case.model, comm, cache=False)
    plan = make_plan(work_of(case.model), group, halo_depth=1)
    layout: Layout = everyone.bcast(plan.layout)
    return layout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Message-driven organisation on charm4py: every segment is a chare with its own program counter.

A chare continues as soon as it has received its neighbours' rows and, every `every` iterations, the verdict of the main
chare, which tests for convergence. Chares can migrate: every `balance` iterations Charm++'s balancer, if one is named,
may move them. charm4py is the extra `charm`; the chares are in `charm_program`, which charmrun starts.
"""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from minga.errors import RunError
from minga.models.photodiode.pointwise.scheme import Pointwise
from minga.models.photodiode.solver.problem import Curve
from minga.models.photodiode.structure.device import Device
from minga.studies.bounanos.centralised import Solution
from minga.studies.bounanos.segment import Order

__all__ = ["CharmRun", "solve_charm"]


@dataclass(frozen=True, slots=True)
class CharmRun:
    """Result of a run on charm4py.

    Attributes
    ----------
    solution
        Solution, in the same form as for other organisations.
    migrations
        Number of chares that changed processes.
    """

    solution: Solution
    migrations: int


def solve_charm(
    device: Device,
    ends: Sequence[int],
    voltage: float,
    curve: Curve,
    how: Pointwise,
    *,
    processes: int = 1,
    balancer: str | None = None,
    balance: int = 0,
    every: int = 1,
) -> CharmRun:
    """Solve a device at a voltage with one chare per segment, on processes of this machine.

    Parameters
    ----------
    device, ends, voltage, curve, how
        As in :func:`minga.studies.bounanos.centralised.solve_centralised`, with the same bits if the test is made every
        iteration.
    processes
        Number of processes that charmrun starts.
    balancer, balance
        "GreedyRefineLB", "GreedyLB" or "RefineLB", and the iterations between its inspections of the loads.
    every
        Iterations between tests for convergence; in between chares wait for their neighbours only.

    Raises
    ------
    RunError
        If charm4py is missing, or the run failed.
    """
    if importlib.util.find_spec("charm4py") is None:  # importing it here would make this process a chare's
        raise RunError(
            "chares need charm4py, which is not installed", remedy='pip install "minga[charm]" (Linux x86-64, macOS)'
        )
    orders = [Order.of(device, ends, number, voltage, curve, how) for number in range(len(ends) - 1)]
    with tempfile.TemporaryDirectory() as name:
        order, answer = Path(name) / "order.pickle", Path(name) / "answer.pickle"
        order.write_bytes(pickle.dumps((orders, how, every, balance if balancer else 0)))
        start = [sys.executable] if processes == 1 else [sys.executable, "-m", "charmrun.start", f"+p{processes}"]
        program = Path(__file__).with_name("charm_program.py")
        command = [*start, str(program), str(order), str(answer), "++quiet"]
        if balancer:
            command += ["+balancer", balancer]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0 or not answer.exists():
            raise RunError(
                f"charm4py ended with status {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}",
                remedy="try processes=1 first; several processes need UDP between them",
            )
        found: dict[str, Any] = pickle.loads(answer.read_bytes())
    parts = found["parts"]
    state = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    solution = Solution(state, found["iterations"], found["change"], found["seconds"])
    return CharmRun(solution, found["migrations"])

"""What the ranks of a lab do: ``python -m benchmarks.matmul.program ORDER``, under a launcher.

ORDER is JSON. Rank 0 prints one line of JSON with what was found. All ways to make a product take turns, so that a busy
moment meets all of them; each is checked. Ours reads its operands from files and writes the result into one; the others
begin and end with their parts in memory.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from benchmarks.matmul.slow import slow_down
from benchmarks.matmul.summa import Summa
from benchmarks.matmul.turns import summed_up
from minga.engine.comm import MPIComm
from minga.models.matmul.problem import problem_of
from minga.models.matmul.product import Options, product

Way = Callable[[], dict[str, Any]]


def meet(world: MPI.Intracomm) -> None:
    """A barrier that uses no processor while it waits: other ranks are being timed."""
    request = world.Ibarrier()
    while not request.Test():
        time.sleep(0.002)


class Bench:
    """The operands of one size, and the ways to multiply them; each returns what is worth keeping of one turn."""

    def __init__(self, world: MPI.Intracomm, comm: MPIComm, folder: Path, n: int) -> None:
        self.world, self.comm, self.n = world, comm, n
        self.files = [folder / f"a-{n}.npy", folder / f"b-{n}.npy"]
        self.out = folder / f"c-{n}.npy"
        if world.rank == 0:
            for seed, file in enumerate(self.files):
                np.save(file, np.random.default_rng(seed).standard_normal((n, n)))
            # The operator is not slowed down.
            np.save(folder / f"expected-{n}.npy", np.load(self.files[0]) @ np.load(self.files[1]))
        meet(world)
        self.a, self.b = (np.load(file, mmap_mode="r") for file in self.files)
        self.expected = np.load(folder / f"expected-{n}.npy", mmap_mode="r")

    def ours(self, *, from_one: bool = False, **options: Any) -> dict[str, Any]:
        """`minga matmul`, measured anew each time."""
        meet(self.world)
        given = self.world.rank == 0 or not from_one
        found, account = product(
            lambda: problem_of(*self.files),
            self.out,
            self.comm,
            Options(cache=False, overwrite=True, **options),
            given=given,
        )
        meet(self.world)
        if account is None or found is None:
            return {}
        entry = account.as_dict()
        return {
            "seconds": entry["seconds"],
            "predicted_seconds": entry["predicted_seconds"],
            "speeds": entry["speeds"],
            "break_even": entry["break_even"],
            "break_even_from_one": entry["break_even_from_one"],
            "to_all": entry["to_all"],
            "route": entry["route"],
            "handling": entry["handling"],
            "plan": account.plan.describe() if account.plan else None,
            "width": account.plan.width if account.plan else None,
            "rows": [column["rows"] for column in entry["plan"]["columns"]],
            "ledger": entry["ledger"],
            "checking_seconds": entry["checking_seconds"],
            "measuring_seconds": entry["measuring_seconds"],
            "error": self._relative(float(np.abs(found - self.expected).max())),
        }

    def alone(self) -> dict[str, Any]:
        """NumPy on the fastest node."""
        spent, error = 0.0, 0.0
        meet(self.world)
        if self.world.rank == 0:
            a, b, c = np.array(self.a), np.array(self.b), np.zeros((self.n, self.n))
            began = time.perf_counter()
            np.matmul(a, b, out=c)
            spent = time.perf_counter() - began
            error = float(np.abs(c - self.expected).max())
        meet(self.world)
        return {"seconds": spent, "error": self._relative(error)}

    def peer(self, made: Any) -> dict[str, Any]:
        """One that cuts all evenly: SUMMA or pdgemm."""
        meet(self.world)
        began = time.perf_counter()
        made.multiply()
        spent = self.world.allreduce(time.perf_counter() - began, MPI.MAX)
        error = self.world.allreduce(made.error(self.expected), MPI.MAX)
        meet(self.world)
        return {"seconds": spent, "error": self._relative(error)}

    def _relative(self, error: float) -> float:
        """Over what rounding can do: n eps |A_i| |B_j|, with norms of the largest row and column."""
        eps = float(np.finfo(float).eps)
        norms = np.linalg.norm(self.a[: min(64, self.n)], axis=1).max() * np.linalg.norm(self.b[:, :64], axis=0).max()
        return error / (self.n * eps * float(norms))


def ways(bench: Bench, order: Mapping[str, Any]) -> dict[str, Way]:
    """The ways that an order names."""
    known: dict[str, Way] = {
        # Rows, so that B is broadcast: a lab's files are in memory, and reading them costs nothing.
        "minga": lambda: bench.ours(layout="rows"),
        "minga, best layout": bench.ours,
        "minga, equal rows": lambda: bench.ours(layout="equal"),
        "minga, from one": lambda: bench.ours(from_one=True, layout="rows"),
        "minga, best layout from one": lambda: bench.ours(from_one=True),
        "numpy on the fastest node": bench.alone,
    }
    wanted = order["ways"]
    if "SUMMA" in wanted:
        summa = Summa(bench.world, bench.n, (2, 2))
        summa.fill(bench.a, bench.b)
        known["SUMMA"] = lambda: bench.peer(summa)
    if "pdgemm" in wanted:
        from benchmarks.matmul.scalapack import Pdgemm

        pdgemm = Pdgemm(bench.n, (2, 2))
        pdgemm.fill(bench.a, bench.b)
        known["pdgemm"] = lambda: bench.peer(pdgemm)
    return {name: known[name] for name in wanted}


def compared(world: MPI.Intracomm, order: Mapping[str, Any]) -> dict[str, Any]:
    """All ways in turns, for each size."""
    comm = MPIComm(world)
    found: dict[str, Any] = {}
    for n in order["sizes"]:
        bench = Bench(world, comm, Path(order["folder"]), n)
        made = ways(bench, order)
        turns: dict[str, list[dict[str, Any]]] = {name: [] for name in made}
        for number in range(order["rounds"]):
            for name in list(made) if number % 2 == 0 else list(reversed(made)):
                turns[name].append(made[name]())
                if world.rank == 0:
                    print(f"  {n}: {name} {turns[name][-1].get('seconds', 0):.2f} s", file=sys.stderr, flush=True)
        meet(world)
        if world.rank == 0:
            found[str(n)] = {name: summed_up(n, entries) for name, entries in turns.items()}
            for file in (*bench.files, bench.out, Path(order["folder"]) / f"expected-{n}.npy"):
                file.unlink(missing_ok=True)
    return found


def main() -> int:
    order = json.loads(sys.argv[1])
    world = MPI.COMM_WORLD
    assert os.environ.get("OPENBLAS_NUM_THREADS") == "1", "a node has less than a core"
    slow_down()
    found = compared(world, order)
    if world.rank == 0:
        print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Run on MPI ranks by test_job.py: measures the network between them and leaves JSON, or fails on purpose."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mpi4py import MPI

from minga.errors import RunError
from minga.network.measuring.exchanges import Ends, both_sides, exchange_times, measure_matrix
from minga.network.measuring.measure import measure_job
from minga.network.measuring.team import one_job


def main() -> None:
    world = MPI.COMM_WORLD
    if sys.argv[1] == "fail":
        try:
            with one_job(world) as team:
                if team is not None:
                    raise RunError("a host is on fire")
        except RunError as error:
            print(world.rank, error.message)
        return
    section = measure_job(world, 1.0)
    with one_job(world) as team:
        if team is not None:
            # Rank 0 gives the orders and may be at either end, or not take part.
            found = {f"{a}{b}": exchange_times(team, [Ends(a, b)], "mpi", [(100, "both", 0, 3)]) for a, b in PAIRS}
            matrix = measure_matrix(team, [0, 1, 2], {}, "mpi", 0.5).as_dict()
            overlap = both_sides(team, Ends(1, 2), "overlap", "mpi", sizes=[100_000], budget=0.1)
            result = {"pairs": found, "matrix": matrix, "overlap": overlap}
            Path(sys.argv[1]).write_text(json.dumps(result))
    Path(f"{sys.argv[1]}.{world.rank}").write_text(json.dumps(section))


PAIRS = ((0, 1), (1, 0), (1, 2))

if __name__ == "__main__":
    main()

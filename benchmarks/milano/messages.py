"""Table 5: what each call takes between two ranks, by size. ``python -m benchmarks.milano.messages ORDER``.

ORDER is JSON: ``sizes`` in bytes, ``rounds``. Rank 0 prints milliseconds by size and call.
"""

from __future__ import annotations

import json
import sys

from mpi4py import MPI

from minga.studies.tinetti.mpi_ranks import call_times


def main() -> int:
    order = json.loads(sys.argv[1])
    found = call_times(MPI.COMM_WORLD, order["sizes"], order["rounds"])
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

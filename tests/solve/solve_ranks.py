"""Run on MPI ranks by test_same_bits.py: solve a box with multigrid; rank 0 saves the solution in the given file."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import minga as mg
from minga.engine.comm import MPIComm
from minga.space.cuts import slabs
from solve.problems import noise, solve_on

comm = MPIComm()
grid = mg.Grid((15, 15, 15))
found = solve_on(comm, grid, noise(grid), slabs(grid.box, comm.size), cells_per_rank=64)
if comm.rank == 0:
    np.save(sys.argv[1], found.x)
    print(found.reason, found.iterations)

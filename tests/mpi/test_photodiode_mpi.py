"""Photodiodes with two axes and adapted meshes on real MPI ranks: the bits of one process."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

import minga as mg
from mpi_launch import run_ranks

from .photodiode_ranks import CASES, digest, made

SCRIPT = Path(__file__).parent / "photodiode_ranks.py"


@functools.cache
def alone() -> dict[str, str]:
    return {name: digest(made(name), mg.SerialComm(), 1) for name in CASES}


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_devices_have_the_bits_of_one_process(ranks: int) -> None:
    job = run_ranks(ranks, SCRIPT, timeout=280).check()
    assert json.loads(job.out[0]) == alone()

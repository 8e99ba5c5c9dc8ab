"""The engine's own kernels for a GPU: assembled by NVIDIA's assembler, and run by the machine for PTX."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from minga.compile import exact
from minga.compile.abi import SUM_NAN
from minga.engine.device import HELPERS
from minga.engine.device_kernels import helper_launch, helper_ptx
from minga.engine.helpers import Finish, candidate_args, finish_args
from minga.lang.graph import ReductionKind
from minga.lang.types import DType
from ptx_assembler import report_on
from ptx_device import PtxDevice, only
from ptx_machine import run

NUMBERS = np.random.default_rng(11)
LARGEST = np.finfo(float).max


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_they_are_assembled_and_need_no_memory_of_their_own(arch: str, tmp_path: Path) -> None:
    said = report_on(helper_ptx(arch), arch, tmp_path, 3)
    for name in HELPERS:
        assert f"'gpu_{name}' for '{arch}'" in said
    assert said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(HELPERS)


def _sum(*values: float) -> np.ndarray:
    words = exact.empty_accumulator("sum")
    exact.add_exactly(words, np.array(values))
    return words


def _extreme(kind: ReductionKind, dtype: DType, *values: float) -> np.ndarray:
    words = exact.empty_accumulator(kind)
    for key in exact.sort_keys(np.array(values, dtype), minimum=kind == "min"):
        words[0] = max(words[0], key)
    return words


ITEMS: list[tuple[ReductionKind, DType, np.ndarray]] = [
    ("sum", "f8", _sum(*NUMBERS.normal(size=50) * 10.0 ** NUMBERS.integers(-300, 300, 50))),
    ("max", "f8", _extreme("max", "f8", -3.5, -7.25)),
    ("sum", "f8", _sum(1.0, 2.0**-53, 5e-324)),
    ("sum", "f8", _sum(-1.0, -(2.0**-52), -(2.0**-53))),
    ("count", "i8", np.r_[[12345], np.zeros(79, int)]),
    ("sum", "f8", _sum(2.0**-1022, -5e-324)),
    ("sum", "f4", _sum(LARGEST, -LARGEST, 0.1, -0.3)),
    ("min", "i4", _extreme("min", "i4", -5, 9)),
    ("min", "f4", _extreme("min", "f4", 2.5, 9.0)),
    ("max", "u8", _extreme("max", "u8", 3)),
    ("argmax", "i8", np.r_[[7, 2**40], np.zeros(78, int)]),
    ("sum", "f8", _sum()),
]
SPECIAL: list[tuple[ReductionKind, DType, np.ndarray]] = [
    ("sum", "f8", np.where(np.arange(80) == SUM_NAN, 1, 0)),
    ("sum", "f8", np.where(np.arange(80) == SUM_NAN + 1, 1, 0)),
    ("sum", "f8", _sum(LARGEST, LARGEST)),
    ("max", "f8", _extreme("max", "f8", np.nan)),
]


@pytest.mark.few(2)
@pytest.mark.parametrize("order", ["together", "first", "last"])
def test_reductions_are_finished(order: Literal["together", "first", "last"]) -> None:
    values, flag = _finished(ITEMS, order)
    for (kind, dtype, words), value in zip(ITEMS, values, strict=True):
        expected = np.array(exact.finish(kind, dtype, words), dtype).tobytes()
        assert value.tobytes()[: len(expected)] == expected, (kind, dtype)
    assert flag == 0


@pytest.mark.few(2)
@pytest.mark.parametrize("item", SPECIAL)
def test_results_that_are_not_finite_are_told(item: tuple[ReductionKind, DType, np.ndarray]) -> None:
    values, flag = _finished([*ITEMS[:2], item], "together")
    with np.errstate(over="ignore"):
        assert np.array_equal(values[2:].view("f8"), [exact.finish(*item)], equal_nan=True)
    assert flag == 1


def _finished(
    items: list[tuple[ReductionKind, DType, np.ndarray]], order: Literal["together", "first", "last"]
) -> tuple[np.ndarray, int]:
    """Values of registers, and the flag, which was not clear before."""
    device = PtxDevice()
    flag, registers = device.shared(8), device.shared(8 * len(items)).view(np.int64)
    flag[0] = 9
    records = []
    for number, (kind, dtype, words) in enumerate(items):
        records.append(Finish(kind, dtype, device.put(np.asarray(words, np.int64)), registers[number:].ctypes.data))
    args = finish_args(records, flag.ctypes.data)
    grid, block = helper_launch("finish_reductions", args)
    text = only("finish_reductions", device.architecture)
    run(text, device, [device.put(args), device.worker], grid, block, order=order, generic=True)  # type: ignore[arg-type]
    return registers, int(flag[0])


def test_ranks_without_the_winning_key_are_no_candidates() -> None:
    device = PtxDevice()
    own, winner, index = (device.shared(16).view(np.int64) for _ in range(3))
    own[:], winner[:], index[:] = (5, 8), (6, 8), (10, 20)
    addresses = [
        (a.ctypes.data, b.ctypes.data, c.ctypes.data)
        for a, b, c in zip(*(np.split(x, 2) for x in (own, winner, index)))
    ]
    args = candidate_args(addresses)
    grid, block = helper_launch("arg_candidates", args)
    device.launch(device.helper("arg_candidates"), grid, block, device.put(args))
    device.synchronise()
    assert index.tolist() == [np.iinfo(np.int64).max, 20]

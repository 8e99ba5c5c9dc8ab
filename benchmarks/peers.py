"""The C compiler's loops (peers.c), and calling them and compiled kernels many times without Python between."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.timing import Way
from minga.compile.call import Call

SOURCE = Path(__file__).with_name("peers.c")
FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-tree-loop-distribute-patterns")


@functools.cache
def library() -> ctypes.CDLL | None:
    """peers.c, compiled for this machine; None where there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "peers.so"
        subprocess.run([gcc, *FLAGS, "-shared", "-fPIC", "-o", str(target), str(SOURCE), "-lm"], check=True)
        return ctypes.CDLL(str(target))


def compiler() -> str:
    """The compiler's own description of itself, and the options used; empty where there is none."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return ""
    version = subprocess.run([gcc, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    return f"{version}, {' '.join(FLAGS)}"


def peer(name: str, *lists: Sequence[int], keep: object = None, way: str = "gcc") -> dict[str, Way]:
    """{way: calls of a function of peers.c with each of these lists of words in turn}, or nothing without gcc.

    `keep` holds what the words point to.
    """
    loaded = library()
    if loaded is None:
        return {}
    args = np.array(lists, np.int64)
    places = args.ctypes.data + args.strides[0] * np.arange(len(lists))
    function = ctypes.cast(getattr(loaded, name), ctypes.c_void_p)

    def run(times: int, keep: object = (keep, args)) -> None:
        loaded.repeat_peer(
            function, ctypes.c_void_p(places.ctypes.data), ctypes.c_long(len(places)), ctypes.c_long(times)
        )

    return {way: run}


def kernel_way(*calls: Call) -> Way:
    """A compiled kernel bound to its arrays; where there is gcc, the loop over tiles is native, as in engines.

    Several calls, of one kernel with the slots of its fields in other places, are executed in turn.
    """
    loaded, first = library(), calls[0]
    places = np.array([call.args.ctypes.data for call in calls])

    def interpreted(times: int) -> None:
        for number in range(times):
            calls[number % len(calls)].run()

    def native(times: int) -> None:
        assert loaded is not None
        loaded.repeat_kernel(
            ctypes.c_void_p(first.compiled.address), ctypes.c_void_p(places.ctypes.data), ctypes.c_long(len(calls)),
            ctypes.c_long(first.tiles), ctypes.c_void_p(first.worker.ctypes.data), ctypes.c_long(times),
        )  # fmt: skip

    return interpreted if loaded is None else native


def address(array: np.ndarray, *index: int) -> int:
    """Where the element with this index lies; also of indices outside the array."""
    return int(array.ctypes.data) + sum(i * s for i, s in zip(index, array.strides, strict=True))

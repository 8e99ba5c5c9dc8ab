"""ScaLAPACK's pdgemm, called by ctypes with the MPI library that this process has: Debian's packages, not installed.

The packages are downloaded by apt and unpacked into a directory; a link gives MPICH's library the name that Debian's
has. Both have the same binary interface.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("libscalapack-mpich2.2", "libopenblas0-pthread", "libgfortran5", "libquadmath0")
_INNER = "usr/lib/x86_64-linux-gnu"


def unpack(folder: Path) -> dict[str, str] | None:
    """Download and unpack; the environment that ranks need, or None where that cannot be."""
    libraries = folder / _INNER
    try:
        if not (libraries / "libscalapack-mpich.so.2.2").exists():
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["apt-get", "download", *PACKAGES], cwd=folder, check=True, capture_output=True, timeout=120)
            for package in folder.glob("*.deb"):
                subprocess.run(["dpkg", "-x", str(package), str(folder)], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no pdgemm: {error}", file=sys.stderr)
        return None
    mpi = Path(sys.prefix) / "lib" / "libmpi.so.12"
    if not mpi.exists():
        print(f"no pdgemm: {mpi} is not there", file=sys.stderr)
        return None
    link = libraries / "libmpich.so.12"
    link.unlink(missing_ok=True)
    link.symlink_to(mpi.resolve())
    return {"LD_LIBRARY_PATH": os.pathsep.join([str(libraries), str(libraries / "openblas-pthread")])}


class Pdgemm:
    """C = A B of f8 on a grid of ranks, block-cyclic: each rank has equally much."""

    def __init__(self, n: int, grid: tuple[int, int], block: int = 128) -> None:
        self._library = ctypes.CDLL("libscalapack-mpich.so.2.2", ctypes.RTLD_GLOBAL)
        self.n, self.block = n, block
        context, row, column, rows, columns = (ctypes.c_int(0) for _ in range(5))
        self._library.Cblacs_get(0, 0, ctypes.byref(context))
        self._library.Cblacs_gridinit(ctypes.byref(context), b"Row", *grid)
        self._library.Cblacs_gridinfo(context, *map(ctypes.byref, (rows, columns, row, column)))
        self.place, self.grid = (row.value, column.value), (rows.value, columns.value)
        self._context = context
        shape = tuple(self._own(axis).size for axis in (0, 1))
        self.a, self.b, self.c = (np.zeros(shape, order="F") for _ in range(3))
        self._descriptor = np.zeros(9, np.int32)
        info = ctypes.c_int(0)
        self._library.descinit_(
            self._descriptor.ctypes.data_as(ctypes.c_void_p), *self._ints(n, n, block, block, 0, 0, context.value,
            max(1, shape[0])), ctypes.byref(info),
        )  # fmt: skip
        if info.value:
            raise RuntimeError(f"descinit: {info.value}")

    def _own(self, axis: int) -> Any:
        """Global numbers of this rank's rows or columns."""
        numbers = np.arange(self.n)
        return numbers[numbers // self.block % self.grid[axis] == self.place[axis]]

    def fill(self, a: Any, b: Any) -> None:
        """Take this rank's part of two matrices."""
        rows, columns = self._own(0), self._own(1)
        for number, column in enumerate(columns.tolist()):
            self.a[:, number] = a[rows, column]
            self.b[:, number] = b[rows, column]

    def multiply(self) -> None:
        """The call."""
        one, zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
        flag = ctypes.c_char(b"N")
        here = self._ints(1, 1)
        n = self._ints(self.n, self.n, self.n)
        pointer = self._descriptor.ctypes.data_as(ctypes.c_void_p)

        def matrix(array: Any) -> tuple[Any, ...]:
            return array.ctypes.data_as(ctypes.c_void_p), *here, pointer

        self._library.pdgemm_(
            ctypes.byref(flag), ctypes.byref(flag), *n, ctypes.byref(one), *matrix(self.a), *matrix(self.b),
            ctypes.byref(zero), *matrix(self.c),
        )  # fmt: skip

    def error(self, expected: Any) -> float:
        """The largest difference from a result, on this rank."""
        rows, columns = self._own(0), self._own(1)
        return max(float(np.abs(self.c[:, at] - expected[rows, column]).max()) for at, column in enumerate(columns))

    def _ints(self, *values: int) -> list[Any]:
        self._kept = [ctypes.c_int(value) for value in values]
        return [ctypes.byref(value) for value in self._kept]

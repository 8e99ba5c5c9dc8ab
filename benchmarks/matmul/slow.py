"""A slower BLAS: each product is made so many times, as MINGA_SLOWNESS says.

Network and processor of a node of a lab are one: with a tenth of a core it can neither multiply nor receive. What
differs between the machines of a laboratory is mostly the first. So all nodes have equal parts of a core, and repeat
their products; all programs that are compared do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

TIMES = {"fast": 24, "half": 48, "slow-1": 96, "slow-2": 96}
"""How often each node makes a product."""

_SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
typedef void (*gemm)(const char*, const char*, const int*, const int*, const int*, const double*, const double*,
                     const int*, const double*, const int*, const double*, double*, const int*, long, long);
void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha,
            const double *a, const int *lda, const double *b, const int *ldb, const double *beta, double *c,
            const int *ldc, long la, long lb)
{
    static gemm real;
    static double *spare;
    static long room;
    static int times;
    if (!real) {
        real = (gemm)dlsym(RTLD_NEXT, "dgemm_");
        times = atoi(getenv("MINGA_SLOWNESS"));
    }
    if (room < (long)*ldc * *n) {
        free(spare);
        room = (long)*ldc * *n;
        spare = malloc(sizeof(double) * room);
    }
    double zero = 0.0;
    for (int i = 1; i < times; i++)
        real(ta, tb, m, n, k, alpha, a, lda, b, ldb, &zero, spare, ldc, la, lb);
    real(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, la, lb);
}
"""


def slow_down() -> int:
    """Make NumPy's products of this process slower, as this node's name says; how many times."""
    import numpy as np

    times = TIMES[os.uname().nodename]
    os.environ["MINGA_SLOWNESS"] = str(times)
    once = np.matmul

    def often(a: Any, b: Any, out: Any = None) -> Any:
        for _ in range(times - 1):
            out = once(a, b, out=out)
        return once(a, b, out=out)

    np.matmul = often  # type: ignore[assignment]
    return times


def shim(folder: Path) -> dict[str, str] | None:
    """The same for the Fortran routine that pdgemm calls: what ranks need in their environment; None without gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        print("no pdgemm: there is no gcc", file=sys.stderr)
        return None
    (folder / "slow.c").write_text(_SHIM)
    library = folder / "slow.so"
    subprocess.run([gcc, "-O2", "-shared", "-fPIC", "-o", str(library), str(folder / "slow.c"), "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def dask_setup(worker: Any) -> None:
    """What a worker of Dask calls when it starts (--preload)."""
    slow_down()

"""A product by Dask's workers: ``python dask_client.py ORDER``; prints JSON. Needs no minga."""

import json
import sys
import time

import dask.array as da
import numpy as np
from distributed import Client, wait


def main() -> None:
    order = json.loads(sys.argv[1])
    n, chunk = order["n"], order["chunk"]
    with Client(order["address"], timeout=120) as client:
        client.wait_for_workers(order["workers"], timeout=120)
        a, b = (matrix(seed, n, chunk) for seed in (0, 1))
        a, b = client.persist([a, b])  # the operands are on the workers before the clock starts
        wait([a, b])
        seconds = []
        for _ in range(order["rounds"]):
            began = time.perf_counter()
            c = client.persist(da.matmul(a, b))
            wait(c)
            seconds.append(time.perf_counter() - began)
            error = check(a, b, c, n)
            del c
        print(json.dumps({"seconds": seconds, "error_over_rounding": error}))


def matrix(seed: int, n: int, chunk: int) -> da.Array:
    return da.random.default_rng(seed).standard_normal((n, n), chunks=(chunk, chunk))


def check(a: da.Array, b: da.Array, c: da.Array, n: int) -> float:
    """A row of the product, over n eps |A_i| |B|."""
    row = (a[:1].compute() @ b.compute())[0]
    found = c[:1].compute()[0]
    return float(np.abs(found - row).max() / (n * np.finfo(float).eps * n))


if __name__ == "__main__":
    main()

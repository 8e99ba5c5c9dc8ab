"""Life as eight jnp.roll of bytes under jax.jit, on one core: `python jax_life.py SOUP.npy GENERATIONS ROUNDS`."""

import json
import os
import sys
import time

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

cells = np.load(sys.argv[1])
generations, rounds = int(sys.argv[2]), int(sys.argv[3])
AROUND = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]


def step(_, cell):
    n = sum(jnp.roll(cell, offsets, (0, 1)) for offsets in AROUND)
    return ((n | cell) == 3).astype(jnp.uint8)


run = jax.jit(lambda cell: jax.lax.fori_loop(0, generations, step, cell))
start = jnp.asarray(cells)
last = run(start).block_until_ready()
seconds = []
for _ in range(rounds):
    began = time.process_time()
    last = run(start).block_until_ready()
    seconds.append(time.process_time() - began)
print(json.dumps({"seconds": seconds, "generations": generations, "population": int(np.asarray(last, int).sum())}))

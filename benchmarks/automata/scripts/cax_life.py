"""Life in CAX on one core: `python cax_life.py SOUP.npy GENERATIONS ROUNDS`; prints seconds a round and population.

Compilation is not counted. The process keeps to one core.
"""

import json
import os
import sys
import time

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["JAX_PLATFORMS"] = "cpu"

import jax.numpy as jnp
import numpy as np
from cax.cs.life import Life
from flax import nnx

cells = np.load(sys.argv[1])
generations, rounds = int(sys.argv[2]), int(sys.argv[3])
birth, survival = Life.birth_survival_from_string("B3/S23")
system = Life(birth=birth, survival=survival, rngs=nnx.Rngs(0))
start = jnp.asarray(cells, jnp.float32)[..., None]
last = system(start, num_steps=generations).block_until_ready()
seconds = []
for _ in range(rounds):
    began = time.process_time()
    last = system(start, num_steps=generations).block_until_ready()
    seconds.append(time.process_time() - began)
print(json.dumps({"seconds": seconds, "generations": generations, "population": int(np.asarray(last).sum())}))

"""Common part of the programs of this benchmark: reading a problem, answering requests, storing fields; NumPy only."""

import json
import sys
import time
from pathlib import Path

import numpy as np


def problem():
    return json.loads(Path(sys.argv[1]).read_text())


def centres(given):
    """Coordinates of the cells by axis, as arrays that broadcast."""
    n = len(given["shape"])
    found = {}
    for axis, (name, cells) in enumerate(zip(given["axes"], given["shape"])):
        line = given["low"] + (np.arange(cells) + 0.5) * (given["high"] - given["low"]) / cells
        found[name] = line.reshape([-1 if a == axis else 1 for a in range(n)])
    return found


def initial(given):
    """Initial values by field."""
    names = {name: getattr(np, name) for name in ("exp", "cos", "sin", "tanh", "pi")}
    values = {}
    for name, text in given["initial"].items():
        value = eval(text, {"__builtins__": {}}, {**names, **centres(given)})  # texts of this benchmark only
        values[name] = np.ascontiguousarray(np.broadcast_to(value, given["shape"]))
    return values


def serve(given, run, fields):
    """Take the first steps, store the fields, answer requests; `run(n)` advances, `fields()` returns arrays by name."""
    run(given["first_steps"])
    np.savez(sys.argv[2], **fields())
    print("ready 1", flush=True)
    for line in sys.stdin:
        began = time.thread_time()
        run(int(line))
        print("seconds", time.thread_time() - began, flush=True)

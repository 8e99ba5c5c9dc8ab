"""Shots of Devito's examples as a server: a line of JSON, one of `benchmarks.seismics.forward.SHOTS`, is answered.

The answer has the processor's seconds of a shot after a first one, and the version.
"""

import contextlib
import json
import os
import sys
import time

os.environ.update(DEVITO_ARCH="gcc", DEVITO_LANGUAGE="openmp", DEVITO_LOGGING="ERROR")

import devito
import numpy as np
from examples.seismic import AcquisitionGeometry, Model
from examples.seismic.acoustic import AcousticWaveSolver
from examples.seismic.elastic import ElasticWaveSolver
from examples.seismic.tti import AnisotropicWaveSolver

SOLVERS = {"acoustic": AcousticWaveSolver, "elastic": ElasticWaveSolver, "tilted": AnisotropicWaveSolver}


def solver_of(shot):
    """The solver, on axes x, (y,) z."""
    shape, spacing = shot["cells"][::-1], (shot["spacing"],) * len(shot["cells"])
    depth = np.broadcast_to(np.arange(shape[-1]) * shot["gradient"] + shot["top"], shape).astype("f4") / 1e3
    entries = {"vp": np.ascontiguousarray(depth)}
    if shot["physics"] == "elastic":
        entries |= {"vs": entries["vp"] * np.float32(0.5), "b": np.full(shape, 0.5, "f4")}
    if shot["physics"] == "tilted":
        entries |= {n: np.full(shape, shot[n], "f4") for n in ("epsilon", "delta", "theta")}
    model = Model(
        origin=(0.0,) * len(shape), shape=shape, spacing=spacing, space_order=shot["order"], nbl=shot["layer"],
        bcs="mask" if shot["physics"] == "elastic" else "damp", dt=shot["dt"] * 1e3, **entries,
    )  # fmt: skip
    width = (shape[0] - 1) * shot["spacing"]
    receivers = np.full((shot["receivers"], len(shape)), width / 2)
    receivers[:, 0], receivers[:, -1] = np.linspace(0, width, shot["receivers"]), shot["spacing"]
    source = np.array([[width / 2] * (len(shape) - 1) + [shot["spacing"]]])
    geometry = AcquisitionGeometry(
        model, receivers, source, 0.0, shot["steps"] * shot["dt"] * 1e3, f0=shot["frequency"] / 1e3, src_type="Ricker"
    )
    return SOLVERS[shot["physics"]](model, geometry, space_order=shot["order"])


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints
    solvers = {}
    for line in sys.stdin:
        shot = json.loads(line)
        if line not in solvers:
            solvers[line] = solver_of(shot)
            solvers[line].forward()
        began = time.process_time()
        solvers[line].forward()
        answers.write(json.dumps({"seconds": time.process_time() - began, "version": devito.__version__}) + "\n")
        answers.flush()


with contextlib.suppress(BrokenPipeError):
    main()

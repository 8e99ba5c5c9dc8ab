"""Devito's acoustic example as a server: a line of JSON {"order", "steps"} is answered by its operators' seconds.

The solver is `examples.seismic.acoustic.AcousticWaveSolver`, kernel OT2, with damping layers. "forward" is a shot,
"saving" a shot that keeps all time levels, "reverse" the operator of the gradient, which reads them.
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

problem = json.loads(sys.argv[1])
SHAPE, SPACING, DT = problem["shape"], problem["spacing"], problem["dt"]


class Solver:
    """The solver of one order, whose operators are compiled by short runs, and tuned."""

    def __init__(self, order, steps):
        depth = np.arange(SHAPE[0]) * problem["gradient"] + problem["top"]
        vp = np.ascontiguousarray(np.broadcast_to(depth / 1e3, SHAPE[::-1])).astype("f4")  # axes x, z; km/s
        self.model = Model(
            vp=vp, origin=(0.0, 0.0), shape=SHAPE[::-1], spacing=(SPACING, SPACING), space_order=order,
            nbl=problem["layer"], bcs="damp", dt=DT * 1e3,
        )  # fmt: skip
        width = SHAPE[1] * SPACING
        source = np.array([[width / 2, SPACING]])
        receivers = np.stack(
            [np.linspace(0, width - SPACING, problem["receivers"]), np.full(problem["receivers"], SPACING)], 1
        )
        self.geometry = AcquisitionGeometry(
            self.model, receivers, source, 0.0, steps * DT * 1e3, f0=problem["frequency"] / 1e3, src_type="Ricker"
        )
        self.solver = AcousticWaveSolver(self.model, self.geometry, kernel="OT2", space_order=order)
        self.data, self.saved, _ = self.solver.forward(save=True)

    def seconds(self):
        """Seconds of processor time of each operator."""
        found = {}
        for name, run in {
            "forward": lambda: self.solver.forward(save=False),
            "saving": lambda: self.solver.forward(save=True, u=self.saved),
            "reverse": lambda: self.solver.jacobian_adjoint(self.data, self.saved),
        }.items():
            run()
            began = time.process_time()
            run()
            found[name] = time.process_time() - began
        return found


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints
    solvers = {}
    for line in sys.stdin:
        asked = json.loads(line)
        key = asked["order"], asked["steps"]
        if key not in solvers:
            solvers[key] = Solver(*key)
        answers.write(json.dumps(solvers[key].seconds() | {"version": devito.__version__}) + "\n")
        answers.flush()


with contextlib.suppress(BrokenPipeError):
    main()

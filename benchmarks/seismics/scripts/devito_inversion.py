"""Inversion with Devito's acoustic example; arguments: JSON of `benchmarks.seismics.section.Section`, two files.

The first file (.npz) has the true velocities, those of the start, and the mask. As in the authors' example of an
inversion, a gradient is a forward run that saves all time levels and the operator of the gradient for each shot; the
observed data are computed once. The search is SciPy's L-BFGS-B with the scaling of `minga.models.waves.Inversion`. The
second file gets the first gradient by the velocity, the processor's seconds of the search, its misfits and its models.
"""

import json
import os
import sys
import time

os.environ.update(DEVITO_ARCH="gcc", DEVITO_LANGUAGE="openmp", DEVITO_LOGGING="ERROR")

import devito
import numpy as np
from examples.seismic import AcquisitionGeometry, Model
from examples.seismic.acoustic import AcousticWaveSolver
from scipy.optimize import minimize

section = json.loads(sys.argv[1])
CELLS, LAYER, H, DT = section["cells"], section["damped"], section["spacing"], section["dt"]


def places(count):
    width = (CELLS[1] - 1) * H
    return np.array([[width * (k + 0.5) / count, section["depth"]] for k in range(count)], np.float32)


class Shots:
    """All shots: their data, and the misfit and its gradient by the velocity."""

    def __init__(self, true):
        self.model = Model(
            vp=np.ascontiguousarray(true.T) / 1e3, origin=(0.0, 0.0), shape=CELLS[::-1], spacing=(H, H),
            space_order=section["order"], nbl=LAYER, bcs="damp", dt=DT * 1e3,
        )  # fmt: skip
        geometry = AcquisitionGeometry(
            self.model, places(section["receivers"]), places(1), 0.0, section["steps"] * DT * 1e3,
            f0=section["frequency"] / 1e3, src_type="Ricker",
        )  # fmt: skip
        self.solver = AcousticWaveSolver(self.model, geometry, kernel="OT2", space_order=section["order"])
        self.source = geometry.src
        self.sources = places(section["shots"])
        self.records = [geometry.new_rec(name=f"data{k}") for k in range(section["shots"])]
        self.synthetic, self.residual = geometry.new_rec(name="synthetic"), geometry.new_rec(name="residual")
        for place, record in zip(self.sources, self.records, strict=True):
            self.source.coordinates.data[0, :] = place
            self.solver.forward(vp=self.model.vp, rec=record, src=self.source)
        self.vp = devito.Function(name="vp", grid=self.model.grid, space_order=section["order"], parameter=True)
        self.saved = devito.TimeFunction(
            name="u", grid=self.model.grid, save=geometry.nt, time_order=2, space_order=section["order"]
        )
        self.slope = devito.Function(name="grad", grid=self.model.grid)

    def __call__(self, values):
        """The misfit and its gradient by the velocity in m/s."""
        whole = np.pad(values.T / 1e3, LAYER, mode="edge")
        self.vp.data_with_halo[...] = np.pad(whole, section["order"], mode="edge")
        self.slope.data[...] = 0.0
        total = 0.0
        for place, record in zip(self.sources, self.records, strict=True):
            self.source.coordinates.data[0, :] = place
            self.solver.forward(vp=self.vp, save=True, rec=self.synthetic, src=self.source, u=self.saved)
            self.residual.data[...] = self.synthetic.data - record.data
            total += 0.5 * float(np.square(self.residual.data.astype(np.float64)).sum())
            self.solver.jacobian_adjoint(rec=self.residual, u=self.saved, vp=self.vp, grad=self.slope)
        slope = np.array(self.slope.data, np.float64) * (-2.0 / whole.astype(np.float64) ** 3) / 1e3
        for axis, n in enumerate(CELLS[::-1]):  # cells of layers repeat those at the ends
            slope = np.moveaxis(slope, axis, 0)
            inside = slope[LAYER : LAYER + n].copy()
            inside[0] += slope[:LAYER].sum(axis=0)
            inside[-1] += slope[LAYER + n :].sum(axis=0)
            slope = np.moveaxis(inside, 0, axis)
        return total, slope.T


def main():
    given = np.load(sys.argv[2])
    true, start, mask = given["true"], given["start"], given["mask"]
    shots = Shots(true)
    shots(start)  # compiles and tunes the operators
    first, slope = shots(start)
    size = start.max() * slope * mask
    unit = start.max() * 0.01 * np.linalg.norm(size) / np.abs(size).max()
    misfits, models = [first], []

    def evaluate(x):
        number, found = shots(start + unit * x.reshape(start.shape))
        return number / first, (unit / first * found * mask).ravel()

    def note(intermediate_result):
        misfits.append(float(intermediate_result.fun) * first)
        models.append((start + unit * intermediate_result.x.reshape(start.shape)).astype(np.float32))

    if not section["iterations"]:
        np.savez(sys.argv[3], gradient=slope, misfit=first)
        return
    low, high = ((section[end] - start.ravel().astype(float)) / unit for end in ("lowest", "highest"))
    most = section["iterations"]
    began = time.process_time()
    found = minimize(
        evaluate, np.zeros(start.size), jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)),
        callback=note, options={"maxiter": most, "maxfun": 20 * most, "ftol": 0.0, "gtol": 0.0},
    )  # fmt: skip
    seconds = time.process_time() - began
    np.savez(
        sys.argv[3], gradient=slope, misfit=first, seconds=seconds, misfits=misfits, models=models,
        evaluations=found.nfev, version=devito.__version__, records=[np.array(r.data) for r in shots.records],
    )  # fmt: skip


main()

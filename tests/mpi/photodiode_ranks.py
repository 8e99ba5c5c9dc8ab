"""Run on MPI ranks by test_photodiode_mpi.py: rank 0 prints the digests of devices with two axes as JSON."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import minga as mg
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.engine.comm import Comm
from minga.engine.model import Model

sys.path.insert(0, str(Path(__file__).parents[1]))
from physics.adapted_planes import PIN, POLYGON, ROUND

ADAPT = {"adapt": {"error": 0.2}}
WAVE = {"until": "20 ps", "light": {"kind": "step", "from": 0.0, "to": 1.0}}
CASES: dict[str, dict[str, Any]] = {
    "plane": PIN | {"mesh": PIN["mesh"] | ADAPT},
    "round": ROUND | {"mesh": ROUND["mesh"] | ADAPT},
    "polygon": POLYGON | {"mesh": POLYGON["mesh"] | ADAPT},
    "plane by iterations": PIN | {"mesh": PIN["mesh"] | ADAPT, "linear": "krylov"},
    "round in time": {k: v for k, v in ROUND.items() if k != "curves"} | {"mode": "transient", "transient": WAVE},
}
"""All adapt their meshes but the last, as transients do not."""


def made(name: str) -> Model:
    """The model of a case; every rank adapts the mesh by itself."""
    return load_model("photodiode", {"photodiode": CASES[name]}, GridSettings(), Path())


def digest(model: Model, comm: Comm, threads: int) -> str:
    """Digest of all observables and pictures after some steps of a run."""
    found = hashlib.sha256()
    with mg.Engine(model.layouts("slabs", comm.size), comm=comm, threads=threads) as engine:
        for slot, value in model.start_values():
            engine.set(slot, value)
        for register, number in model.registers.items():
            engine.write(register, number)
        for _ in range(min(model.steps, 4)):
            assert engine.run(model.step).ok
        assert model.observe is not None
        engine.run(model.observe)
        for name, item in sorted(model.observables.items()):
            for register in item if isinstance(item, tuple) else (item,):
                found.update(f"{name} {float(engine.read(register)).hex()}".encode())
        for name in model.output:
            whole = engine.gather(model.field(name))
            found.update(b"" if whole is None else np.asarray(whole).tobytes())
    return found.hexdigest()


def main() -> None:
    comm = mg.MPIComm()
    try:
        digests = {name: digest(made(name), comm, 1) for name in CASES}
    except BaseException as error:
        comm.abort(error)
        raise
    if comm.rank == 0:
        print(json.dumps(digests), flush=True)


if __name__ == "__main__":
    main()

"""DEVSIM as a process of its own: what it is given of a device, and what it finds."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.solver.coefficient_values import neutral_potential, on_edges
from minga.models.photodiode.structure.constants import CHARGE, REFERENCE_DENSITY, VACUUM
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.ionisation import EdgeIonisation

PYTHON = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"
PEER = Path(__file__).with_name("devsim_curve.py")
SPECTRA = Path(__file__).with_name("devsim_ac.py")
TRANSIENT = Path(__file__).with_name("devsim_transient.py")


@dataclass(frozen=True, slots=True)
class Asked:
    """What DEVSIM is asked for.

    volts       reached one after the other from 0, each curve from equilibrium
    step        V, the longest step of a ramp
    extended    in 128-bit floating point, all of it
    absolute, relative   errors at which its iterations end
    limit       iterations of a step at most
    budget      seconds of processor time after which no further voltage is begun
    """

    volts: tuple[float, ...]
    curves: tuple[str, ...] = ("dark",)
    ionisation: bool = False
    extended: bool = True
    step: float = 1.0
    absolute: float = 1e10
    relative: float = 1e-10
    limit: int = 40
    budget: float = 600.0


def version(python: Path) -> str | None:
    """Of DEVSIM, where this Python has it with its library; it is not imported, as that needs the library named."""
    words = "from importlib.metadata import version as v; v('scipy_openblas32'); print(v('devsim'))"
    if not python.exists():
        return None
    done = subprocess.run([python, "-c", words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def curves(device: Device, asked: Asked, python: Path) -> dict[str, Any]:
    """Return the output of `devsim_curve.py`."""
    return _printed(PEER, device, asked, python, {})


def spectra(device: Device, asked: Asked, frequencies: Sequence[float], python: Path) -> list[dict[str, Any]]:
    """Return the output of `devsim_ac.py`: the admittance at these frequencies, at each voltage."""
    found: list[dict[str, Any]] = _printed(SPECTRA, device, asked, python, {"frequencies": list(frequencies)})["rows"]
    return found


def transient(
    device: Device, asked: Asked, method: str, step: float, sources: Sequence[Sequence[tuple[float, float]]],
    python: Path,
) -> dict[str, Any]:  # fmt: skip
    """Return the output of `devsim_transient.py`: currents in the dark and after each step, which are given as
    light and voltage of each of its solutions; seconds."""
    return _printed(TRANSIENT, device, asked, python, {"method": method, "length": step, "sources": sources})


def _printed(program: Path, device: Device, asked: Asked, python: Path, more: Mapping[str, object]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store, job = Path(folder) / "device.npz", Path(folder) / "job.json"
        np.savez(store, **numbers(device, asked.ionisation))  # type: ignore[arg-type]
        job.write_text(json.dumps({"device": str(store), **asdict(asked), **more}))
        done = subprocess.run([python, program, job], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"DEVSIM ended with {done.returncode}:\n{done.stderr}\n{done.stdout[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def numbers(device: Device, ionisation: bool) -> dict[str, NDArray[np.float64] | float]:
    """All numbers of a device with one axis: at its nodes, and on the edges between them. Units are cm, V, s."""
    inner = slice(1, -1)
    lengths = device.lengths[0][inner]
    found: dict[str, NDArray[np.float64] | float] = {
        "x": positions(lengths),
        "charge": CHARGE,
        "thermal": device.thermal_voltage,
        "reference": REFERENCE_DENSITY,
        "neutral": neutral_potential(device),
        "doping": device.doping,
        "tn": device.theta_n,
        "tp": device.theta_p,
        "nie": device.nie,
        "rate_n": 1.0 / device.tau_n,
        "rate_p": 1.0 / device.tau_p,
        "radiative": device.radiative,
        "auger_n": device.auger_n,
        "auger_p": device.auger_p,
        "generation": device.generation,
        "permittivity": on_edges(device.permittivity, 0)[inner] * VACUUM,
        "mobility_n": on_edges(device.mobility_n, 0)[inner],
        "mobility_p": on_edges(device.mobility_p, 0)[inner],
    }
    for carrier, given in (("n", device.ionisation_n[0]), ("p", device.ionisation_p[0])):
        none = np.zeros_like(lengths), np.ones_like(lengths)
        found[f"a_{carrier}"], found[f"b_{carrier}"] = _simple(given, inner) if ionisation else none
    return found


def positions(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of nodes, from one end of the shortest edge, where differences of positions have to be exact."""
    first = int(np.argmin(lengths))
    below = -np.cumsum(lengths[:first][::-1])[::-1]
    return np.concatenate((below, [0.0], np.cumsum(lengths[first:])))


def _simple(given: EdgeIonisation, inner: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """a and b of coefficients a exp(-b/E)."""
    if given.pieces != 1 or (given.m != 1.0).any() or (given.power != 0.0).any():
        raise ValueError("coefficients other than a exp(-b/E) are not written for DEVSIM")
    return given.a[0][inner], given.b[0][inner]

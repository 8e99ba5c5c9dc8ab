"""Band edges and quasi-Fermi levels of a solved device in eV, relative to the Fermi level of the cathode."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from minga.compile import portable
from minga.engine.model import Model
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.problem import Curve, suffix
from minga.models.photodiode.structure.constants import REFERENCE_DENSITY
from minga.models.photodiode.structure.device import Device
from minga.space.box import Box
from minga.space.field import Field

__all__ = ["BANDS", "with_bands"]

BANDS = ("conduction_band", "valence_band", "electron_fermi", "hole_fermi")
"""Names of the fields, in eV; those of the lit curve end in "_lit"."""
_STATE = ("potential", "electron_level", "hole_level")
_WORDS = (
    "edge of the conduction band",
    "edge of the valence band",
    "quasi-Fermi level of electrons",
    "quasi-Fermi level of holes",
)


def with_bands(model: Model, device: Device, curves: Sequence[Curve], conditions: str | None = None) -> Model:
    """Return the model with the bands of each curve added to its output, recorded at the end of its step.

    `conditions` are words that describe the light in place of those of the curve's name.
    """
    named = [f"{name}{suffix(curve)}" for curve in curves for name in _STATE]
    if not {item.name for item in model.fields}.issuperset(named):
        return model
    edges = tuple(Field(f"flat {name}", device.grid, unit="eV") for name in BANDS[:2])
    fields: list[Field] = list(edges)
    for curve in curves:
        end = suffix(curve)
        light = (", lit" if end else ", in the dark") if conditions is None else conditions
        bands = tuple(
            Field(f"{name}{end}", device.grid, unit="eV", description=f"{words}{light}")
            for name, words in zip(BANDS, _WORDS, strict=True)
        )
        state = [model.field(f"{name}{end}") for name in _STATE]
        anode = model.step.apply(_level(device.grid.ndim), state[1], region=_node_of(device, "anode"))
        model.step.apply(_bands(device.grid.ndim), state, list(edges), list(bands), anode=anode)
        fields += bands
    vt = device.thermal_voltage
    flat = {
        edges[0]: vt * (portable.log(device.nc / REFERENCE_DENSITY) - device.theta_n),
        edges[1]: -vt * (portable.log(device.nv / REFERENCE_DENSITY) + device.theta_p),
    }
    return replace(
        model,
        fields=(*model.fields, *fields),
        initial={**model.initial, **flat},
        output=(*model.output, *(f.name for f in fields[2:])),
    )


def _node_of(device: Device, name: str) -> Box:
    """Return the first node of a contact."""
    node = tuple(int(k) for k in np.argwhere(device.terminal(name).nodes)[0])
    return Box(node, tuple(k + 1 for k in node))


@functools.cache
def _level(ndim: int) -> Kernel:
    """Return the kernel of the electron level at a contact: at the anode, the voltage between the contacts."""

    def level(electron: CellReader) -> Reduced:
        return mg.max(electron[(0,) * ndim])  # a maximum over one node: unlike a sum, it lets layouts cut rows anywhere

    return Kernel(level, name="level at a contact")


@functools.cache
def _bands(ndim: int) -> Kernel:
    """Return the kernel of energies from potentials: electron energies fall where potentials rise."""
    here = (0,) * ndim

    def energies(
        state: Sequence[CellReader], flat: Sequence[CellReader], out: Sequence[CellReader], *, anode: Node
    ) -> None:
        potential, electron, hole = (item[here] for item in state)
        out[0][here] = flat[0][here] - potential
        out[1][here] = flat[1][here] - potential
        out[2][here] = -electron
        out[3][here] = -(hole + anode)

    return Kernel(energies, name="bands")

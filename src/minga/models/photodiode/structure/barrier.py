"""Schottky barriers in a field: lowered by the image force, and thin enough to tunnel through."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from minga.compile import portable
from minga.models.photodiode.structure.constants import CHARGE, ELECTRON_MASS, PLANCK, VACUUM
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.tunnelling import trap_field

__all__ = ["Barrier", "Heights", "barriers_of", "image_lowering", "tunnelling_energy"]


@dataclass(frozen=True, slots=True)
class Heights:
    """Numbers of a Schottky contact whose barriers depend on the field; entries may also be fields.

    Attributes
    ----------
    slope
        Field per potential difference to the next node, V/cm per kT/q.
    image
        Lowering by the image force at 1 V/cm, kT; 0 if it is left out.
    electrons, holes
        Barrier of each carrier, kT, and F of tunnelling through it, V/cm, see `structure.tunnelling`; empty if carriers
        do not tunnel.
    """

    slope: Any
    image: Any
    electrons: tuple[Any, ...]
    holes: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """A Schottky contact whose barriers depend on the field.

    Attributes
    ----------
    terminal
        Name of the contact.
    row
        Row of its nodes.
    inward
        1 if the device lies above it along x, -1 if below.
    heights
        Its numbers.
    """

    terminal: str
    row: int
    inward: int
    heights: Heights


def image_lowering(field: float, permittivity: float) -> float:
    """Return sqrt(q E / (4 pi eps)) in V at a field in V/cm."""
    return math.sqrt(CHARGE * field / (4.0 * math.pi * permittivity * VACUUM))


def tunnelling_energy(density: float, mass: float, permittivity: float) -> float:
    """Return E00 = (q hbar/2) sqrt(N/(m eps)) in eV at a doping in 1/cm3 (F. A. Padovani, R. Stratton 1966).

    Electrons are emitted over the barrier where E00 is small against kT, and tunnel where it is not.
    """
    hbar = PLANCK / (2.0 * math.pi)
    return 0.5 * hbar * math.sqrt(1e6 * density / (mass * ELECTRON_MASS * 1e2 * permittivity * VACUUM))


def barriers_of(device: Device) -> tuple[Barrier, ...]:
    """Return the contacts of a device whose barriers depend on the field."""
    found = []
    for terminal in device.terminals:
        if not terminal.image_force and terminal.tunnelling_mass is None:
            continue
        assert terminal.barrier is not None
        top = bool(terminal.nodes[0].any())
        row = 0 if top else device.grid.shape[0] - 1
        node = (row, *([0] * (device.grid.ndim - 1)))
        vt = device.thermal_voltage
        gap = vt * float(
            portable.log(device.nc[node]) + portable.log(device.nv[node]) - 2 * portable.log(device.nie[node])
        )
        sides = [
            () if terminal.tunnelling_mass is None or height <= 0.0
            else (height / vt, trap_field(height, terminal.tunnelling_mass))
            for height in (terminal.barrier, gap - terminal.barrier)
        ]  # fmt: skip
        heights = Heights(
            vt / float(device.lengths[0][1 if top else -2]),
            image_lowering(1.0, float(device.permittivity[node])) / vt if terminal.image_force else 0.0,
            *sides,
        )
        found.append(Barrier(terminal.name, row, 1 if top else -1, heights))
    return tuple(found)

"""What a device is made of, as people say it: layers from the anode to the cathode, and boxes of something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.structure.materials import Material

__all__ = ["Contact", "Layer", "LayerOf", "Light", "Region", "Side", "Stack"]

Floats = NDArray[np.float64]
Side = Literal["top", "bottom"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer.

    material    its semiconductor, or what it is at a fraction (0 to 1) of the layer's depth
    thickness   cm
    doping      donors minus acceptors where the layer begins and where it ends, 1/cm3, linear between
    impurities  donors and acceptors together, likewise; None where there are no more than the doping says
    rows        nodes, where the mesh is given by rows
    changes     properties that differ from the material's: tau_n, tau_p, mobility_n, mobility_p, absorption (1/cm)
    ionisation  name of a set, in place of the material's; "none" for none
    """

    name: str
    material: Material | Callable[[float], Material]
    thickness: float
    doping: tuple[float, float]
    rows: int | None = None
    changes: Mapping[str, float] = field(default_factory=dict)
    ionisation: str | None = None
    impurities: tuple[float, float] | None = None

    def at(self, fraction: float) -> Material:
        """Its semiconductor at a fraction of its depth."""
        return self.material if isinstance(self.material, Material) else self.material(fraction)


@dataclass(frozen=True, slots=True)
class Region:
    """A box of other doping in a device with two axes: x and y from where to where, cm."""

    name: str
    x: tuple[float, float]
    y: tuple[float, float]
    doping: float


@dataclass(frozen=True, slots=True)
class Contact:
    """A contact on the first row (`at` "top") or the last one ("bottom").

    y        from where to where it reaches along y, cm; None: all of the row
    barrier  of a Schottky contact for electrons, eV
    """

    name: str
    at: Side
    y: tuple[float, float] | None = None
    kind: Literal["ohmic", "schottky"] = "ohmic"
    barrier: float | None = None


@dataclass(frozen=True, slots=True)
class Light:
    """What falls in: `power` W/cm2 of a wavelength in nm, or `flux` photons a cm2 and second, from one side."""

    wavelength: float
    power: float = 0.0
    flux: float | None = None
    side: Literal["cathode", "anode"] = "cathode"


@dataclass(frozen=True, slots=True)
class LayerOf:
    """A layer in a device: where it begins and ends (cm), and its first and last node along x."""

    name: str
    material: str
    start: float
    end: float
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Stack:
    """All that a device is made of but its mesh. `emission`: thermionic, where carriers cross barriers."""

    layers: tuple[Layer, ...]
    contacts: tuple[Contact, ...]
    regions: tuple[Region, ...] = ()
    temperature: float = 300.0
    light: Light | None = None
    statistics: Literal["boltzmann", "fermi-dirac"] = "boltzmann"
    mobility: Literal["constant", "doping", "field", "doping-field"] = "constant"
    recombination: tuple[str, ...] = ("srh", "radiative", "auger")
    ionisation: Mapping[str, str] = field(default_factory=dict)
    emission: bool = False

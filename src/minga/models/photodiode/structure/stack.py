"""Structure of a device as described by a user: layers from the anode to the cathode, and regions of other doping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.structure.beam import Beam
from minga.models.photodiode.structure.indices import Index
from minga.models.photodiode.structure.materials import Material
from minga.models.photodiode.structure.pairs import Pairs
from minga.models.photodiode.structure.regions import Polygon, Region

__all__ = ["Coating", "Contact", "Layer", "LayerOf", "Light", "Side", "Stack", "Substrate", "Surface"]

Floats = NDArray[np.float64]
Side = Literal["top", "bottom"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer.

    Parameters
    ----------
    name
        The name.
    material
        Semiconductor of the layer, or a function that returns it at a fraction (0 to 1) of the layer's depth.
    thickness
        Thickness, cm.
    doping
        Donors minus acceptors at the start and at the end of the layer, 1/cm3, linear between them.
    rows
        Number of nodes, if the mesh is specified by rows.
    changes
        Properties that differ from the material's: tau_n, tau_p, mobility_n, mobility_p, absorption (1/cm).
    ionisation
        Name of a coefficient set that replaces the material's; "none" for no ionisation.
    impurities
        Donors plus acceptors, likewise; None if they equal the absolute value of the doping.
    index
        Refractive index that replaces the material's.
    """

    name: str
    material: Material | Callable[[float], Material]
    thickness: float
    doping: tuple[float, float]
    rows: int | None = None
    changes: Mapping[str, float] = field(default_factory=dict)
    ionisation: str | None = None
    impurities: tuple[float, float] | None = None
    index: Index | None = None

    def at(self, fraction: float) -> Material:
        """Return the semiconductor at a fraction of the layer's depth.

        Parameters
        ----------
        fraction
            The fraction of the depth, 0 to 1.

        Returns
        -------
        Material
            The material.
        """
        return self.material if isinstance(self.material, Material) else self.material(fraction)


@dataclass(frozen=True, slots=True)
class Contact:
    """A contact on the first row (`at` "top") or the last one ("bottom").

    Parameters
    ----------
    name
        The name.
    at
        ``"top"`` or ``"bottom"``.
    y
        Range along y, cm; None for the whole row.
    kind
        ``"ohmic"`` or ``"schottky"``.
    barrier
        Barrier of a Schottky contact for electrons, eV.
    recombination
        Velocity of recombination of minority carriers at an ohmic contact, cm/s; None: infinite.
    image_force
        Whether the field lowers the barrier of a Schottky contact by the image force.
    tunnelling
        Whether carriers tunnel through the barrier of a Schottky contact (thermionic-field emission).
    """

    name: str
    at: Side
    y: tuple[float, float] | None = None
    kind: Literal["ohmic", "schottky"] = "ohmic"
    barrier: float | None = None
    recombination: float | None = None
    image_force: bool = False
    tunnelling: bool = False


@dataclass(frozen=True, slots=True)
class Surface:
    """A plane at which carriers recombine.

    Parameters
    ----------
    normal
        Axis normal to the plane.
    at
        Its position along that axis, cm.
    span
        Range along the other axis, cm; None for all.
    velocity_n, velocity_p
        Velocities of recombination of electrons and holes, cm/s.
    """

    normal: Literal["x", "y"]
    at: float
    span: tuple[float, float] | None
    velocity_n: float
    velocity_p: float


@dataclass(frozen=True, slots=True)
class Coating:
    """A film in front of a device, which carries no current.

    Parameters
    ----------
    index
        Refractive index.
    thickness
        Thickness, cm.
    """

    index: Index
    thickness: float


@dataclass(frozen=True, slots=True)
class Substrate:
    """A wafer too thick for interference, which carries no current and hardly absorbs.

    Parameters
    ----------
    index
        Refractive index.
    thickness
        Thickness, cm.
    at
        ``"far"``: behind the device, seen from the light; ``"near"``: before it, under the coatings.
    """

    index: Index
    thickness: float
    at: Literal["far", "near"] = "far"


@dataclass(frozen=True, slots=True)
class Light:
    """Light incident from one side: `power` in W/cm2 at a wavelength in nm, or `flux` in photons per cm2 and second.

    Both are per area of the side that is lit; of a Gaussian beam they are those in its middle.

    Parameters
    ----------
    wavelength
        Wavelength, nm.
    power
        Power density, W/cm2.
    flux
        Photons per cm2 and second, in place of `power`.
    side
        The contact on whose side the light enters, ``"cathode"`` or ``"anode"``, or that side: ``"top"`` or
        ``"bottom"``; or, across the layers of a device with two axes, ``"left"``, from y = 0, or ``"right"``.
    optics
        ``"beer-lambert"``: nothing is reflected, and the light decays exponentially; ``"transfer-matrix"``: it is
        reflected at every interface and interferes.
    coatings
        Films in front of the device, from the outside inwards, for ``"transfer-matrix"``, as the following.
    ambient
        Refractive index of the medium from which the light comes.
    backing
        Refractive index of what lies behind the far side; None: that of the last layer, which then has no far side, or
        air behind a substrate there.
    substrate
        A thick wafer, or None.
    beam
        The part of the side that is lit: along y, or along x for light from the left or the right.
    """

    wavelength: float
    power: float = 0.0
    flux: float | None = None
    side: Literal["cathode", "anode", "top", "bottom", "left", "right"] = "cathode"
    optics: Literal["beer-lambert", "transfer-matrix"] = "beer-lambert"
    coatings: tuple[Coating, ...] = ()
    ambient: float = 1.0
    backing: Index | None = None
    substrate: Substrate | None = None
    beam: Beam = field(default_factory=Beam)

    @property
    def lateral(self) -> bool:
        """True for light across the layers."""
        return self.side in ("left", "right")


@dataclass(frozen=True, slots=True)
class LayerOf:
    """A layer in a device: its start and end, cm, and its first and last node along x."""

    name: str
    material: str
    start: float
    end: float
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Stack:
    """Complete structure of a device without its mesh; `emission`: thermionic emission limits fluxes at barriers.

    Parameters
    ----------
    layers
        The layers, from the anode to the cathode.
    contacts
        The contacts.
    regions
        Rectangles and polygons of other doping.
    temperature
        Temperature, K.
    light
        The light; None: dark.
    statistics
        ``"boltzmann"`` or ``"fermi-dirac"``.
    mobility
        The model of mobilities: ``"constant"``, or dependent on doping, field or both.
    recombination
        The kinds of recombination: ``"srh"``, ``"radiative"``, ``"auger"``.
    ionisation
        Names of sets of ionisation coefficients by the name of a material, in place of the material's own.
    emission
        Whether thermionic emission limits currents across barriers.
    band_to_band
        Names of sets of band-to-band tunnelling by the name of a material, in place of the material's own; None: off.
    trap_assisted
        Whether carriers tunnel to traps.
    surfaces
        Planes at which carriers recombine.
    gap_narrowing
        Whether dopants narrow the gap.
    incomplete_ionisation
        Whether dopants may keep their carriers.
    pairs
        A table of the pairs generated, in place of light.
    """

    layers: tuple[Layer, ...]
    contacts: tuple[Contact, ...]
    regions: tuple[Region | Polygon, ...] = ()
    temperature: float = 300.0
    light: Light | None = None
    statistics: Literal["boltzmann", "fermi-dirac"] = "boltzmann"
    mobility: Literal["constant", "doping", "field", "doping-field"] = "constant"
    recombination: tuple[str, ...] = ("srh", "radiative", "auger")
    ionisation: Mapping[str, str] = field(default_factory=dict)
    emission: bool = False
    band_to_band: Mapping[str, str] | None = None
    trap_assisted: bool = False
    surfaces: tuple[Surface, ...] = ()
    gap_narrowing: bool = False
    incomplete_ionisation: bool = False
    pairs: Pairs | None = None

    def from_high(self, light: Light) -> bool:
        """Return whether light enters at the last row.

        Parameters
        ----------
        light
            The light.

        Returns
        -------
        bool
            True if it enters at the last row, False if at the first one.
        """
        places = {"anode": "top", "cathode": "bottom"} | {contact.name: contact.at for contact in self.contacts}
        return places.get(light.side, light.side) == "bottom"

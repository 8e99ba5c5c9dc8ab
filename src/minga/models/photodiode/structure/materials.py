"""Material parameters of semiconductors at 300 K."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from minga.models.photodiode.structure.heavy import JainRoulston, Level, Slotboom
from minga.models.photodiode.structure.indices import Index
from minga.models.photodiode.structure.ionisation import IonisationSet
from minga.models.photodiode.structure.tunnelling import TunnellingSet

__all__ = ["Absorption", "CaugheyThomas", "Material", "Saturation"]


@dataclass(frozen=True, slots=True)
class CaugheyThomas:
    """Mobility that falls with the doping N: min + (max - min)/(1 + (N/reference)^exponent), cm2/Vs.

    At a temperature T, max is multiplied by (300 K/T)^max_exponent and reference by (T/300 K)^reference_exponent
    (Sotoodeh, Khalid, Rezazadeh 2000). A max_exponent of None means that the dependence is unknown.
    """

    max: float
    min: float
    reference: float
    exponent: float
    max_exponent: float | None = None
    reference_exponent: float = 0.0


@dataclass(frozen=True, slots=True)
class Saturation:
    """Mobility that falls with the field: mu/(1 + (mu E/velocity)^exponent)^(1/exponent), velocities in cm/s.

    At a temperature T the velocities are multiplied by (300 K/T)^heat, with one exponent each for electrons and holes;
    None means that the dependence is unknown.
    """

    velocity_n: float
    velocity_p: float
    exponent_n: float = 1.0
    exponent_p: float = 1.0
    heat: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Absorption:
    """Absorption coefficients, 1/cm, at ascending wavelengths, nm; their logarithms are interpolated linearly."""

    wavelengths: tuple[float, ...]
    coefficients: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """A semiconductor at 300 K.

    Attributes
    ----------
    gap, affinity
        Band gap and electron affinity, eV.
    permittivity
        Relative permittivity.
    nc, nv
        Effective densities of states, 1/cm3.
    ni
        Intrinsic density, 1/cm3, if given; otherwise it follows from gap, nc and nv.
    mobility_n, mobility_p
        Constant low-field mobilities, cm2/Vs.
    tau_n, tau_p
        Shockley-Read-Hall lifetimes, s.
    radiative
        Coefficient of radiative recombination, cm3/s.
    auger_n, auger_p
        Auger coefficients, cm6/s.
    solubility_n, solubility_p
        Largest meaningful doping, 1/cm3.
    caughey_thomas_n, caughey_thomas_p, saturation
        Parameters of the mobility models, if known.
    absorption
        Absorption of light, where it differs from that of the index.
    index
        Refractive index, if known.
    ionisation
        Set of ionisation coefficients, or the name of one.
    varshni
        (alpha in eV/K, beta in K) of Eg(T) = Eg(0) - alpha T^2/(T + beta), if known.
    alloy
        Name and composition of an alloy whose gap depends on the temperature as `structure.vurgaftman` says.
    tunnelling
        Set of band-to-band tunnelling, the name of one, or "kane" for Kane's formula of direct gaps.
    tunnelling_mass
        Mass of tunnelling carriers, relative to that of the electron.
    narrowing
        Narrowing of the gap by dopants, if known.
    donor, acceptor
        Levels of the dopants, if known.
    sources
        Source of each value, by the name of the attribute.
    """

    name: str
    gap: float
    affinity: float
    permittivity: float
    nc: float
    nv: float
    mobility_n: float
    mobility_p: float
    tau_n: float
    tau_p: float
    radiative: float = 0.0
    auger_n: float = 0.0
    auger_p: float = 0.0
    ni: float | None = None
    solubility_n: float | None = None
    solubility_p: float | None = None
    caughey_thomas_n: CaugheyThomas | None = None
    caughey_thomas_p: CaugheyThomas | None = None
    saturation: Saturation | None = None
    absorption: Absorption | None = None
    index: Index | None = None
    ionisation: str | IonisationSet | None = None
    varshni: tuple[float, float] | None = None
    alloy: tuple[str, float] | None = None
    tunnelling: str | TunnellingSet | None = None
    tunnelling_mass: float | None = None
    narrowing: Slotboom | JainRoulston | None = None
    donor: Level | None = None
    acceptor: Level | None = None
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

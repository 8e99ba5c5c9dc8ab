"""Schema of a case's table [electrodeposition], which `minga.models.electrodeposition.case` converts into a Problem."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.models.electrodeposition.protocols.settings import PartSettings
from minga.models.electrodeposition.quantities import quantity

__all__ = [
    "CONDITION_FORM",
    "ConditionSettings",
    "ConstantSettings",
    "ElectrodepositionSettings",
    "FingerSettings",
    "GrowthSettings",
    "RelaxationSettings",
    "SemiImplicitSettings",
    "SolidSettings",
    "SolutionSettings",
    "SpeciesSettings",
    "StretchSettings",
    "TimeSettings",
]

_STRICT = ConfigDict(extra="forbid", frozen=True)

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Place = Annotated[float, BeforeValidator(lambda v: quantity(v, "length"))]
Length = Annotated[Place, Field(gt=0)]
Concentration = Annotated[float, BeforeValidator(lambda v: quantity(v, "concentration")), Field(ge=0)]
Voltage = Annotated[float, BeforeValidator(lambda v: quantity(v, "potential"))]
Current = Annotated[float, BeforeValidator(lambda v: quantity(v, "current"))]
Time = Annotated[float, BeforeValidator(lambda v: quantity(v, "time")), Field(gt=0)]
Axis = Literal["y", "z", "x"]
Solid = Literal["cathode", "anode", "insulator"]

CONDITION_FORM: Final = (
    'write "held", "sink", "reversible", "butler-volmer", "balance" or "blocked" for the metal\'s ion, "bath" to hold '
    "all ions, or a table with an entry for each ion that passes: {Zn = {held = 100.0}, H = {flux = 1e-5}}"
)
"""Advice on how to write the conditions at an electrode."""
STRETCH_FORM: Final = 'write stretched = {y = "cosine"}, {y = {geometric = 1.1}} or {y = {geometric = 1.1, at = "low"}}'
"""Advice on how to write stretched axes."""


class SolutionSettings(BaseModel):
    """Measured properties of a solution of one salt by its concentration, as lists or in a CSV file with a header."""

    model_config = _STRICT

    file: Annotated[
        str | None, Field(description='CSV file with a column for each of the other entries: file = "copper.csv"')
    ] = None
    concentration: Annotated[
        tuple[Concentration, ...] | None, Field(description="concentrations of the salt in increasing order, mol/m3")
    ] = None
    diffusivity: Annotated[tuple[Number, ...] | None, Field(description="diffusivities of the salt, m2/s")] = None
    conductivity: Annotated[tuple[Number, ...] | None, Field(description="conductivities, S/m")] = None
    transference: Annotated[
        tuple[Number, ...] | None, Field(description="fractions of the current that the cation carries")
    ] = None
    factor: Annotated[
        tuple[Number, ...] | None,
        Field(description="thermodynamic factors 1 + d ln g / d ln c of activities g c; by default 1"),
    ] = None


class SpeciesSettings(BaseModel):
    """A kind of ion: `{name = "Zn", charge = 2, diffusivity = 0.715e-9, bulk = 100.0, expansion = 0.8e-4}`."""

    model_config = _STRICT

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_+-]*$", description="letters and digits")]
    charge: Annotated[int, Field(ge=-6, le=6, description="charge number: charge = 2")]
    diffusivity: Annotated[Number, Field(description="m2/s: diffusivity = 0.715e-9")]
    bulk: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "concentration"))],
        Field(description='bulk concentration, mol/m3 or with a unit: bulk = "0.1 M"'),
    ]
    expansion: Annotated[Number, Field(description="(1/rho) d rho/d c, m3/mol: expansion = 0.8e-4")] = 0.0
    solubility: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "concentration")), Field(gt=0)] | None,
        Field(description="concentration above which its salt is oversaturated, which the end of a run then tells"),
    ] = None


class StretchSettings(BaseModel):
    """Cells whose widths grow by a factor from the ends of an axis: `{geometric = 1.1, at = "low"}`."""

    model_config = _STRICT

    geometric: Annotated[float, Field(gt=1, le=3, description="width of a cell over that of the previous cell")]
    at: Annotated[Literal["both", "low", "high"], Field(description='where cells are thin: at = "low"')] = "both"


class ConditionSettings(BaseModel):
    """The condition for an ion at a metal: one of `held`, `flux`, `exchange` or `reversible`."""

    model_config = _STRICT

    held: Annotated[Concentration | None, Field(description="mol/m3 at the metal: {held = 100.0}")] = None
    flux: Annotated[
        Number | Literal["balance"] | None,
        Field(description='mol/m2/s into the solution, or "balance" for what the other electrode removes'),
    ] = None
    exchange: Annotated[
        Annotated[Current, Field(gt=0)] | None,
        Field(description="i0 of Butler-Volmer kinetics, A/m2: {exchange = 30.0}"),
    ] = None
    reversible: Annotated[
        Annotated[Concentration, Field(gt=0)] | Literal["bulk"] | None,
        Field(description='equilibrium with the metal: mol/m3 at which the potentials agree, or "bulk"'),
    ] = None
    reference: Annotated[
        Annotated[Concentration, Field(gt=0)] | None,
        Field(description="with exchange: reference concentration, mol/m3; by default that of the bulk"),
    ] = None
    equilibrium: Annotated[Voltage | None, Field(description="with exchange: equilibrium potential, V")] = None
    transfer: Annotated[
        float | None, Field(gt=0, lt=1, description="with exchange: transfer coefficient, 0.5 by default")
    ] = None
    electrons: Annotated[
        int | None, Field(ge=1, description="with exchange: number of electrons; by default the ion's charge")
    ] = None
    tafel: Annotated[
        bool | None, Field(description="with exchange: whether the reaction runs in one direction only, as hydrogen's")
    ] = None
    order: Annotated[
        float | None, Field(gt=0, le=4, description="with exchange: order of the reaction in the ion, 1 by default")
    ] = None


class FingerSettings(BaseModel):
    """A rod of metal standing on the cathode: `{place = {x = "1 mm"}, length = "2 mm", size = "200 um"}`."""

    model_config = _STRICT

    length: Annotated[Length, Field(description='from the cathode to the tip: length = "2 mm"')]
    size: Annotated[Length, Field(description='width: size = "200 um"')]
    place: Annotated[
        dict[Literal["z", "x"], Place],
        Field(description='position of its axis: place = {x = "1 mm"}; by default the middle'),
    ] = {}
    form: Annotated[Literal["square", "round"], Field(description='cross-section: form = "round"')] = "square"


class SolidSettings(BaseModel):
    """A solid: a `box`, an `image` (PNG; dark is solid, the first row lies at the cathode), or a `file` (.npy)."""

    model_config = _STRICT

    kind: Annotated[
        Solid | None, Field(description='kind = "cathode", "anode" or "insulator"; a file may hold 0 to 3 instead')
    ] = None
    box: Annotated[
        dict[Axis, Annotated[tuple[Place, ...], Field(min_length=2, max_length=2)]] | None,
        Field(description='extent along each axis: box = {y = [0, "2 mm"], x = ["1 mm", "1.2 mm"]}'),
    ] = None
    image: Annotated[str | None, Field(description='PNG file that covers the whole plane: image = "dendrite.png"')] = (
        None
    )
    plane: Annotated[
        Literal["yx", "yz", "zx"] | None, Field(description='axes of the rows and columns of an image: plane = "yx"')
    ] = None
    across: Annotated[
        tuple[Place, ...] | None,
        Field(
            min_length=2, max_length=2, description='extent of an image along the other axis: across = [0, "100 um"]'
        ),
    ] = None
    file: Annotated[str | None, Field(description='array of the grid\'s shape: file = "deposit.npy"')] = None


class GrowthSettings(BaseModel):
    """Table [electrodeposition.growth]: growth of the deposit."""

    model_config = _STRICT

    porosity: Annotated[
        float | None,
        Field(ge=0, lt=1, description="fraction of the deposit that is not metal; by default that of charge balance"),
    ] = None
    exponent: Annotated[
        float, Field(ge=0, le=10, description="cells are drawn with probabilities proportional to flux ** exponent")
    ] = 1.0
    volume: Annotated[
        Positive | None, Field(description="m3 of solid metal per mole of the ion; known for Zn and Cu")
    ] = None
    radius: Annotated[
        Length | None, Field(description="radius over which fluxes are averaged: about the width of branches")
    ] = None
    onset: Annotated[
        float | None,
        Field(gt=0, lt=1, description="compact until the cathode's concentration is below this fraction of the bulk's"),
    ] = None
    surface_energy: Annotated[
        Positive | None,
        Field(description="J/m2, by which curvature shifts the equilibrium potential of the metal; needs a radius"),
    ] = None
    grain: Annotated[
        Annotated[Length, Field(gt=0)] | None,
        Field(description="width of the blocks of cells that share their random numbers; by default a cell"),
    ] = None


class TimeSettings(BaseModel):
    """Table [electrodeposition.time]: duration and time steps, in seconds, or in units of L2/D in scaled cases."""

    model_config = _STRICT

    end: Annotated[
        Time | None, Field(description='duration of the run: end = 20.0, or "5 min"; by default that of the program')
    ] = None
    every: Annotated[
        Time | None,
        Field(description="time covered by one step of the run, which takes as many time steps as it needs"),
    ] = None
    first: Annotated[
        Time | None, Field(description="length of the first time step, or of all of them if not adaptive")
    ] = None
    adaptive: Annotated[bool, Field(description="whether the lengths of time steps follow the error")] = True
    tolerance: Annotated[float, Field(gt=0, lt=1, description="relative error of one time step")] = 1e-3
    order: Annotated[Literal[1, 2], Field(description="1 (implicit Euler) or 2 (BDF2)")] = 2
    flow_tolerance: Annotated[
        float | None,
        Field(gt=0, lt=1, description="error of the velocity in one time step, relative to the largest velocity"),
    ] = None


class RelaxationSettings(BaseModel):
    """Table [electrodeposition.relaxation]: options of scheme = "relaxation"; by default those of the scheme."""

    model_config = _STRICT

    order: Annotated[
        Literal["lexicographic", "boundary-first", "red-black"] | None,
        Field(description="order of the cells in a sweep"),
    ] = None
    across: Annotated[
        Literal["exact", "block"] | None,
        Field(description='"exact" if blocks wait for one another in lexicographic sweeps, else "block"'),
    ] = None
    criterion: Annotated[
        Literal["residual", "update"] | None, Field(description="quantity that must fall below the tolerance")
    ] = None
    tolerance: Annotated[float | None, Field(gt=0, lt=1, description="tolerance of the scaled criterion")] = None
    limit: Annotated[int | None, Field(ge=1, description="largest number of sweeps in a time step")] = None
    newton: Annotated[int | None, Field(ge=1, le=100, description="Newton steps for the potential at a point")] = None
    wall: Annotated[float | None, Field(gt=0, le=1, description="weight of the new vorticity at walls")] = None


class SemiImplicitSettings(BaseModel):
    """Table [electrodeposition.semi_implicit]: options of scheme = "semi-implicit"; by default those of the scheme."""

    model_config = _STRICT

    passes: Annotated[
        int | None,
        Field(ge=1, le=1000, description="largest number of passes over potential and species in a time step"),
    ] = None
    agreement: Annotated[
        float | None, Field(gt=0, lt=1, description="tolerance of the potential's change in the last pass, in RT/F")
    ] = None
    tolerance: Annotated[
        float | None, Field(gt=0, lt=1, description="tolerance of the residuals of the species' linear systems")
    ] = None
    limit: Annotated[int | None, Field(ge=1, description="largest number of iterations of a linear system")] = None
    attempts: Annotated[
        int | None, Field(ge=1, description="largest number of attempted time steps in one step of the run")
    ] = None


class ConstantSettings(BaseModel):
    """Table [electrodeposition.constants]: properties of the solvent; by default water at 25 C, in scaled cases 1."""

    model_config = _STRICT

    temperature: Annotated[float | None, Field(ge=200, le=2000, description="K: temperature = 298.15")] = None
    permittivity: Annotated[Positive | None, Field(description="F/m")] = None
    density: Annotated[Positive | None, Field(description="kg/m3")] = None
    viscosity: Annotated[Positive | None, Field(description="Pa s")] = None


class ElectrodepositionSettings(BaseModel):
    """Table [electrodeposition] of a case: ions, potential and flow between a cathode and an anode.

    Attributes
    ----------
    electrolyte, concentration, acid, acid_concentration
        A bath by name.
    species
        A bath ion by ion.
    solution
        Properties of a concentrated solution of one salt, or ion pairs and bisulphate by local equilibrium.
    metal
        The ion that is deposited; by default the first cation.
    scaled
        Whether lengths are in L, potentials in RT/F, concentrations in c0 and times in L2/D, with F = RT = 1.
    debye
        The Debye length, which determines the permittivity; by default the permittivity is that of water.
    length, gap, width
        Size of the cell along y (cathode to anode), z and x; grid.shape has as many axes.
    stretched
        Cells of unequal width, see STRETCH_FORM.
    periodic
        Periodic axes: ["x"].
    orientation
        Direction of gravity; by default there is flow where there is gravity.
    voltage, current, program
        Exactly one of them drives the cell.
    cutoff
        Voltage at which a run with a given current ends.
    cathode, anode
        Conditions at the electrodes, see CONDITION_FORM.
    noise
        Relative disturbance of the initial concentrations, drawn from `seed`.
    """

    model_config = _STRICT

    electrolyte: Annotated[
        str | None, Field(description='name of the salt: electrolyte = "ZnSO4", "CuSO4", "NiSO4" or "AgNO3"')
    ] = None
    concentration: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "concentration"))] | None,
        Field(description='concentration of the salt, mol/m3 or with a unit: concentration = "0.1 M"'),
    ] = None
    acid: Annotated[str | None, Field(description='name of the acid: acid = "H2SO4"')] = None
    acid_concentration: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "concentration"))] | None,
        Field(description='concentration of the acid: acid_concentration = "0.01 M"'),
    ] = None
    species: Annotated[
        tuple[SpeciesSettings, ...] | None,
        Field(min_length=1, description='[[electrodeposition.species]] name = "Zn", charge = 2, ...'),
    ] = None
    solution: Annotated[
        Literal["dilute", "pairs"] | SolutionSettings,
        Field(
            description='"dilute" for free ions, "pairs" for a sulphate with ion pairs and, with acid, bisulphate, or '
            'tables: solution = {file = "copper.csv"}'
        ),
    ] = "dilute"
    metal: Annotated[str | None, Field(description='ion that is deposited: metal = "Zn"')] = None
    scaled: Annotated[bool, Field(description="whether numbers are scaled: F = RT = 1, D = c0 = L = 1")] = False
    debye: Annotated[Length | None, Field(description='Debye length: debye = 0.05, or "5 um"')] = None
    length: Annotated[Length | None, Field(description='distance from cathode to anode, along y: length = "1 cm"')] = (
        None
    )
    gap: Annotated[Length | None, Field(description='distance of the plates, along z: gap = "500 um"')] = None
    width: Annotated[Length | None, Field(description='width of the cell, along x: width = "2 mm"')] = None
    stretched: Annotated[
        Literal["uniform", "cosine"] | dict[Axis, Literal["uniform", "cosine"] | StretchSettings],
        Field(description=STRETCH_FORM),
    ] = "uniform"
    periodic: Annotated[tuple[Literal["z", "x"], ...], Field(description='periodic axes: periodic = ["x"]')] = ()
    orientation: Annotated[
        Literal["horizontal", "cathode-above", "cathode-below", "off"] | tuple[Number, ...],
        Field(
            description='"horizontal" (gravity along the gap), "cathode-above", "cathode-below", "off", or m/s2 along '
            "each axis of the grid"
        ),
    ] = "off"
    flow: Annotated[
        bool | None, Field(description="whether the fluid moves; by default it does where there is gravity")
    ] = None
    voltage: Annotated[
        Voltage | None,
        Field(description="potential of the anode relative to the cathode, V: voltage = 0.5, or current = 50.0"),
    ] = None
    current: Annotated[
        Current | None,
        Field(description='current density over the cathode\'s plane: current = "5 mA/cm2", or voltage = 0.5'),
    ] = None
    reference: Annotated[
        Length | None,
        Field(
            description="distance of a reference electrode from the cathode, against which voltages of the program are "
            'potentials of the cathode: reference = "1 mm"'
        ),
    ] = None
    program: Annotated[
        tuple[PartSettings, ...] | None,
        Field(
            min_length=1,
            description='in place of voltage and current: program = [{hold = "5 mA/cm2", time = "10 s"}, '
            '{rest = "5 s"}]',
        ),
    ] = None
    cutoff: Annotated[
        Annotated[Voltage, Field(gt=0)] | None,
        Field(
            description="with a given current, or a program against a reference: voltage at which the run ends, "
            'cutoff = "5 V" by default'
        ),
    ] = None
    cathode: Annotated[Any, Field(description=CONDITION_FORM)] = None
    anode: Annotated[Any, Field(description=CONDITION_FORM)] = None
    fingers: Annotated[
        tuple[FingerSettings, ...], Field(description='[[electrodeposition.fingers]] length = "2 mm", size = "200 um"')
    ] = ()
    solids: Annotated[
        tuple[SolidSettings, ...],
        Field(description='[[electrodeposition.solids]] image = "mask.png", kind = "cathode"'),
    ] = ()
    growth: Annotated[
        GrowthSettings | bool, Field(description="growth = true, or [electrodeposition.growth] porosity = 0.5")
    ] = False
    time: Annotated[TimeSettings, Field(description="time = {end = 20.0, every = 0.5}")] = TimeSettings()
    scheme: Annotated[
        Literal["semi-implicit", "relaxation"], Field(description='scheme = "semi-implicit" or "relaxation"')
    ] = "semi-implicit"
    relaxation: Annotated[
        RelaxationSettings | None, Field(description='[electrodeposition.relaxation] order = "red-black"')
    ] = None
    semi_implicit: Annotated[
        SemiImplicitSettings | None, Field(description="[electrodeposition.semi_implicit] passes = 2")
    ] = None
    constants: Annotated[ConstantSettings, Field(description="[electrodeposition.constants] temperature = 298.15")] = (
        ConstantSettings()
    )
    noise: Annotated[float, Field(ge=0, lt=1, description="relative disturbance of the initial concentrations")] = 0.0
    seed: Annotated[int, Field(ge=0, lt=2**63, description="seed of the random numbers of growth and noise")] = 0

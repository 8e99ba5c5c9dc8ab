"""The case's table [electrodeposition]: its schema. What becomes of it is in `minga.models.electrodeposition.case`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

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
    'write "held", "sink", "reversible", "butler-volmer", "balance" or "blocked" for the metal\'s ion, or a table with '
    "an entry for each ion that passes: {Zn = {held = 100.0}, H = {flux = 1e-5}}"
)
STRETCH_FORM: Final = 'write stretched = {y = "cosine"}, {y = {geometric = 1.1}} or {y = {geometric = 1.1, at = "low"}}'


class SpeciesSettings(BaseModel):
    """One kind of ion: `{name = "Zn", charge = 2, diffusivity = 0.715e-9, bulk = 100.0, expansion = 0.8e-4}`."""

    model_config = _STRICT

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_+-]*$", description="letters and digits")]
    charge: Annotated[int, Field(ge=-6, le=6, description="charge number: charge = 2")]
    diffusivity: Annotated[Number, Field(description="m2/s: diffusivity = 0.715e-9")]
    bulk: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "concentration"))],
        Field(description='bulk concentration, mol/m3 or with a unit: bulk = "0.1 M"'),
    ]
    expansion: Annotated[Number, Field(description="(1/rho) d rho/d c, m3/mol: expansion = 0.8e-4")] = 0.0


class StretchSettings(BaseModel):
    """Cells that grow from the ends of an axis by a factor each: `{geometric = 1.1, at = "low"}`."""

    model_config = _STRICT

    geometric: Annotated[float, Field(gt=1, le=3, description="width of a cell over that of the one before it")]
    at: Annotated[Literal["both", "low", "high"], Field(description='where cells are thin: at = "low"')] = "both"


class ConditionSettings(BaseModel):
    """What happens to an ion at a metal: one of `held`, `flux`, `exchange` or `reversible`."""

    model_config = _STRICT

    held: Annotated[Concentration | None, Field(description="mol/m3 at the metal: {held = 100.0}")] = None
    flux: Annotated[
        Number | Literal["balance"] | None,
        Field(description='mol/m2/s into the solution, or "balance": what the other electrode takes out'),
    ] = None
    exchange: Annotated[
        Annotated[Current, Field(gt=0)] | None, Field(description="Butler-Volmer's i0, A/m2: {exchange = 30.0}")
    ] = None
    reversible: Annotated[
        Annotated[Concentration, Field(gt=0)] | Literal["bulk"] | None,
        Field(description='at equilibrium with the metal: mol/m3 where the potentials agree, or "bulk"'),
    ] = None
    reference: Annotated[
        Annotated[Concentration, Field(gt=0)] | None, Field(description="with exchange: mol/m3; left out, the bulk's")
    ] = None
    equilibrium: Annotated[Voltage | None, Field(description="with exchange: equilibrium potential, V")] = None
    transfer: Annotated[float | None, Field(gt=0, lt=1, description="with exchange: 0.5 by default")] = None
    electrons: Annotated[int | None, Field(ge=1, description="with exchange; left out, the ion's charge")] = None


class FingerSettings(BaseModel):
    """A rod of metal that stands on the cathode: `{place = {x = "1 mm"}, length = "2 mm", size = "200 um"}`."""

    model_config = _STRICT

    length: Annotated[Length, Field(description='from the cathode to its tip: length = "2 mm"')]
    size: Annotated[Length, Field(description='its width: size = "200 um"')]
    place: Annotated[
        dict[Literal["z", "x"], Place], Field(description='its axis: place = {x = "1 mm"}; left out, in the middle')
    ] = {}
    form: Annotated[Literal["square", "round"], Field(description='across: form = "round"')] = "square"


class SolidSettings(BaseModel):
    """Solid parts: a `box`, an `image` (PNG, dark is solid, first row at the cathode), or a `file` (.npy)."""

    model_config = _STRICT

    kind: Annotated[
        Solid | None, Field(description='kind = "cathode", "anode" or "insulator"; a file may hold 0 to 3 instead')
    ] = None
    box: Annotated[
        dict[Axis, Annotated[tuple[Place, ...], Field(min_length=2, max_length=2)]] | None,
        Field(description='from where to where along each axis: box = {y = [0, "2 mm"], x = ["1 mm", "1.2 mm"]}'),
    ] = None
    image: Annotated[
        str | None, Field(description='a PNG file: image = "dendrite.png", which covers the whole plane')
    ] = None
    plane: Annotated[
        Literal["yx", "yz", "zx"] | None, Field(description='of an image: its rows and columns, plane = "yx"')
    ] = None
    across: Annotated[
        tuple[Place, ...] | None,
        Field(min_length=2, max_length=2, description='of an image: from where to where, across = [0, "100 um"]'),
    ] = None
    file: Annotated[str | None, Field(description='a volume of the grid\'s shape: file = "deposit.npy"')] = None


class GrowthSettings(BaseModel):
    """Table [electrodeposition.growth]: the deposit grows."""

    model_config = _STRICT

    porosity: Annotated[float, Field(ge=0, lt=1, description="share of the deposit that is not metal")] = 0.0
    exponent: Annotated[
        float, Field(ge=0, le=10, description="cells are drawn with probabilities proportional to flux ** exponent")
    ] = 1.0
    volume: Annotated[Positive | None, Field(description="m3 of solid metal a mole of the ion; known of Zn and Cu")] = (
        None
    )


class TimeSettings(BaseModel):
    """Table [electrodeposition.time]: how long, and in which steps; seconds, or units of L2/D in scaled cases."""

    model_config = _STRICT

    end: Annotated[Time, Field(description='the whole time: end = 20.0, or "5 min"')]
    every: Annotated[
        Time | None, Field(description="from one step of the run to the next, as many time steps as it takes")
    ] = None
    first: Annotated[Time | None, Field(description="the first time step, or the only one if not adaptive")] = None
    adaptive: Annotated[bool, Field(description="whether time steps follow the error: true or false")] = True
    tolerance: Annotated[float, Field(gt=0, lt=1, description="relative error of one time step")] = 1e-3
    order: Annotated[Literal[1, 2], Field(description="1 (implicit Euler) or 2 (BDF2)")] = 2


class RelaxationSettings(BaseModel):
    """Table [electrodeposition.relaxation]: options of scheme = "relaxation"; those left out are the scheme's."""

    model_config = _STRICT

    order: Annotated[
        Literal["lexicographic", "boundary-first", "red-black"] | None, Field(description="of the cells in a sweep")
    ] = None
    across: Annotated[
        Literal["exact", "block"] | None,
        Field(description="of lexicographic sweeps: whether blocks wait for one another"),
    ] = None
    criterion: Annotated[Literal["residual", "update"] | None, Field(description="what is to be below tolerance")] = (
        None
    )
    tolerance: Annotated[float | None, Field(gt=0, lt=1, description="of the criterion, scaled")] = None
    limit: Annotated[int | None, Field(ge=1, description="sweeps a time step at most")] = None
    newton: Annotated[int | None, Field(ge=1, le=100, description="steps for the potential at a point")] = None
    wall: Annotated[float | None, Field(gt=0, le=1, description="weight of the wall's new vorticity")] = None


class SemiImplicitSettings(BaseModel):
    """Table [electrodeposition.semi_implicit]: options of scheme = "semi-implicit"; those left out are the scheme's."""

    model_config = _STRICT

    passes: Annotated[
        int | None, Field(ge=1, le=1000, description="rounds of potential and species in a time step, at most")
    ] = None
    agreement: Annotated[
        float | None, Field(gt=0, lt=1, description="of the potential's last change in a round, in RT/F")
    ] = None
    tolerance: Annotated[float | None, Field(gt=0, lt=1, description="of the linear systems' residuals")] = None
    limit: Annotated[int | None, Field(ge=1, description="iterations of a linear system at most")] = None
    attempts: Annotated[int | None, Field(ge=1, description="at time steps in one step of the run, at most")] = None


class ConstantSettings(BaseModel):
    """Table [electrodeposition.constants]: of the solvent; water at 25 C, or in scaled cases 1."""

    model_config = _STRICT

    temperature: Annotated[Positive | None, Field(description="K: temperature = 298.15")] = None
    permittivity: Annotated[Positive | None, Field(description="F/m")] = None
    density: Annotated[Positive | None, Field(description="kg/m3")] = None
    viscosity: Annotated[Positive | None, Field(description="Pa s")] = None


class ElectrodepositionSettings(BaseModel):
    """Table [electrodeposition] of a case: ions, potential and flow between a cathode and an anode.

    electrolyte, concentration, acid, acid_concentration   a bath by name
    species      or ion by ion
    metal        the ion that is deposited; the first cation
    scaled       lengths in L, potentials in RT/F, concentrations in c0, times in L2/D; F = RT = 1
    debye        the Debye length, which sets the permittivity; left out, that of water
    length, gap, width   the cell along y (cathode to anode), z and x; grid.shape has as many axes
    stretched    cells of unequal width, see STRETCH_FORM
    periodic     axes whose ends are joined: ["x"]
    orientation  where gravity points, and whether there is flow
    voltage, current     one of them; cutoff, the voltage at which a run with a given current ends
    cathode, anode       what passes there, see CONDITION_FORM
    noise        relative disturbance of the first concentrations, drawn from `seed`
    """

    model_config = _STRICT

    electrolyte: Annotated[str | None, Field(description='name it: electrolyte = "ZnSO4" or "CuSO4"')] = None
    concentration: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "concentration"))] | None,
        Field(description='of the salt, mol/m3 or with a unit: concentration = "0.1 M"'),
    ] = None
    acid: Annotated[str | None, Field(description='acid = "H2SO4"')] = None
    acid_concentration: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "concentration"))] | None,
        Field(description='of the acid: acid_concentration = "0.01 M"'),
    ] = None
    species: Annotated[
        tuple[SpeciesSettings, ...] | None,
        Field(min_length=1, description='[[electrodeposition.species]] name = "Zn", charge = 2, ...'),
    ] = None
    metal: Annotated[str | None, Field(description='the ion that is deposited: metal = "Zn"')] = None
    scaled: Annotated[bool, Field(description="whether numbers are scaled: F = RT = 1, D = c0 = L = 1")] = False
    debye: Annotated[Length | None, Field(description='the Debye length: debye = 0.05, or "5 um"')] = None
    length: Annotated[Length | None, Field(description='from cathode to anode, along y: length = "1 cm"')] = None
    gap: Annotated[Length | None, Field(description='between the plates, along z: gap = "500 um"')] = None
    width: Annotated[Length | None, Field(description='along x: width = "2 mm"')] = None
    stretched: Annotated[
        Literal["uniform", "cosine"] | dict[Axis, Literal["uniform", "cosine"] | StretchSettings],
        Field(description=STRETCH_FORM),
    ] = "uniform"
    periodic: Annotated[
        tuple[Literal["z", "x"], ...], Field(description='axes with joined ends: periodic = ["x"]')
    ] = ()
    orientation: Annotated[
        Literal["horizontal", "cathode-above", "cathode-below", "off"] | tuple[Number, ...],
        Field(
            description='"horizontal" (gravity along the gap), "cathode-above", "cathode-below", "off", or m/s2 along '
            "each axis of the grid"
        ),
    ] = "off"
    flow: Annotated[
        bool | None, Field(description="whether the fluid moves; left out, it does where there is gravity")
    ] = None
    voltage: Annotated[
        Voltage | None, Field(description="of the anode over the cathode, V: voltage = 0.5, or current = 50.0")
    ] = None
    current: Annotated[
        Current | None, Field(description='of the cathode\'s plane: current = "5 mA/cm2", or voltage = 0.5')
    ] = None
    cutoff: Annotated[
        Annotated[Voltage, Field(gt=0)] | None,
        Field(description='with a given current: the voltage at which the run ends, cutoff = "5 V" by default'),
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
    time: Annotated[TimeSettings, Field(description="time = {end = 20.0, every = 0.5}")]
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
    noise: Annotated[float, Field(ge=0, lt=1, description="relative disturbance of the first concentrations")] = 0.0
    seed: Annotated[int, Field(ge=0, lt=2**63, description="of growth and noise")] = 0

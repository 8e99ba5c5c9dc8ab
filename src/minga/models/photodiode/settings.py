"""The case's table [photodiode]: its schema. What becomes of it is in `minga.models.photodiode.case`."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.models.photodiode.quantities import quantity

__all__ = [
    "BIAS_FORM",
    "BiasSettings",
    "ContactSettings",
    "GradedSettings",
    "LayerSettings",
    "LightSettings",
    "MeshSettings",
    "PhotodiodeSettings",
    "PointwiseSettings",
    "RegionSettings",
    "StepSettings",
]

_STRICT = ConfigDict(extra="forbid", frozen=True)

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Place = Annotated[float, BeforeValidator(lambda v: quantity(v, "length"))]
Wavelength = Annotated[float, BeforeValidator(lambda v: quantity(v, "wavelength")), Field(gt=0)]
Current = Annotated[float, BeforeValidator(lambda v: quantity(v, "current"))]
Power = Annotated[float, BeforeValidator(lambda v: quantity(v, "power")), Field(gt=0)]

BIAS_FORM: Final = "write bias = [0.0, -1.0, -2.0], or bias = {from = 0.0, to = -60.0, step = 1.0}"
_GRADING = "linear from the anode's side to the cathode's"


class LayerSettings(BaseModel):
    """`[[photodiode.layers]]`: one layer; they follow each other from the anode to the cathode."""

    model_config = _STRICT

    name: Annotated[str | None, Field(min_length=1, description='name = "Mult"; left out, "layer 2"')] = None
    material: Annotated[str, Field(description='material = "InP"')]
    thickness: Annotated[Place | None, Field(description='um, or with a unit: thickness = "250 nm"')] = None
    rows: Annotated[int | None, Field(ge=1, description="rows of the mesh, in place of a thickness: rows = 400")] = None
    begin: Annotated[Place | None, Field(description="um: where it begins; left out, where the last one ends")] = None
    p: Annotated[
        NotNegative | tuple[NotNegative, NotNegative] | None,
        Field(
            json_schema_extra={"unit": "1/cm3"}, description=f"acceptors, 1/cm3: p = 1e18, or [1e17, 1e18], {_GRADING}"
        ),
    ] = None
    n: Annotated[
        NotNegative | tuple[NotNegative, NotNegative] | None,
        Field(json_schema_extra={"unit": "1/cm3"}, description=f"donors, 1/cm3: n = 1e15, or [1e15, 1e17], {_GRADING}"),
    ] = None
    doping: Annotated[
        Number | tuple[Number, Number] | None,
        Field(description="donors minus acceptors, 1/cm3, in place of n and p: doping = -1e18"),
    ] = None
    y: Annotated[
        float | tuple[float, float] | None,
        Field(description=f"share of arsenic in InGaAsP: y = 0.6, or [0.2, 0.8], {_GRADING}"),
    ] = None
    tau_n: Annotated[
        Positive | None, Field(json_schema_extra={"unit": "s"}, description="lifetime of electrons, s: tau_n = 1e-9")
    ] = None
    tau_p: Annotated[
        Positive | None, Field(json_schema_extra={"unit": "s"}, description="lifetime of holes, s: tau_p = 1e-9")
    ] = None
    mobility_n: Annotated[
        Positive | None, Field(json_schema_extra={"unit": "cm2/Vs"}, description="of electrons at low fields, cm2/Vs")
    ] = None
    mobility_p: Annotated[
        Positive | None, Field(json_schema_extra={"unit": "cm2/Vs"}, description="of holes at low fields, cm2/Vs")
    ] = None
    absorption: Annotated[
        NotNegative | None,
        Field(json_schema_extra={"unit": "1/cm"}, description="of the light, 1/cm: absorption = 6100.0"),
    ] = None
    ionisation: Annotated[str | None, Field(description='a set of coefficients: ionisation = "umebu", or "none"')] = (
        None
    )


class RegionSettings(BaseModel):
    """`[[photodiode.regions]]`: a box of other doping in a device with two axes."""

    model_config = _STRICT

    name: Annotated[str, Field(min_length=1, description='name = "guard ring"')]
    x: Annotated[tuple[Place, Place], Field(description="depth from where to where, um: x = [0.0, 1.5]")]
    y: Annotated[tuple[Place, Place], Field(description="across from where to where, um: y = [0.0, 2.0]")]
    doping: Annotated[Number, Field(description="donors minus acceptors, 1/cm3: doping = -1e17")]


class ContactSettings(BaseModel):
    """A contact: `{kind = "schottky", barrier = 0.55, at = "top", y = [0.0, 1.0]}`."""

    model_config = _STRICT

    kind: Annotated[Literal["ohmic", "schottky"], Field(description='kind = "ohmic" or "schottky"')] = "ohmic"
    barrier: Annotated[
        float | None,
        Field(gt=0, lt=5, json_schema_extra={"unit": "eV"}, description="of a Schottky contact for electrons, eV"),
    ] = None
    at: Annotated[Literal["top", "bottom"] | None, Field(description="on the first row or the last one")] = None
    y: Annotated[tuple[Place, Place] | None, Field(description="across from where to where, um; left out, all")] = None


class ContactsSettings(BaseModel):
    """Table [photodiode.contacts]: `anode = "ohmic"` and `cathode = "ohmic"`, or a table for each."""

    model_config = _STRICT

    anode: Annotated[
        Literal["ohmic"] | ContactSettings,
        Field(description='the first row: anode = "ohmic", or {kind = "schottky", barrier = 0.65}'),
    ]
    cathode: Annotated[
        Literal["ohmic"] | ContactSettings,
        Field(description='the last row: cathode = "ohmic", or {kind = "schottky", barrier = 0.65}'),
    ]


class LightSettings(BaseModel):
    """Table [photodiode.light]: what falls in; 1 mW/cm2 of 1550 nm are 7.8e15 photons a cm2 and second."""

    model_config = _STRICT

    power: Annotated[
        Power | None,
        Field(json_schema_extra={"unit": "W/cm2"}, description='W/cm2, or with a unit: power = "1 mW/cm2"'),
    ] = None
    flux: Annotated[
        Positive | None,
        Field(json_schema_extra={"unit": "1/cm2s"}, description="photons a cm2 and second, in place of the power"),
    ] = None
    wavelength: Annotated[Wavelength, Field(json_schema_extra={"unit": "nm"}, description="nm: wavelength = 1550.0")]
    side: Annotated[Literal["cathode", "anode"], Field(description="where it falls in")] = "cathode"


class GradedSettings(BaseModel):
    """Spacings that grow from the boundaries of layers: `{first = "0.1 nm", growth = 1.05, cap = "20 nm"}`."""

    model_config = _STRICT

    first: Annotated[
        Place, Field(gt=0, json_schema_extra={"unit": "um"}, description='spacing at a boundary: first = "0.5 nm"')
    ] = 5e-8
    growth: Annotated[float, Field(ge=1, le=2, description="ratio of neighbouring spacings: growth = 1.1")] = 1.1
    cap: Annotated[
        Place, Field(gt=0, json_schema_extra={"unit": "um"}, description='largest spacing: cap = "20 nm"')
    ] = 2e-6


class MeshSettings(BaseModel):
    """Table [photodiode.mesh]: one of rows, nodes and graded."""

    model_config = _STRICT

    spacing: Annotated[
        Place | None,
        Field(
            gt=0,
            json_schema_extra={"unit": "um"},
            description='height of a row: spacing = "2.5 nm"; layers then have rows',
        ),
    ] = None
    coarsen: Annotated[int, Field(ge=1, description="rows that are made one: coarsen = 5")] = 1
    nodes: Annotated[
        int | None, Field(ge=3, le=10_000_000, description="at equal distances, the first and last at the ends")
    ] = None
    positions: Annotated[
        tuple[Place, ...] | None, Field(min_length=3, description="of all nodes, um, ascending, from end to end")
    ] = None
    graded: Annotated[GradedSettings | None, Field(description='graded = {first = "0.1 nm", growth = 1.05}')] = None
    across: Annotated[
        GradedSettings | None,
        Field(description='of a device with a width, from the ends of regions and contacts: across = {first = "5 nm"}'),
    ] = None


class BiasSettings(BaseModel):
    """`{from = 0.0, to = -60.0, step = 1.0}`: both ends included."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    start: Annotated[Number, Field(alias="from", description="V: from = 0.0")] = 0.0
    to: Annotated[Number, Field(description="V: to = -60.0")]
    step: Annotated[Positive, Field(json_schema_extra={"unit": "V"}, description="V: step = 1.0")]


class StepSettings(BaseModel):
    """Table [photodiode.steps]: steps in V from one voltage to the next; those left out are the solver's."""

    model_config = _STRICT

    first: Annotated[Positive | None, Field(json_schema_extra={"unit": "V"}, description="V: first = 0.1")] = None
    largest: Annotated[Positive | None, Field(json_schema_extra={"unit": "V"}, description="V: largest = 4.0")] = None
    smallest: Annotated[Positive | None, Field(json_schema_extra={"unit": "V"}, description="V: smallest = 1e-4")] = (
        None
    )


class PointwiseSettings(BaseModel):
    """Table [photodiode.pointwise]: options of scheme = "pointwise"; those left out are the scheme's."""

    model_config = _STRICT

    across: Annotated[
        Literal["exact", "block"] | None, Field(description="whether blocks of other ranks wait for one another")
    ] = None
    segments: Annotated[
        Annotated[int, Field(ge=1)] | tuple[int, ...] | None,
        Field(description="into how many parts the rows are cut, or the rows where the parts end"),
    ] = None
    inner_sweeps: Annotated[int | None, Field(ge=1, description="of each equation in an iteration")] = None
    weight: Annotated[float | None, Field(gt=0, lt=2, description="of over-relaxation of the potential")] = None
    test: Annotated[Literal["max", "paper", "current", "residual"] | None, Field(description='test = "max"')] = None
    tolerance: Annotated[
        Positive | None, Field(json_schema_extra={"unit": "kT/q"}, description="of the test, kT/q: tolerance = 1e-6")
    ] = None
    limit: Annotated[int | None, Field(ge=1, description="iterations a voltage at most")] = None
    cost: Annotated[Literal["measured", "synthetic"] | None, Field(description='cost = "synthetic"')] = None
    heavy: Annotated[str | None, Field(description='the layer that takes more with cost = "synthetic"')] = None
    growth: Annotated[float | None, Field(ge=0, le=20, description="of the synthetic cost: growth = 4.0")] = None
    expected: Annotated[int | None, Field(ge=2, description="iterations, of the synthetic cost")] = None


class PhotodiodeSettings(BaseModel):
    """Table [photodiode] of a case: layers between two contacts, light, and the voltages to solve for.

    layers       from the anode to the cathode
    contacts     anode and cathode
    mesh         rows of equal height, nodes at equal distances, or spacings that grow from the boundaries
    width, columns   a second axis, y
    bias         voltages of the anode over the cathode, one a step of the run
    current      or currents to hold, whose voltages are looked for
    curves       "dark", "lit" or both
    gain         solve also without ionisation: M = (J_lit - J_dark)/(the same without)
    quasistatic_capacitance   dQ/dV, F/cm2: how much more charge there is at a slightly larger voltage
    materials    a file of one's own, beside the case
    """

    model_config = _STRICT

    layers: Annotated[
        tuple[LayerSettings, ...],
        Field(min_length=1, description='[[photodiode.layers]] material = "InP", thickness = 1.0, p = 1e18'),
    ]
    regions: tuple[RegionSettings, ...] = ()
    contacts: Annotated[
        ContactsSettings, Field(description='write [photodiode.contacts] with anode = "ohmic" and cathode = "ohmic"')
    ]
    mesh: MeshSettings = MeshSettings()
    width: Annotated[
        Place | None, Field(gt=0, json_schema_extra={"unit": "um"}, description='across, along y: width = "10 um"')
    ] = None
    columns: Annotated[int | None, Field(ge=1, description="nodes along y: columns = 40")] = None
    temperature: Annotated[
        float,
        Field(
            ge=77,
            le=1000,
            json_schema_extra={"unit": "K"},
            description="temperature = 300.0; below, dopants would freeze out, which is not modelled",
        ),
    ] = 300.0
    light: Annotated[
        LightSettings | None, Field(description="[photodiode.light] wavelength = 1550.0, power = 1e-3")
    ] = None
    materials: Annotated[str | None, Field(description='a file beside the case: materials = "my.toml"')] = None
    statistics: Annotated[
        Literal["boltzmann", "fermi-dirac"], Field(description='statistics = "boltzmann" or "fermi-dirac"')
    ] = "boltzmann"
    mobility: Annotated[
        Literal["constant", "doping", "field", "doping-field"],
        Field(description='mobility = "constant", "doping", "field" or "doping-field"'),
    ] = "constant"
    emission: Annotated[
        bool, Field(description="whether thermionic emission limits what crosses barriers: emission = true")
    ] = False
    recombination: Annotated[
        tuple[Literal["srh", "radiative", "auger"], ...],
        Field(description='recombination = ["srh", "radiative", "auger"], or fewer'),
    ] = ("srh", "radiative", "auger")
    ionisation: Annotated[
        bool | dict[str, str],
        Field(description='ionisation = true, false, or a set for each material: {InP = "umebu"}'),
    ] = False
    gain: Annotated[bool, Field(description="whether to solve also without ionisation: gain = true")] = False
    quasistatic_capacitance: Annotated[
        bool, Field(description="whether to work out dQ/dV at each voltage, too: quasistatic_capacitance = true")
    ] = False
    bias: Annotated[
        tuple[Number, ...] | Number | BiasSettings | None,
        Field(description=BIAS_FORM),
    ] = None
    current: Annotated[
        Current | tuple[Current, ...] | None,
        Field(description='currents to hold in place of voltages: current = ["-1 uA/cm2", "-1 mA/cm2"]'),
    ] = None
    curves: Annotated[
        tuple[Literal["dark", "lit"], ...] | None, Field(min_length=1, description='curves = ["dark", "lit"]')
    ] = None
    steps: Annotated[StepSettings | None, Field(description="[photodiode.steps] largest = 2.0")] = None
    scheme: Annotated[
        Literal["newton", "gummel", "pointwise"], Field(description='scheme = "newton", "gummel" or "pointwise"')
    ] = "newton"
    linear: Annotated[
        Literal["auto", "rows", "sparse", "krylov"],
        Field(description='of two axes: linear = "auto", or "rows", "sparse" or "krylov"'),
    ] = "auto"
    pointwise: Annotated[PointwiseSettings | None, Field(description='[photodiode.pointwise] across = "block"')] = None
    tolerance: Annotated[
        float | None, Field(gt=0, lt=1, json_schema_extra={"unit": "kT/q"}, description="of the unknowns, in kT/q")
    ] = None
    limit: Annotated[int | None, Field(ge=1, description="iterations a voltage at most")] = None

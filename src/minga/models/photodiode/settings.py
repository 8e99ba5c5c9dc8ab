"""Schema of the [photodiode] table of a case. `minga.models.photodiode.case` converts it to a model."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from minga.errors import CaseError
from minga.models.photodiode.quantities import quantity
from minga.models.photodiode.settings_ac import AcSettings, CvSettings, NoiseSettings
from minga.models.photodiode.settings_adapt import AdaptSettings
from minga.models.photodiode.settings_breakdown import BreakdownSettings
from minga.models.photodiode.settings_ionisation import DeadSpaceSettings
from minga.models.photodiode.settings_light import INDEX_FORM, CoatingSettings, GaussianSettings, SubstrateSettings
from minga.models.photodiode.settings_qe import QeSettings
from minga.models.photodiode.settings_surfaces import SurfaceSettings
from minga.models.photodiode.settings_transient import TransientSettings
from minga.models.photodiode.settings_tunnelling import TunnellingSettings
from minga.models.photodiode.structure.indices import IndexSaid

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
Length = Annotated[float, BeforeValidator(lambda v: quantity(v, "length")), Field(gt=0)]
Wavelength = Annotated[float, BeforeValidator(lambda v: quantity(v, "wavelength")), Field(gt=0)]
Current = Annotated[float, BeforeValidator(lambda v: quantity(v, "current"))]
Power = Annotated[float, BeforeValidator(lambda v: quantity(v, "power")), Field(gt=0)]

BIAS_FORM: Final = "write bias = [0.0, -1.0, -2.0], or bias = {from = 0.0, to = -60.0, step = 1.0}"
_GRADING = "linear from the anode's side to the cathode's"


class LayerSettings(BaseModel):
    """One layer, `[[photodiode.layers]]`; layers are listed from the anode to the cathode."""

    model_config = _STRICT

    name: Annotated[str | None, Field(min_length=1, description='name = "Mult"; left out, "layer 2"')] = None
    material: Annotated[str, Field(description='material = "InP"')]
    thickness: Annotated[Place | None, Field(description='um, or with a unit: thickness = "250 nm"')] = None
    rows: Annotated[int | None, Field(ge=1, description="rows of the mesh, in place of a thickness: rows = 400")] = None
    begin: Annotated[
        Place | None, Field(description="um: start of the layer; by default the end of the previous one")
    ] = None
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
    x: Annotated[
        float | tuple[float, float] | None,
        Field(description=f"share of Al in AlGaAs and InAlAs, of Ga in InGaAs: x = 0.3, or [0.1, 0.3], {_GRADING}"),
    ] = None
    tau_n: Annotated[
        Positive | None, Field(json_schema_extra={"unit": "s"}, description="lifetime of electrons, s: tau_n = 1e-9")
    ] = None
    tau_p: Annotated[
        Positive | None, Field(json_schema_extra={"unit": "s"}, description="lifetime of holes, s: tau_p = 1e-9")
    ] = None
    mobility_n: Annotated[
        Positive | None,
        Field(json_schema_extra={"unit": "cm2/Vs"}, description="mobility of electrons at low fields, cm2/Vs"),
    ] = None
    mobility_p: Annotated[
        Positive | None,
        Field(json_schema_extra={"unit": "cm2/Vs"}, description="mobility of holes at low fields, cm2/Vs"),
    ] = None
    absorption: Annotated[
        Annotated[float, Field(ge=0, le=1e8, allow_inf_nan=False)] | None,
        Field(
            json_schema_extra={"unit": "1/cm"},
            description="absorption coefficient of the light, 1/cm: absorption = 6100.0",
        ),
    ] = None
    index: Annotated[IndexSaid | None, Field(description=INDEX_FORM)] = None
    ionisation: Annotated[str | None, Field(description='coefficient set: ionisation = "umebu", or "none"')] = None


class RegionSettings(BaseModel):
    """One region with its own doping in a device with two axes, `[[photodiode.regions]]`: a rectangle or a polygon."""

    model_config = _STRICT

    name: Annotated[str, Field(min_length=1, description='name = "guard ring"')]
    x: Annotated[tuple[Place, Place] | None, Field(description="range of depths, um: x = [0.0, 1.5]")] = None
    y: Annotated[tuple[Place, Place] | None, Field(description="range across the device, um: y = [0.0, 2.0]")] = None
    polygon: Annotated[
        tuple[tuple[Place, Place], ...] | None,
        Field(
            min_length=3,
            max_length=1000,
            description="corners x, y in um, in place of x and y: polygon = [[0.0, 0.0], [1.5, 0.0], [0.0, 2.0]]",
        ),
    ] = None
    straggle: Annotated[
        Length | tuple[Length, Length] | None,
        Field(
            json_schema_extra={"unit": "um"},
            description="um: smooth edges, erfc(d/(sqrt(2) straggle))/2; straggle = 0.2, or [0.2, 0.15] for x and y",
        ),
    ] = None
    doping: Annotated[Number, Field(description="donors minus acceptors, 1/cm3: doping = -1e17")]
    material: Annotated[
        str | None, Field(description='for x and y: material = "Ge"; by default that of the layers')
    ] = None


class ContactSettings(BaseModel):
    """A contact, such as `{kind = "schottky", barrier = 0.55, at = "top", y = [0.0, 1.0]}`."""

    model_config = _STRICT

    kind: Annotated[Literal["ohmic", "schottky"], Field(description='kind = "ohmic" or "schottky"')] = "ohmic"
    barrier: Annotated[
        float | None,
        Field(
            gt=0, lt=5, json_schema_extra={"unit": "eV"}, description="barrier of a Schottky contact for electrons, eV"
        ),
    ] = None
    recombination: Annotated[
        float | None,
        Field(
            ge=0,
            allow_inf_nan=False,
            json_schema_extra={"unit": "cm/s"},
            description="velocity of recombination of minority carriers at an ohmic contact, cm/s; by default infinite",
        ),
    ] = None
    image_force: Annotated[
        bool, Field(description="the field lowers the barrier of a Schottky contact: image_force = true")
    ] = False
    tunnelling: Annotated[
        bool, Field(description="carriers tunnel through the barrier of a Schottky contact: tunnelling = true")
    ] = False
    at: Annotated[Literal["top", "bottom"] | None, Field(description="top: the first row; bottom: the last row")] = None
    y: Annotated[tuple[Place, Place] | None, Field(description="range across the device, um; by default all")] = None


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
    """Table [photodiode.light]: incident light; 1 mW/cm2 at 1550 nm is 7.8e15 photons per cm2 and second."""

    model_config = _STRICT

    power: Annotated[
        Power | None,
        Field(json_schema_extra={"unit": "W/cm2"}, description='W/cm2, or with a unit: power = "1 mW/cm2"'),
    ] = None
    flux: Annotated[
        Positive | None,
        Field(json_schema_extra={"unit": "1/cm2s"}, description="photons per cm2 and second, instead of the power"),
    ] = None
    wavelength: Annotated[
        Wavelength | None,
        Field(json_schema_extra={"unit": "nm"}, description='nm: wavelength = 1550.0; only mode = "qe" may omit it'),
    ] = None
    side: Annotated[
        Literal["cathode", "anode", "top", "bottom", "left", "right"],
        Field(description='illuminated side: a contact\'s, "top" (row 1) or "bottom"; with two axes "left" or "right"'),
    ] = "cathode"
    x: Annotated[
        tuple[Place, Place] | None, Field(description="lit part of the left or right side, um: x = [1.0, 2.5]")
    ] = None
    y: Annotated[
        tuple[Place, Place] | None, Field(description="lit part of the anode's or cathode's side, um: y = [0.0, 5.0]")
    ] = None
    gaussian: GaussianSettings | None = None
    generation: Annotated[
        str | None,
        Field(description='file of x, y, G in um and 1/cm3 s, instead of all others: generation = "pairs.csv"'),
    ] = None
    optics: Annotated[
        Literal["beer-lambert", "transfer-matrix"],
        Field(description='optics = "beer-lambert", or "transfer-matrix" with reflection and interference'),
    ] = "beer-lambert"
    coatings: tuple[CoatingSettings, ...] = ()
    ambient: Annotated[
        Annotated[float, Field(ge=1e-3, le=1e3, allow_inf_nan=False)] | None,
        Field(description="refractive index of the medium the light comes from: ambient = 1.0"),
    ] = None
    backing: Annotated[
        IndexSaid | None,
        Field(description='refractive index behind the far side, by default the last layer\'s: backing = "Au"'),
    ] = None
    substrate: SubstrateSettings | None = None


class GradedSettings(BaseModel):
    """Spacings that grow from the layer boundaries: `{first = "0.1 nm", growth = 1.05, cap = "20 nm"}`."""

    model_config = _STRICT

    first: Annotated[
        Place, Field(gt=0, json_schema_extra={"unit": "um"}, description='spacing at a boundary: first = "0.5 nm"')
    ] = 5e-8
    growth: Annotated[float, Field(ge=1, le=2, description="ratio of neighbouring spacings: growth = 1.1")] = 1.1
    cap: Annotated[
        Place, Field(gt=0, json_schema_extra={"unit": "um"}, description='largest spacing: cap = "20 nm"')
    ] = 2e-6


class MeshSettings(BaseModel):
    """Table [photodiode.mesh], with one of spacing, nodes, positions and graded."""

    model_config = _STRICT

    spacing: Annotated[
        Place | None,
        Field(
            gt=0,
            json_schema_extra={"unit": "um"},
            description='height of a row: spacing = "2.5 nm"; layers then have rows',
        ),
    ] = None
    coarsen: Annotated[int, Field(ge=1, description="number of rows merged into one: coarsen = 5")] = 1
    nodes: Annotated[
        int | None, Field(ge=3, le=10_000_000, description="number of equally spaced nodes, both ends included")
    ] = None
    positions: Annotated[
        tuple[Place, ...] | None,
        Field(min_length=3, description="positions of all nodes from end to end, um, ascending"),
    ] = None
    graded: Annotated[GradedSettings | None, Field(description='graded = {first = "0.1 nm", growth = 1.05}')] = None
    adapt: Annotated[
        AdaptSettings | None, Field(description="add nodes where the error arises: adapt = {error = 1e-3, most = 5000}")
    ] = None
    across: Annotated[
        GradedSettings | None,
        Field(description='y spacings from edges of regions and contacts: across = {first = "5 nm"}'),
    ] = None


class BiasSettings(BaseModel):
    """A range of voltages that includes both ends: `{from = 0.0, to = -60.0, step = 1.0}`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    start: Annotated[Number, Field(alias="from", description="V: from = 0.0")] = 0.0
    to: Annotated[Number, Field(description="V: to = -60.0")]
    step: Annotated[Positive, Field(json_schema_extra={"unit": "V"}, description="V: step = 1.0")]


class StepSettings(BaseModel):
    """Table [photodiode.steps]: steps in V from one voltage to the next; omitted entries take the solver's defaults."""

    model_config = _STRICT

    first: Annotated[Positive | None, Field(json_schema_extra={"unit": "V"}, description="V: first = 0.1")] = None
    largest: Annotated[Positive | None, Field(json_schema_extra={"unit": "V"}, description="V: largest = 4.0")] = None
    smallest: Annotated[Positive | None, Field(json_schema_extra={"unit": "V"}, description="V: smallest = 1e-4")] = (
        None
    )


class PointwiseSettings(BaseModel):
    """Table [photodiode.pointwise]: options of scheme = "pointwise"; omitted entries take the scheme's defaults."""

    model_config = _STRICT

    across: Annotated[
        Literal["exact", "block"] | None,
        Field(description="exact: blocks of different ranks wait for one another; block: they do not"),
    ] = None
    segments: Annotated[
        Annotated[int, Field(ge=1)] | tuple[int, ...] | None,
        Field(description="number of segments of the rows, or the rows at which segments end"),
    ] = None
    inner_sweeps: Annotated[int | None, Field(ge=1, description="sweeps of each equation per iteration")] = None
    weight: Annotated[float | None, Field(gt=0, lt=2, description="over-relaxation factor of the potential")] = None
    test: Annotated[Literal["max", "paper", "current", "residual"] | None, Field(description='test = "max"')] = None
    tolerance: Annotated[
        Positive | None,
        Field(json_schema_extra={"unit": "kT/q"}, description="tolerance of the test, kT/q: tolerance = 1e-6"),
    ] = None
    limit: Annotated[int | None, Field(ge=1, description="largest number of iterations per voltage")] = None
    cost: Annotated[Literal["measured", "synthetic"] | None, Field(description='cost = "synthetic"')] = None
    heavy: Annotated[str | None, Field(description='layer with the growing cost under cost = "synthetic"')] = None
    growth: Annotated[float | None, Field(ge=0, le=20, description="growth of the synthetic cost: growth = 4.0")] = None
    expected: Annotated[
        int | None, Field(ge=2, description="expected number of iterations, for the synthetic cost")
    ] = None


class PhotodiodeSettings(BaseModel):
    """Table [photodiode] of a case: layers between two contacts, light, and the voltages to solve for.

    Attributes
    ----------
    layers
        Layers from the anode to the cathode.
    contacts
        Anode and cathode.
    mesh
        Rows of equal height, equally spaced or given nodes, or spacings that grow from the layer boundaries.
    width, columns
        Extent and nodes of a second axis, y.
    symmetry
        "plane", or "cylinder" if y is the distance from the axis of a round device, and the width its radius.
    bias
        Voltages of the anode relative to the cathode, one per step of the run.
    current
        Currents to impose instead; the corresponding voltages are solved for.
    curves
        "dark", "lit" or both.
    gain
        Solve without ionisation as well: M = (J_lit - J_dark) / (the same without ionisation).
    quasistatic_capacitance
        Compute dQ/dV, F/cm2: the additional charge at a slightly larger voltage.
    materials
        Material file of the user, beside the case.
    mode
        What is computed; its options are in the table of the same name.
    """

    model_config = _STRICT

    layers: Annotated[
        tuple[LayerSettings, ...],
        Field(
            min_length=1,
            json_schema_extra={"entry": "layer"},
            description='[[photodiode.layers]] material = "InP", thickness = 1.0, p = 1e18',
        ),
    ]
    regions: tuple[RegionSettings, ...] = ()
    gap_narrowing: Annotated[bool, Field(description="dopants narrow the gap: gap_narrowing = true")] = False
    incomplete_ionisation: Annotated[
        bool, Field(description="dopants may keep their carriers: incomplete_ionisation = true")
    ] = False
    surfaces: tuple[SurfaceSettings, ...] = ()
    contacts: Annotated[
        ContactsSettings, Field(description='write [photodiode.contacts] with anode = "ohmic" and cathode = "ohmic"')
    ]
    mesh: MeshSettings = MeshSettings()
    width: Annotated[
        Place | None, Field(gt=0, json_schema_extra={"unit": "um"}, description='extent along y: width = "10 um"')
    ] = None
    columns: Annotated[int | None, Field(ge=2, description="nodes along y: columns = 40")] = None
    symmetry: Annotated[
        Literal["plane", "cylinder"],
        Field(description='"cylinder": a round device, of which y is the distance from the axis and width the radius'),
    ] = "plane"
    temperature: Annotated[
        float,
        Field(
            ge=77,
            le=1000,
            json_schema_extra={"unit": "K"},
            description="temperature = 300.0; low ones need incomplete_ionisation = true",
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
        bool, Field(description="limit the flux across barriers by thermionic emission: emission = true")
    ] = False
    recombination: Annotated[
        tuple[Literal["srh", "radiative", "auger"], ...],
        Field(description='recombination = ["srh", "radiative", "auger"], or a subset'),
    ] = ("srh", "radiative", "auger")
    ionisation: Annotated[
        bool | dict[str, str],
        Field(description='ionisation = true, false, or a set for each material: {InP = "umebu"}'),
    ] = False
    dead_space: Annotated[
        DeadSpaceSettings | None, Field(description="[photodiode.dead_space] electrons = 2.0, holes = 2.0, in eV")
    ] = None
    tunnelling: Annotated[
        TunnellingSettings, Field(description="[photodiode.tunnelling] band_to_band = true, trap_assisted = true")
    ] = TunnellingSettings()
    gain: Annotated[bool, Field(description="solve without ionisation as well: gain = true")] = False
    quasistatic_capacitance: Annotated[
        bool, Field(description="compute dQ/dV at each voltage: quasistatic_capacitance = true")
    ] = False
    current_parts: Annotated[bool, Field(description="which mechanisms make up the current: current_parts = true")] = (
        False
    )
    capacitance: Annotated[
        bool | None, Field(json_schema_extra={"renamed": "quasistatic_capacitance"}, description="its former name")
    ] = None
    bias: Annotated[
        tuple[Number, ...] | Number | BiasSettings | None,
        Field(description=BIAS_FORM),
    ] = None
    current: Annotated[
        Current | tuple[Current, ...] | None,
        Field(description='currents to hold instead of voltages: current = ["-1 uA/cm2", "-1 mA/cm2"]'),
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
        Field(description='for two axes: linear = "auto", or "rows", "sparse" or "krylov"'),
    ] = "auto"
    pointwise: Annotated[PointwiseSettings | None, Field(description='[photodiode.pointwise] across = "block"')] = None
    mode: Annotated[
        Literal["iv", "cv", "ac", "noise", "qe", "breakdown", "transient"],
        Field(description='what is computed: mode = "iv", "cv", "ac", "noise", "qe", "breakdown" or "transient"'),
    ] = "iv"
    ac: Annotated[AcSettings | None, Field(description='[photodiode.ac] frequencies = ["1 MHz", "1 GHz"]')] = None
    cv: Annotated[CvSettings | None, Field(description='[photodiode.cv] frequency = "1 MHz"')] = None
    noise: Annotated[NoiseSettings | None, Field(description='[photodiode.noise] area = "100 um2"')] = None
    qe: Annotated[QeSettings | None, Field(description="[photodiode.qe] wavelengths = [500.0, 700.0]")] = None
    breakdown: Annotated[BreakdownSettings | None, Field(description="[photodiode.breakdown] to = -200.0")] = None
    transient: Annotated[TransientSettings | None, Field(description='[photodiode.transient] until = "1 ns"')] = None
    tolerance: Annotated[
        float | None,
        Field(gt=0, lt=1, json_schema_extra={"unit": "kT/q"}, description="tolerance of the unknowns, kT/q"),
    ] = None
    limit: Annotated[int | None, Field(ge=1, description="largest number of iterations per voltage")] = None

    @model_validator(mode="after")
    def _take_former_name(self) -> PhotodiodeSettings:
        """Read `capacitance` as `quasistatic_capacitance`; CaseError where a case gives both."""
        if self.capacitance is not None:
            if "quasistatic_capacitance" in self.model_fields_set:
                raise CaseError(
                    "both 'capacitance' and its current name 'quasistatic_capacitance' are given",
                    key="photodiode.capacitance",
                    remedy="leave capacitance out",
                )
            object.__setattr__(self, "quasistatic_capacitance", self.capacitance)
        return self

    @model_validator(mode="after")
    def _check_tables(self) -> PhotodiodeSettings:
        """Raise CaseError for the table of a mode that is not chosen."""
        for name in ("ac", "cv", "noise", "qe", "breakdown", "transient"):
            if name != self.mode and getattr(self, name) is not None:
                raise CaseError(
                    f"[photodiode.{name}] in a case whose mode is {self.mode!r}",
                    key=f"photodiode.{name}",
                    remedy=f'leave it out, or write mode = "{name}"',
                )
        return self

"""Schema of the [photodiode] table of a case. `minga.models.photodiode.case` converts it to a model."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from minga.errors import CaseError
from minga.models.photodiode.settings_ac import AcSettings, CvSettings, NoiseSettings
from minga.models.photodiode.settings_breakdown import BreakdownSettings
from minga.models.photodiode.settings_contacts import ContactsSettings
from minga.models.photodiode.settings_incident import LightSettings
from minga.models.photodiode.settings_ionisation import DeadSpaceSettings
from minga.models.photodiode.settings_layers import LayerSettings, RegionSettings
from minga.models.photodiode.settings_mesh import MeshSettings
from minga.models.photodiode.settings_pointwise import PointwiseSettings
from minga.models.photodiode.settings_qe import QeSettings
from minga.models.photodiode.settings_surfaces import SurfaceSettings
from minga.models.photodiode.settings_transient import TransientSettings
from minga.models.photodiode.settings_tunnelling import TunnellingSettings
from minga.models.photodiode.settings_types import Current, Number, Place, Positive

__all__ = ["BIAS_FORM", "BiasSettings", "PhotodiodeSettings", "StepSettings"]

_STRICT = ConfigDict(extra="forbid", frozen=True)

BIAS_FORM: Final = "write bias = [0.0, -1.0, -2.0], or bias = {from = 0.0, to = -60.0, step = 1.0}"


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

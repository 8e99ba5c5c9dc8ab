"""Schema of [[photodiode.layers]] and [[photodiode.regions]]."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from minga.models.photodiode.settings_light import INDEX_FORM
from minga.models.photodiode.settings_types import Length, NotNegative, Number, Place
from minga.models.photodiode.structure.indices import IndexSaid
from minga.models.photodiode.structure.limits import LIFETIME, MOBILITY

__all__ = ["LayerSettings", "RegionSettings"]

_STRICT = ConfigDict(extra="forbid", frozen=True)
Lifetime = Annotated[float, Field(ge=LIFETIME[0], le=LIFETIME[1])]
Mobility = Annotated[float, Field(ge=MOBILITY[0], le=MOBILITY[1])]
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
        Lifetime | None, Field(json_schema_extra={"unit": "s"}, description="lifetime of electrons, s: tau_n = 1e-9")
    ] = None
    tau_p: Annotated[
        Lifetime | None, Field(json_schema_extra={"unit": "s"}, description="lifetime of holes, s: tau_p = 1e-9")
    ] = None
    mobility_n: Annotated[
        Mobility | None,
        Field(json_schema_extra={"unit": "cm2/Vs"}, description="mobility of electrons at low fields, cm2/Vs"),
    ] = None
    mobility_p: Annotated[
        Mobility | None,
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
        str | None, Field(description='with sharp edges: material = "Ge"; by default that of the layers')
    ] = None

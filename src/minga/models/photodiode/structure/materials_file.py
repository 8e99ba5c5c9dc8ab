"""Files of material parameters with their sources."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from minga.errors import CaseError
from minga.models.photodiode.structure.heavy import JainRoulston, Level, Slotboom
from minga.models.photodiode.structure.indices import IndexSaid, index_of
from minga.models.photodiode.structure.ionisation import SetSettings
from minga.models.photodiode.structure.limits import check_material
from minga.models.photodiode.structure.materials import Absorption, CaugheyThomas, Material, Saturation
from minga.models.photodiode.structure.tunnelling import TunnellingSetSettings
from minga.models.photodiode.structure.vurgaftman import alloys
from minga.schema import validate

__all__ = ["read_materials", "shipped_materials"]

_STRICT = ConfigDict(extra="forbid", frozen=True)
_HERE: Final = Path(__file__).parent


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class _Cited(BaseModel):
    model_config = _STRICT

    source: Annotated[str, Field(description='source of the number: source = "..."')] = ""


class _Number(_Cited):
    value: Annotated[Positive, Field(description="a number above 0: value = 1.344")]


class _NumberOrNone(_Cited):
    value: Annotated[NotNegative, Field(description="a number, 0 or above: value = 0.0")]


Cited = Annotated[Positive | _Number, Field(description='a number, or {value = ..., source = "..."}')]
CitedOrNone = Annotated[NotNegative | _NumberOrNone, Field(description='a number, or {value = ..., source = "..."}')]


class _CaugheyThomas(_Cited):
    max: Annotated[Positive, Field(description="cm2/Vs: max = 5200.0")]
    min: Annotated[NotNegative, Field(description="cm2/Vs: min = 400.0")]
    reference: Annotated[Positive, Field(description="1/cm3: reference = 3e17")]
    exponent: Annotated[Positive, Field(description="exponent = 0.47")]
    max_exponent: Annotated[
        Number | None, Field(description="exponent of 300 K/T by which max scales: max_exponent = 2.0")
    ] = None
    reference_exponent: Annotated[
        Number, Field(description="exponent of T/300 K by which reference scales: reference_exponent = 3.0")
    ] = 0.0


class _Saturation(_Cited):
    velocity_n: Annotated[Positive, Field(description="cm/s: velocity_n = 1e7")]
    velocity_p: Annotated[Positive, Field(description="cm/s: velocity_p = 1e7")]
    exponent_n: Annotated[Positive, Field(description="exponent_n = 1.0")] = 1.0
    exponent_p: Annotated[Positive, Field(description="exponent_p = 1.0")] = 1.0
    heat: Annotated[
        tuple[Number, Number] | None,
        Field(description="exponents of 300 K/T for electrons and holes: heat = [0.87, 0.52]"),
    ] = None


class _Absorption(_Cited):
    wavelengths: Annotated[tuple[Positive, ...], Field(min_length=1, description="nm, ascending")]
    coefficients: Annotated[tuple[Positive, ...], Field(min_length=1, description="1/cm, one for each wavelength")]

    @model_validator(mode="after")
    def _fit(self) -> _Absorption:
        if len(self.wavelengths) != len(self.coefficients):
            raise ValueError("as many coefficients as wavelengths")
        if any(b <= a for a, b in zip(self.wavelengths, self.wavelengths[1:])):
            raise ValueError("ascending wavelengths")
        return self


class _Varshni(_Cited):
    alpha: Annotated[Positive, Field(description="eV/K")]
    beta: Annotated[NotNegative, Field(description="K")]


class _Slotboom(_Cited):
    energy: Annotated[Positive, Field(description="eV: energy = 6.92e-3")]
    reference: Annotated[Positive, Field(description="1/cm3: reference = 1.3e17")]
    constant: Annotated[NotNegative, Field(description="constant = 0.5")] = 0.5


Coefficients = tuple[NotNegative, NotNegative, NotNegative]


class _JainRoulston(_Cited):
    n: Annotated[Coefficients, Field(description="a (eV cm), b (eV cm^3/4), c (eV cm^3/2) of n: n = [17.2e-9, ...]")]
    p: Annotated[Coefficients, Field(description="the same of p")]


class _Level(_Cited):
    energy: Annotated[Positive, Field(description="eV below the band: energy = 0.045")]
    degeneracy: Annotated[Positive, Field(description="degeneracy = 2.0")]
    reduction: Annotated[NotNegative, Field(description="eV cm, times the cube root of the impurities")] = 0.0


class _MaterialSettings(BaseModel):
    model_config = _STRICT

    gap: Annotated[Cited, Field(description="eV: gap = 1.344")]
    affinity: Annotated[Cited, Field(description="eV: affinity = 4.38")]
    permittivity: Annotated[Cited, Field(description="relative: permittivity = 12.5")]
    nc: Annotated[Cited, Field(description="1/cm3: nc = 5.7e17")]
    nv: Annotated[Cited, Field(description="1/cm3: nv = 1.1e19")]
    ni: Annotated[Cited | None, Field(description="1/cm3; by default it follows from gap, nc and nv")] = None
    mobility_n: Annotated[Cited, Field(description="cm2/Vs: mobility_n = 4600.0")]
    mobility_p: Annotated[Cited, Field(description="cm2/Vs: mobility_p = 150.0")]
    tau_n: Annotated[Cited, Field(description="s: tau_n = 1e-9")]
    tau_p: Annotated[Cited, Field(description="s: tau_p = 1e-9")]
    radiative: Annotated[CitedOrNone, Field(description="cm3/s")] = 0.0
    auger_n: Annotated[CitedOrNone, Field(description="cm6/s")] = 0.0
    auger_p: Annotated[CitedOrNone, Field(description="cm6/s")] = 0.0
    solubility_n: Annotated[Cited | None, Field(description="1/cm3")] = None
    solubility_p: Annotated[Cited | None, Field(description="1/cm3")] = None
    caughey_thomas_n: _CaugheyThomas | None = None
    caughey_thomas_p: _CaugheyThomas | None = None
    saturation: _Saturation | None = None
    absorption: _Absorption | None = None
    index: Annotated[
        IndexSaid | None, Field(description='n, [n, k], a shipped table or a file of nm, n, k: index = "Si"')
    ] = None
    varshni: _Varshni | None = None
    x: Annotated[float | None, Field(ge=0, le=1, description="composition of AlGaAs, InGaAs or InAlAs: x = 0.48")] = (
        None
    )
    narrowing: Annotated[
        _Slotboom | _JainRoulston | None,
        Field(description="narrowing = {energy = ..., reference = ...}, or {n = [a, b, c], p = [a, b, c]}"),
    ] = None
    donor: _Level | None = None
    acceptor: _Level | None = None
    tunnelling: Annotated[
        str | TunnellingSetSettings | None,
        Field(description='tunnelling = "hurkx", "kane" for a direct gap, or {a = ..., b = ..., power = 2.0}'),
    ] = None
    tunnelling_mass: Annotated[
        Cited | None, Field(description="relative to the mass of the electron: tunnelling_mass = 0.041")
    ] = None
    ionisation: Annotated[
        str | SetSettings | None,
        Field(description='ionisation = "cook", or {electrons = [{a = ..., b = ...}], holes = [{a = ..., b = ...}]}'),
    ] = None


_PLAIN: Final[dict[type, Any]] = {
    _CaugheyThomas: CaugheyThomas,
    _Saturation: Saturation,
    _Slotboom: Slotboom,
    _JainRoulston: JainRoulston,
    _Level: Level,
}
"""Classes of properties whose files have their attributes."""


def _material(name: str, table: Mapping[str, Any], directory: Path) -> Material:
    said = validate(_MaterialSettings, table, name, thing="a file of materials")
    values: dict[str, Any] = {"name": name}
    sources: dict[str, str] = {}
    for item in fields(Material):
        found: Any = getattr(said, item.name, None)
        if isinstance(found, _Cited) and found.source:
            sources[item.name] = found.source
        if (plain := _PLAIN.get(type(found))) is not None:
            found = plain(**found.model_dump(exclude={"source"}))
        match found:
            case _Number() | _NumberOrNone():
                found = found.value
            case _Absorption():
                found = Absorption(found.wavelengths, found.coefficients)
            case SetSettings() | TunnellingSetSettings():
                found = found.made(name)
            case _Varshni():
                found = (found.alpha, found.beta)
        if found is not None:
            values[item.name] = found
    if said.x is not None:
        values["alloy"] = _alloy(name, said.x)
    if said.index is not None:
        index = values["index"] = index_of(said.index, directory, f"{name}.index")
        sources |= {"index": index.source} if index.source else {}
    material = Material(**values, sources=sources)
    check_material(material)
    return material


def _alloy(name: str, x: float) -> tuple[str, float]:
    if name not in alloys():
        raise CaseError(f"{name} has no x", key=f"{name}.x", remedy=f"leave it out; {', '.join(alloys())} have one")
    return name, x


def read_materials(path: Path) -> dict[str, Material]:
    """Return the materials of a TOML file, by name.

    Raises
    ------
    CaseError
        If the file cannot be read or is invalid; the error names the file and the key.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CaseError(f"{path.name} cannot be read: {error}", key="photodiode.materials", where=str(path)) from None
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise CaseError(
                f"{name!r} in {path.name} is no table",
                key="photodiode.materials",
                where=str(path),
                remedy="write a table for each material: [Ge] gap = 0.66 ...",
            )
    try:
        return {name: _material(name, table, path.parent) for name, table in tables.items()}
    except CaseError as error:
        error.where = error.where or str(path)
        raise


@cache
def shipped_materials() -> dict[str, Material]:
    """Return the materials shipped with minga, by name."""
    return read_materials(_HERE / "materials.toml")

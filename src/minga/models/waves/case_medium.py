"""Medium described by a case, with its shape and spacing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from minga.case.files import locate
from minga.errors import CaseError, suggest
from minga.models.waves.attenuation import Attenuation, relaxation_of
from minga.models.waves.boundary import Pairs, Random, domain_of, kinds
from minga.models.waves.domain import axes_of
from minga.models.waves.media import NAMED, from_volume, is_zero, named_medium, of_synthetic, only_value
from minga.models.waves.media_files import ENDINGS, Volume, open_volume, quantities
from minga.models.waves.medium import Medium, Quantity, Sampler
from minga.models.waves.preparation import step_limit
from minga.models.waves.settings import (
    FORM,
    AttenuationSettings,
    FletcherSettings,
    MediumSettings,
    QuantityFile,
    SyntheticSettings,
)
from minga.models.waves.stability import Extremes, extremes_of
from minga.models.waves.synthetic import QUANTITIES, Layer, synthetic
from minga.schema import validate

__all__ = ["FoundMedium", "attenuation_of", "cells_of", "check_inside", "files_of", "find_medium", "spacing_of"]

KEY = "fletcher.medium"
ENTRIES = (*QUANTITIES, "rho")
"""Quantities of the table of a medium."""
_MOST_ANISOTROPY = 2.0

Shape = tuple[int, ...]
Spacing = tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FoundMedium:
    """A medium with the shape of its grid, and the distances between cells along each axis in m."""

    medium: Medium
    shape: Shape
    spacing: Spacing

    @property
    def axes(self) -> str:
        """Names of the axes."""
        return axes_of(len(self.shape))

    def extremes(self, order: int, sigma: float, form: str, faces: Pairs, *, sample: bool = False) -> Extremes:
        """Inspect every cell, or a sample; raise CaseError, with the place, for unphysical values."""
        sampler = Sampler(self.medium, self.shape, tuple(low.cells for low, _ in faces))
        tilted = not (self.medium.isotropic or self.medium.vertical)
        divergence = form == "selfadjoint" and tilted
        return extremes_of(
            sampler,
            self.spacing,
            order,
            sigma,
            divergence=divergence,
            scrambled=bool(kinds(faces, Random)),
            sample=sample,
            domain=domain_of(self.shape, self.spacing, faces),
        )

    def limit(self, extremes: Extremes, time_order: int, attenuation: Attenuation | None, faces: Pairs) -> float:
        """Return the largest stable time step, s."""
        domain = domain_of(self.shape, self.spacing, faces)
        relaxation = None if attenuation is None else relaxation_of(attenuation, domain)
        return step_limit(extremes, time_order, faces, relaxation)

    def check_inside(self, points: Sequence[Sequence[float]], key: str, what: str) -> None:
        """Raise CaseError for a point, in metres from the first cell, that lies beyond the last cell."""
        check_inside(self.shape, self.spacing, points, key, what)


def attenuation_of(said: AttenuationSettings | None) -> Attenuation | None:
    """Return the attenuation that a case describes, if it does."""
    if said is None:
        return None
    return Attenuation(said.q, said.band, said.reference, said.frequencies, said.qs)


def check_inside(shape: Shape, spacing: Spacing, points: Sequence[Sequence[float]], key: str, what: str) -> None:
    """Raise CaseError for a point, in metres from the first cell, that lies beyond the last cell."""
    axes = axes_of(len(shape))
    ends = [(n - 1) * h for n, h in zip(shape, spacing)]
    form = f"positions are [{', '.join(axes)}] in metres"
    for point in points:
        if len(point) != len(ends):
            raise CaseError(
                f"{what} lies at {list(point)}; the model has the axes {', '.join(axes)}", key=key, remedy=form
            )
        for name, value, end, step in zip(axes, point, ends, spacing):
            if not -1e-6 * step <= value <= end + 1e-6 * step:
                raise CaseError(
                    f"{what} lies at {name} = {value:g} m, outside the model, which goes from 0 to {end:g} m",
                    key=key,
                    remedy=f"choose {name} between 0 and {end:g}; {form}",
                )


def find_medium(
    settings: FletcherSettings, shape: Sequence[int] | None, directory: Path, *, sample: bool = False
) -> FoundMedium:
    """Return the medium of a case.

    With `sample`, only a part of each file is read whose size does not grow with the file.

    Raises
    ------
    CaseError
        If a file is missing or the inputs are inconsistent.
    """
    said = _parsed(settings.medium)
    volumes, keys = _volumes(said, directory)
    cells = cells_of(shape, volumes, keys)
    spacing = spacing_of(settings.spacing, axes_of(len(cells)), volumes, keys)
    if isinstance(said, str) and not volumes:
        return FoundMedium(named_medium(said, len(cells)), cells, spacing)
    if isinstance(said, SyntheticSettings):
        return FoundMedium(_synthetic(said, cells, spacing), cells, spacing)
    entries: dict[str, Quantity] = {}
    for name in ENTRIES:
        given = None if isinstance(said, str) else getattr(said, name)
        angles = said.angles if isinstance(said, MediumSettings) else None
        if name in volumes:
            unit = given.unit if isinstance(given, QuantityFile) else None
            values = from_volume(name, volumes[name], unit, angles, keys[name])
            # Quantities that are 0 everywhere need not be stored or used in computations.
            entries[name] = 0.0 if name != "vp" and is_zero(values, cells, sample) else values
        elif given is not None:
            entries[name] = _number(name, float(given), angles)
    if "rho" in volumes and any(callable(entries.get(name)) or entries.get(name) for name in ("epsilon", "delta")):
        alike = only_value(entries["rho"], cells, sample)
        entries["rho"] = entries["rho"] if alike is None else alike
    return FoundMedium(Medium(**entries), cells, spacing)


def _parsed(said: object) -> str | MediumSettings | SyntheticSettings:
    """Return the entry `medium`: a name, the name of a file, or one of two tables."""
    if isinstance(said, Mapping):
        table = {str(key): value for key, value in said.items()}
        if "synthetic" in table:
            return validate(SyntheticSettings, table, KEY)
        if "density" in table:
            raise CaseError(
                f"unknown key '{KEY}.density'",
                key=f"{KEY}.density",
                suggestion="rho",
                remedy='write rho = "rho.npy"; density = true is for synthetic media',
            )
        return validate(MediumSettings, table, KEY)
    if not isinstance(said, str):
        raise CaseError(f"expected a name or a table, found {said!r}", key=KEY, remedy=FORM)
    if said not in NAMED and not Path(said).suffix:
        raise CaseError(f"there is no medium {said!r}", key=KEY, suggestion=suggest(said, NAMED), remedy=FORM)
    return said


def _volumes(
    medium: str | MediumSettings | SyntheticSettings, directory: Path
) -> tuple[dict[str, Volume], dict[str, str]]:
    """Return the files of a medium by quantity, and the keys of the case that name them."""
    if isinstance(medium, SyntheticSettings) or medium in NAMED:
        return {}, {}
    if isinstance(medium, str):
        path = locate(medium, directory)
        if path.suffix.lower() not in ENDINGS:
            raise CaseError(f"the kind of file {medium!r} is unknown", key=KEY, remedy=f"use {', '.join(ENDINGS)}")
        inside = quantities(path) if path.exists() else []
        if path.exists() and "vp" not in inside:
            raise CaseError(
                f"{medium} is not a complete medium: it has {', '.join(inside) or 'one quantity'}, but no vp",
                key=KEY,
                remedy=f'name the files one by one: medium = {{vp = "{medium}"}}, '
                'and variable = "..." if it has several',
            )
        names = [name for name in ENTRIES if name in inside] or ["vp"]
        return {name: open_volume(path, name, None, KEY) for name in names}, dict.fromkeys(names, KEY)
    return files_of(medium, ENTRIES, directory, KEY)


def files_of(
    medium: object, names: Sequence[str], directory: Path, key: str
) -> tuple[dict[str, Volume], dict[str, str]]:
    """Return the files of a table's quantities, and the keys of the case that name them."""
    found, keys = {}, {}
    for name in names:
        given = getattr(medium, name)
        if isinstance(given, str):
            given = QuantityFile(file=given)
        if isinstance(given, QuantityFile):
            keys[name] = f"{key}.{name}"
            path = locate(given.file, directory)
            variable = given.variable
            if variable is None and path.exists() and name in quantities(path):
                variable = name
            found[name] = open_volume(path, variable, given.axes, keys[name])
    return found, keys


def cells_of(shape: Sequence[int] | None, volumes: Mapping[str, Volume], keys: Mapping[str, str]) -> Shape:
    """Return the cells along each axis: those of the files, which must agree with the case and each other."""
    if shape is not None:
        axes_of(len(shape))
    wanted: tuple[int, ...] | None = None if shape is None else tuple(shape)
    owner = "grid.shape"
    for name, volume in volumes.items():
        if wanted is not None and volume.cells != wanted:
            turned = sorted(volume.cells) == sorted(wanted)
            raise CaseError(
                f"{volume.path.name} has {' x '.join(map(str, volume.cells))} values along {', '.join(volume.names)}; "
                f"{owner} has {' x '.join(map(str, wanted))}",
                key=keys[name],
                remedy="give the order of the file's axes, slowest first: "
                f'{{file = "...", axes = "{volume.names[::-1]}"}}'
                if turned and not volume.named
                else "leave grid.shape out to take that of the file"
                if owner == "grid.shape"
                else "all files of a medium have one shape",
            )
        wanted, owner = volume.cells, volume.path.name
    if wanted is None:
        raise CaseError(
            "waves need the number of cells along each axis",
            key="grid.shape",
            remedy="shape = [80, 80, 80] or [80, 80]",
        )
    if min(wanted) < 2:
        raise CaseError(
            f"waves need two cells or more along each axis, found {list(wanted)}",
            key="grid.shape",
            remedy="leave out an axis along which nothing varies: a section has the axes z, x",
        )
    return wanted


def spacing_of(
    said: float | Spacing | None, axes: str, volumes: Mapping[str, Volume], keys: Mapping[str, str]
) -> Spacing:
    """Return the distances between cells: those of the case, with which the files must agree, or of the files."""
    wanted = None if said is None else (float(said),) * len(axes) if isinstance(said, int | float) else said
    if wanted is not None and len(wanted) != len(axes):
        raise CaseError(
            f"{len(wanted)} distances between cells for the axes {', '.join(axes)}",
            key="fletcher.spacing",
            remedy="give one number, or one for each axis",
        )
    owner = "fletcher.spacing"
    for name, volume in volumes.items():
        if volume.spacing is None:
            continue
        if wanted is not None and any(abs(a - b) > 1e-4 * b for a, b in zip(volume.spacing, wanted)):
            raise CaseError(
                f"{volume.path.name} has cells of {_metres(volume.spacing)} m along {', '.join(axes)}; {owner} says "
                f"{_metres(wanted)}",
                key="fletcher.spacing" if owner == "fletcher.spacing" else keys[name],
                remedy="leave spacing out to take that of the file",
            )
        if wanted is None:
            wanted, owner = volume.spacing, volume.path.name
    if wanted is None:
        raise CaseError(
            "the distance between cells is missing" + (", and the medium's files do not state it" if volumes else ""),
            key="fletcher.spacing",
            remedy=f"write spacing = 12.5, or [{', '.join(f'd{axis}' for axis in axes)}]",
        )
    return wanted


def _synthetic(settings: SyntheticSettings, shape: Shape, spacing: Spacing) -> Medium:
    layered = settings.synthetic == "layered"
    for name in ("depths", "velocities", "dip", "azimuth"):
        if not layered and getattr(settings, name):
            raise CaseError(
                f"{settings.synthetic} has no {name}", key=f"{KEY}.{name}", remedy="only layered media have"
            )
    if len(settings.depths) != len(settings.velocities):
        raise CaseError(
            f"{len(settings.depths)} depths and {len(settings.velocities)} velocities", key=f"{KEY}.velocities",
            remedy="give as many of both",
        )  # fmt: skip
    layers = [Layer(top, vp) for top, vp in zip(settings.depths, settings.velocities)]
    try:
        formulas = synthetic(
            settings.synthetic, shape, spacing, seed=settings.seed, layers=layers, dip=settings.dip,
            azimuth=settings.azimuth, anisotropy=settings.anisotropy, density=settings.density,
        )  # fmt: skip
    except CaseError as error:
        error.key = f"{KEY}.{error.key or 'synthetic'}"
        raise
    return of_synthetic(formulas)


def _number(name: str, value: float, angles: str | None) -> float:
    """Return a number of the case in SI units and radians."""
    key = f"{KEY}.{name}"
    if name == "vp" and not 100 <= value <= 20000:
        raise CaseError(
            f"{value:g} m/s is not a plausible velocity of a rock", key=key, remedy="give velocities in m/s: vp = 3000"
        )
    if name == "rho" and value < 20:
        raise CaseError(
            f"{value:g} kg/m3 is not a plausible density of a rock",
            key=key,
            remedy="give densities in kg/m3: rho = 2000",
        )
    if name in ("theta", "phi"):
        if value and angles is None:
            raise CaseError(
                f"the unit of {name} = {value:g} is not given",
                key=key,
                remedy='add angles = "degree" or angles = "radian" to the medium',
            )
        return math.radians(value) if angles == "degree" else value
    if name not in ("vp", "rho") and value > _MOST_ANISOTROPY:
        raise CaseError(
            f"{value:g} is not a plausible {name} of a rock", key=key, remedy="give a fraction, not per cent: 0.2"
        )
    return value


def _metres(spacing: Sequence[float]) -> str:
    return ", ".join(f"{step:g}" for step in spacing)

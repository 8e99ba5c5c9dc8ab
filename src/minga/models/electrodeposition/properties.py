"""Properties of a concentrated solution as a case gives them: ion pairs, lists, or a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from minga.errors import CaseError, suggest
from minga.models.electrodeposition.concentrated import FIELDS, KEY, Rows, Solution, solution_of
from minga.models.electrodeposition.equilibrium import Equilibrium, equilibrium_of
from minga.models.electrodeposition.groups import resolves_charge
from minga.models.electrodeposition.problem import Constants, Problem, Species
from minga.models.electrodeposition.reaction import Reacting
from minga.models.electrodeposition.settings import ElectrodepositionSettings, SolutionSettings
from minga.models.electrodeposition.speciation import LOG_K, MOST, rows_of
from minga.paths import reason_of

__all__ = ["check_solution", "solution_for"]

OPTIONAL: Final = "factor"
"""Name of the column that may be missing."""
FORM: Final = (
    'write solution = "pairs", {file = "bath.csv"}, or {concentration = [10, 100], diffusivity = [6e-10, 5e-10], '
    "conductivity = [0.15, 0.86], transference = [0.4, 0.4]}"
)
"""Advice on how to write properties."""


def solution_for(
    settings: ElectrodepositionSettings, species: Sequence[Species], constants: Constants, directory: Path
) -> Solution | Equilibrium | None:
    """Return the concentrated solution of a case; None for a dilute one.

    Parameters
    ----------
    settings
        The table [electrodeposition].
    species, constants
        The ions and the physical constants of the case.
    directory
        Directory that files are relative to.

    Raises
    ------
    CaseError
        If the properties are impossible, or those of another bath are asked for.
    """
    said = settings.solution
    if said == "dilute":
        return None
    if isinstance(said, SolutionSettings):
        return solution_of(_rows(said, directory), species, constants)
    mixed = None if settings.scaled else equilibrium_of(species, constants)
    if mixed is not None:
        return mixed
    rows = None if settings.scaled else rows_of(species, constants)
    if rows is None:
        raise CaseError(
            f"ion pairs are known in baths of one sulphate of {' or '.join(LOG_K)}, with or without H2SO4, only",
            key=KEY,
            remedy='leave solution out, or give tables: solution = {file = "bath.csv"}',
        )
    bulk = max(s.bulk for s in species)
    if bulk > MOST:
        raise CaseError(
            f"ion pairs are known up to {MOST:g} mol/m3, but the bath has {bulk:g} mol/m3",
            key=KEY,
            remedy='give tables: solution = {file = "bath.csv"}',
        )
    return solution_of(rows, species, constants)


def check_solution(problem: Problem, scheme: str) -> None:
    """Reject concentrated solutions and capacities where the scheme, the grid or the reactions are not for them.

    Raises
    ------
    CaseError
        If the scheme has dilute solutions only, if cells resolve the Debye length, or if reactions take free ions.
    """
    layered = next((n for n in ("cathode", "anode") if getattr(problem, n).capacity), None)
    if problem.solution is not None:
        key, name, what = KEY, "solution", "the properties are those of a neutral solution"
    elif layered is not None:
        key, name, what = f"electrodeposition.{layered}.capacity", "capacity", "a capacity stands for layers of charge"
    else:
        return
    if scheme != "semi-implicit":
        raise CaseError(
            f"the scheme {scheme!r} has no {name}",
            key=key,
            remedy=f'write scheme = "semi-implicit", or leave {name} out',
        )
    reacting = any(isinstance(s, Reacting) for e in (problem.cathode, problem.anode) for s in e.surfaces.values())
    if reacting and isinstance(problem.solution, Equilibrium):
        raise CaseError(
            "lists of reactions take free ions, but the bath is in local equilibrium with its pairs and bisulphate",
            key=KEY,
            remedy="write the reactions ion by ion, such as Cu = {exchange = 30.0}, or leave solution out",
        )
    if resolves_charge(problem):
        raise CaseError(
            f"cells of this width resolve the Debye length, but {what}",
            key=key,
            remedy=f"leave debye out, use wider cells, or leave {name} out",
        )


def _rows(said: SolutionSettings, directory: Path) -> Rows:
    """Return the rows of a table, with conductivities over concentrations."""
    columns = {name: getattr(said, name) for name in FIELDS}
    if said.file is not None:
        given = [name for name, values in columns.items() if values is not None]
        if given:
            raise CaseError(
                f"both file and {given[0]} are given",
                key=f"{KEY}.{given[0]}",
                remedy="give the whole table in one place",
            )
        columns = _read(directory / said.file)
    for name in FIELDS:
        if columns[name] is None and name != OPTIONAL:
            raise CaseError(f"{name!r} is missing", key=f"{KEY}.{name}", remedy=FORM)
    arrays = {name: np.array(values, np.float64) for name, values in columns.items() if values is not None}
    c = arrays["concentration"]
    arrays.setdefault(OPTIONAL, np.ones(len(c)))
    for name, values in arrays.items():
        if len(values) != len(c):
            raise CaseError(
                f"{len(values)} values of {name}, but {len(c)} concentrations",
                key=f"{KEY}.{name}",
                remedy="give one value for each concentration",
            )
    if not (np.isfinite(c) & (c > 0)).all():
        raise CaseError(
            f"concentrations must be above 0, found {c[~(c > 0)][:1].tolist() or 'one that is not a number'}",
            key=f"{KEY}.concentration",
            remedy="leave out the row of pure water",
        )
    arrays["conductivity"] = arrays["conductivity"] / c
    return Rows(*(arrays[name] for name in FIELDS))


def _read(path: Path) -> dict[str, list[float] | None]:
    """Return the columns of a CSV file."""
    key = f"{KEY}.file"
    try:
        rows = [row for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) if any(map(str.strip, row))]
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"cannot read {path}: {reason_of(error)}", key=key, remedy="give a CSV file") from error
    header = [name.strip() for name in rows[0]] if rows else []
    for name in header:
        if name not in FIELDS:
            raise CaseError(
                f"{path.name} has an unknown column {name!r}",
                key=key,
                suggestion=suggest(name, FIELDS),
                remedy=f"the columns are {', '.join(FIELDS)}; the last one may be missing",
            )
    found: dict[str, list[float] | None] = dict.fromkeys(FIELDS)
    for place, name in enumerate(header):
        try:
            found[name] = [float(row[place]) for row in rows[1:]]
        except (ValueError, IndexError) as error:
            raise CaseError(
                f"column {name} of {path.name} has a cell that is missing or not a number: {error}",
                key=key,
                remedy="give one number in each cell, in SI units",
            ) from error
    return found

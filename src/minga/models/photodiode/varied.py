"""Devices of a case in which some entries vary."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minga.case.entries import put_entry
from minga.case.load import read_settings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of, problem_of
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device

__all__ = ["Varied"]


@dataclass(frozen=True, slots=True)
class Varied:
    """Devices of a case in which some entries vary; call it with their values to get a `Device`.

    Parameters
    ----------
    table
        The table [photodiode] of a case, as ``tomllib`` reads it.
    keys
        Keys of the entries that vary, without ``photodiode.``: an entry of a list is addressed by its name or number,
        ``"layers.Charge.n"``, ``"layers[2].thickness"``, ``"layers.Grade.y[1]"``, ``"light.power"``. Values are numbers
        in the units of the case file, um for lengths.
    directory
        Directory of the files that the case names.
    """

    table: Mapping[str, Any]
    keys: Sequence[str]
    directory: Path = Path()

    def __post_init__(self) -> None:
        if isinstance(self.keys, str) or not self.keys or not all(isinstance(key, str) for key in self.keys):
            raise CaseError(
                f"the entries that vary are {self.keys!r}", remedy='give a list of keys, such as ["layers.Charge.n"]'
            )
        object.__setattr__(self, "table", _as_lists(self.table))
        object.__setattr__(self, "keys", tuple(self.keys))

    def __call__(self, x: Sequence[float]) -> Device:
        """Return the device with the given values of the entries.

        Parameters
        ----------
        x
            One number for each key.

        Returns
        -------
        Device
            The device.

        Raises
        ------
        CaseError
            If a value or another entry is invalid.
        """
        return device_of(self._settings(x), self.directory)

    @property
    def problem(self) -> Problem:
        """The problem that the case states: voltages, curves, physics and accuracy.

        Raises
        ------
        CaseError
            If the case states no voltages: a search for breakdown chooses them during the run.
        """
        found = read_settings("photodiode", self.table)
        if found.mode == "breakdown":
            raise CaseError(
                'the problem of devices that vary with mode = "breakdown", which chooses its voltages during a run',
                key="photodiode.mode",
                remedy='write mode = "iv", and bias with voltages short of breakdown',
            )
        return problem_of(found)

    def _settings(self, x: Sequence[float]) -> PhotodiodeSettings:
        values = [float(value) for value in x]
        if len(values) != len(self.keys):
            raise CaseError(f"{len(values)} values for {len(self.keys)} entries", remedy="give one for each key")
        table = copy.deepcopy(dict(self.table))
        for key, value in zip(self.keys, values, strict=True):
            put_entry(table, key.removeprefix("photodiode."), value, key)
        found: PhotodiodeSettings = read_settings("photodiode", table)
        if found.mesh.adapt is not None:
            raise CaseError(
                "a device that varies on a mesh that is adapted",
                key="photodiode.mesh.adapt",
                remedy="leave adapt out: the mesh must move along with the device",
            )
        return found


def _as_lists(entry: Any) -> Any:
    """Return an entry of a table with its sequences as lists, whose elements can be replaced."""
    if isinstance(entry, Mapping):
        return {key: _as_lists(value) for key, value in entry.items()}
    return [_as_lists(value) for value in entry] if isinstance(entry, list | tuple) else entry

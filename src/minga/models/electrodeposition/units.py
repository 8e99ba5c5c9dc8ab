"""Units and descriptions of the observables of a cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from minga.case.observed import quantities

__all__ = ["scaled_units", "units_of"]

_ALL: Final = {
    "time": ("s", "time of the model"),
    "dt": ("s", "last time step"),
    "voltage": ("V", "voltage of the anode over the cathode"),
    "current": ("A/m2", "current density from the anode, over the cathode's plane"),
    "current_cathode": ("A/m2", "current density into the cathode, over its plane"),
    "current_middle": ("A/m2", "current density half way between the electrodes"),
    "J_over_Jlim": ("1", "current over the limiting current"),
    "total_*": ("mol", "amount of {} in the solution"),
    "least_concentration": ("mol/m3", "lowest concentration of any ion"),
    "greatest_concentration": ("mol/m3", "highest concentration of any ion"),
    "charge_imbalance": ("1", "charge of the solution over that of its salt"),
    "largest_velocity": ("m/s", "largest magnitude of a component of the velocity"),
    "deposit_cells": ("1", "cells that have turned solid"),
    "deposit_volume": ("m3", "volume of the deposit"),
    "deposit_charge": ("C", "charge that ions brought to the deposit"),
    "deposit_height": ("m", "height of the deposit over the cathode's plane"),
    "onset_time": ("s", "time when the deposit became porous"),
    "front_speed": ("m/s", "mean speed of the deposit's front since the beginning"),
    "segment": ("1", "number of the program's present segment"),
    "current_of_*": ("A/m2", "current density into the cathode by {}, over its plane"),
    "charge_of_*": ("C/m2", "charge that {} brought to the cathode, over its plane"),
    "current_efficiency": ("1", "fraction of the cathode's current that deposits the metal"),
    "charge_efficiency": ("1", "fraction of the cathode's charge that has deposited the metal"),
    "thickness": ("m", "mean thickness of compact metal that charge has brought to the cathode"),
    "f": ("Hz", "frequencies of the impedances"),
    "Z_re": ("ohm m2", "real part of the impedance"),
    "Z_im": ("ohm m2", "imaginary part of the impedance"),
    "Z_im_negative": ("ohm m2", "minus the imaginary part of the impedance"),
    "Z_size": ("ohm m2", "size of the impedance"),
    "Z_phase": ("degree", "phase of the impedance"),
    "peak_potential": ("V", "potential or voltage at the peak of each ramp"),
    "peak_current": ("A/m2", "current density at the peak of each ramp"),
    "peak_separation": ("V", "distance of the peaks of each ramp and the next"),
    "cathode_potential": ("V", "potential of the cathode against the reference electrode"),
    "charge": ("C/m2", "charge that ions brought to the cathode, over its plane"),
    "depleted_to": ("m", "highest place where the ion is depleted"),
    "enriched_to": ("m", "lowest place where the ion is enriched"),
    "steps_taken": ("1", "time steps taken"),
    "steps_rejected": ("1", "time steps tried and given up"),
    "rejected_unsolved": ("1", "time steps given up because a linear system was not solved"),
    "rejected_unconverged": ("1", "time steps given up because potential and ions did not agree"),
    "rejected_negative": ("1", "time steps given up because a concentration became negative"),
    "rejected_error": ("1", "time steps given up because their error was too large"),
    "rejected_voltage": ("1", "time steps given up because the voltage was far beyond its cut-off"),
    "rejected_limit": ("1", "time steps given up because a limit of the program was passed"),
    "passes": ("1", "passes over potential and ions"),
    "potential_iterations": ("1", "iterations of the potential's solver"),
    "species_iterations": ("1", "iterations of the ions' solver"),
    "sweeps": ("1", "sweeps of the last step"),
    "all_sweeps": ("1", "sweeps so far"),
    "residual": ("1", "largest residual of the last sweep, scaled"),
}


_PER: Final = {1: ("/m2", "m"), 2: ("/m", "m2"), 3: ("", "m3")}
"""Suffix of the unit of an amount, and unit of a volume, by the number of axes."""


def units_of(names: Iterable[str], ndim: int) -> dict[str, tuple[str, str]]:
    """Return the units and descriptions of observables by name, for a cell of `ndim` axes."""
    per, volume = _PER[ndim]
    extensive = {"total_*": f"mol{per}", "deposit_charge": f"C{per}", "deposit_volume": volume}
    return quantities(names, {**_ALL, **{name: (unit, _ALL[name][1]) for name, unit in extensive.items()}})


def scaled_units(units: Mapping[str, str | tuple[str, str]]) -> dict[str, str | tuple[str, str]]:
    """Return the units and descriptions of the observables of a scaled case, whose quantities are numbers."""
    found: dict[str, str | tuple[str, str]] = {}
    for name, said in units.items():
        unit, text = (said, "") if isinstance(said, str) else said
        unit = unit if unit == "degree" else "1"
        found[name] = (unit, text) if text else unit
    return found

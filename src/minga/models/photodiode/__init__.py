"""Drift-diffusion model of semiconductor layers: electrons, holes, light and impact ionisation.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.models.photodiode.model import photodiode
    from minga.models.photodiode.pointwise.setup import Pointwise
    from minga.models.photodiode.solver.problem import Problem
    from minga.models.photodiode.structure.device import Device, Terminal, device_from
    from minga.models.photodiode.structure.stack import Contact, Layer, Light, Region, Stack, Surface

__all__ = [
    "Contact",
    "Device",
    "Layer",
    "Light",
    "Pointwise",
    "Problem",
    "Region",
    "Stack",
    "Surface",
    "Terminal",
    "device_from",
    "photodiode",
]

__getattr__, __dir__ = attach(__name__, __file__)

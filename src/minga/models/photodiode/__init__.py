"""Drift-diffusion model of semiconductor layers: electrons, holes, light and impact ionisation.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.models.photodiode.dead_space import DeadSpaceNoise, dead_space_noise
    from minga.models.photodiode.derivatives import Slopes, slopes
    from minga.models.photodiode.model import photodiode
    from minga.models.photodiode.noise import LocalNoise, local_noise
    from minga.models.photodiode.pointwise.setup import Pointwise
    from minga.models.photodiode.solver.circuit import Circuit
    from minga.models.photodiode.solver.problem import Problem
    from minga.models.photodiode.solver.thresholds import DeadSpace
    from minga.models.photodiode.structure.beam import Beam
    from minga.models.photodiode.structure.build import device_from
    from minga.models.photodiode.structure.device import Device, Terminal
    from minga.models.photodiode.structure.illumination import Illumination, Spectrum, spectrum_of
    from minga.models.photodiode.structure.indices import Index
    from minga.models.photodiode.structure.pairs import Pairs
    from minga.models.photodiode.structure.regions import Polygon, Region
    from minga.models.photodiode.structure.stack import Coating, Contact, Layer, Light, Stack, Substrate, Surface
    from minga.models.photodiode.transients.model import transient
    from minga.models.photodiode.transients.problem import Transient
    from minga.models.photodiode.transients.waveform import Waveform
    from minga.models.photodiode.varied import Varied

__all__ = [
    "Beam",
    "Circuit",
    "Coating",
    "Contact",
    "DeadSpace",
    "DeadSpaceNoise",
    "Device",
    "Illumination",
    "Index",
    "Layer",
    "Light",
    "LocalNoise",
    "Pairs",
    "Pointwise",
    "Polygon",
    "Problem",
    "Region",
    "Slopes",
    "Spectrum",
    "Stack",
    "Substrate",
    "Surface",
    "Terminal",
    "Transient",
    "Varied",
    "Waveform",
    "dead_space_noise",
    "device_from",
    "local_noise",
    "photodiode",
    "slopes",
    "spectrum_of",
    "transient",
]

__getattr__, __dir__ = attach(__name__, __file__)

"""Seismic waves in tilted transversely isotropic media, after Fletcher, Du and Fowler (2009).

Names are imported when they are first used::

    from minga.models.waves import Medium, Sponge

    model = mg.fletcher((100, 100, 100), dt=1e-3, medium=Medium(3000.0, 0.24, 0.1, 0.785, 1.0), boundary=Sponge())
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.models.waves.adjoint import adjoint_fields, record_adjoint_step
    from minga.models.waves.attenuation import Attenuation
    from minga.models.waves.born import linearised_shots, shot_born
    from minga.models.waves.boundary import Cpml, Faces, Free, Periodic, Random, Release, Rigid, Sponge
    from minga.models.waves.frequency_bands import band_limited, run_in_bands
    from minga.models.waves.gradient import shot_gradient
    from minga.models.waves.image import Image
    from minga.models.waves.imaging import shot_image
    from minga.models.waves.injection import record_advance
    from minga.models.waves.inversion import Inversion
    from minga.models.waves.medium import Medium
    from minga.models.waves.migration import migrate
    from minga.models.waves.model import fletcher
    from minga.models.waves.preparation import prepare
    from minga.models.waves.receivers import Receivers, Taps
    from minga.models.waves.shot import Shot, shot_snapshots, shot_traces
    from minga.models.waves.source import PlaneSource, PointSource, add_sources
    from minga.models.waves.survey import Survey
    from minga.models.waves.survey_files import shots_of_segy, shots_of_sps
    from minga.models.waves.survey_frame import Frame
    from minga.models.waves.survey_geometry import points_between, shots_of_files, streamer
    from minga.models.waves.wavelets import Ormsby, Ricker, Wavelet
    from minga.models.waves.waves import Waves

    from . import elastic

__all__ = [
    "Attenuation",
    "Cpml",
    "Faces",
    "Frame",
    "Free",
    "Image",
    "Inversion",
    "Medium",
    "Ormsby",
    "Periodic",
    "PlaneSource",
    "PointSource",
    "Random",
    "Receivers",
    "Release",
    "Ricker",
    "Rigid",
    "Shot",
    "Sponge",
    "Survey",
    "Taps",
    "Wavelet",
    "Waves",
    "add_sources",
    "adjoint_fields",
    "band_limited",
    "elastic",
    "fletcher",
    "linearised_shots",
    "migrate",
    "points_between",
    "prepare",
    "record_adjoint_step",
    "record_advance",
    "run_in_bands",
    "shot_born",
    "shot_gradient",
    "shot_image",
    "shot_snapshots",
    "shot_traces",
    "shots_of_files",
    "shots_of_segy",
    "shots_of_sps",
    "streamer",
]

__getattr__, __dir__ = attach(__name__, __file__)

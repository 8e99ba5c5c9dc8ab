"""Time steps of waves with their boundaries and sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from minga.engine.program import Program
from minga.models.waves.absorption import Profiles, Stretched, record_matching
from minga.models.waves.absorption_tilted import record_tilted_matching
from minga.models.waves.boundary import Cpml, Sponge, kinds
from minga.models.waves.density_layers import record_flux_layers
from minga.models.waves.injection import record_advance
from minga.models.waves.source import Source
from minga.models.waves.sponge import damps_in_kernel, record_damping, sponge_profiles
from minga.models.waves.wavelets import Ricker
from minga.space.box import Box
from minga.space.field import STEP, Field

if TYPE_CHECKING:
    from minga.models.waves.elastic.sources import ElasticSource
    from minga.models.waves.waves import Waves

__all__ = ["Stepping", "lowest_peak", "stepping_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Stepping:
    """A time step of waves, with its boundaries and sources.

    Parameters
    ----------
    step
        The step.
    fields
        All fields that it uses.
    initial
        Initial values of the fields that do not start at 0: functions of a Box, or arrays on one axis.
    """

    step: Program
    fields: tuple[Field, ...]
    initial: Mapping[str, Callable[[Box], NDArray[np.float64]] | NDArray[np.float64]]


def stepping_of(waves: Waves, sources: Sequence[Source]) -> Stepping:
    """Return a time step of waves with its boundaries and sources.

    Parameters
    ----------
    waves
        The waves, from `prepare`.
    sources
        The sources.

    Returns
    -------
    Stepping
        The step.
    """
    step = Program("step")
    memories: tuple[Field, ...] = ()
    profiles: Profiles = {}
    if fused := damps_in_kernel(waves, sources):
        profiles = sponge_profiles(waves, waves.extremes.fastest_p)[0]

    def layers(stretched: Stretched) -> None:
        nonlocal memories
        if kinds(waves.faces, Cpml):
            record = record_matching if waves.equations.staggered is None else record_flux_layers
            matching = record_tilted_matching if waves.equations.kind == "tilted" else record
            memories += matching(step, waves, lowest_peak(sources), stretched, profiles)

    record_advance(step, waves, sources, [*profiles], layers)
    step.rotate(*waves.fields)
    if kinds(waves.faces, Sponge) and not fused:
        profiles |= record_damping(step, waves, waves.extremes.fastest_p)
    step.let(STEP, STEP + 1)
    relaxed = (*waves.corrections, *waves.memories, *waves.strengths)
    fields = (*waves.fields, *waves.increments, *waves.medium, *relaxed, *memories, *profiles)
    return Stepping(step, fields, {**waves.start(), **{item.name: values for item, values in profiles.items()}})


def lowest_peak(sources: Sequence[Source | ElasticSource]) -> float:
    """Return the lowest peak frequency of the sources; if none is known, that of the default Ricker wavelet."""
    known = [source.wavelet.peak for source in sources if source.wavelet.peak is not None]
    return min(known, default=Ricker().peak)

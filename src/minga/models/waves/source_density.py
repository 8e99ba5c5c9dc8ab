"""Amplitudes of sources between cells where the density changes.

A source between cells is spread over eight cells along each axis, and each of them takes its part of `s`, a mass, by
its own density. The volume that pushes the waves is the sum of weight / density over those cells, in place of
1 / density at the source: p is continuous across an interface, so that the waves are too large by the ratio of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from minga.models.waves.domain import Domain
from minga.models.waves.medium import Sampler
from minga.models.waves.source import PointSource
from minga.space.box import Box

__all__ = ["amplitude_ratio", "density_warnings"]

_TOLD: Final = 0.01
"""Relative error of amplitudes from which on they are told."""


def amplitude_ratio(source: PointSource, sampler: Sampler, domain: Domain) -> float:
    """Return the amplitude of a source's waves, relative to that of the same source on a cell of its density.

    Parameters
    ----------
    source
        The source.
    sampler
        Values of the medium on the grid.
    domain
        Cells of the model.
    """
    ((_, placed),) = source.placed(domain)
    if placed.single:
        return 1.0
    cell = tuple(
        round(x / h) + low for x, h, low in zip(_point(source, domain), domain.spacing, domain.low, strict=True)
    )
    here = float(sampler.values("rho", Box(cell, tuple(k + 1 for k in cell))).ravel()[0])
    weights = placed.products.reshape(placed.box.shape)
    return float((weights * here / sampler.values("rho", placed.box)).sum() / weights.sum())


def density_warnings(sources: Sequence[Any], sampler: Sampler, domain: Domain) -> Iterator[str]:
    """Yield a sentence for each point source whose amplitude a change of density falsifies.

    Sources with legacy amplitudes, which depend on the medium anyway, are left out, and so are dipoles.

    Parameters
    ----------
    sources
        The sources.
    sampler, domain
        As for `amplitude_ratio`.
    """
    for source in sources:
        if not isinstance(source, PointSource) or source.direction is not None or source.injection == "legacy":
            continue
        error = amplitude_ratio(source, sampler, domain) - 1.0
        if abs(error) > _TOLD:
            point = _point(source, domain)
            near = [round(x / h) * h for x, h in zip(point, domain.spacing, strict=True)]
            yield (
                f"the source at {_metres(point)} lies between cells beside a change of density, so that its waves are "
                f"about {100 * abs(error):.2g} % too {'large' if error > 0 else 'small'}: put it on a cell, "
                f"{_metres(near)}"
            )


def _point(source: PointSource, domain: Domain) -> Sequence[float]:
    return domain.middle if source.position is None else source.position


def _metres(point: Sequence[float]) -> str:
    return f"[{', '.join(f'{float(np.round(x, 3)):g}' for x in point)}]"

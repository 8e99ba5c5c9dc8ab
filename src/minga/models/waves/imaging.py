"""Images of reflectors with any boundary: waves of the source times adjoint waves of the data, over all time.

`minga.models.waves.migration` does the same without storing waves, with boundaries that conserve energy. These are
images, not gradients: they lack the derivative of the operator by the medium (see `minga.models.waves.gradient`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

from minga.engine.comm import Comm
from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang.cell import CellReader
from minga.lang.kernel import Kernel
from minga.models.waves.elastic.imaging import IMAGES, ElasticImage, record_correlation
from minga.models.waves.elastic.waves import ElasticWaves
from minga.models.waves.image import Image
from minga.models.waves.medium import Floats
from minga.models.waves.shot import Shot, ShotRun, checked_data
from minga.models.waves.waves import Waves
from minga.solve.adjoint.adjoint import MEMORY, adjoint
from minga.space.field import Field

__all__ = ["shot_image"]


@overload
def shot_image(
    waves: Waves, shot: Shot, *, memory: int = ..., threads: int = ..., comm: Comm | None = ..., layout: str = ...
) -> Image | None: ...


@overload
def shot_image(
    waves: ElasticWaves,
    shot: Shot,
    *,
    memory: int = ...,
    threads: int = ...,
    comm: Comm | None = ...,
    layout: str = ...,
) -> ElasticImage | None: ...


def shot_image(
    waves: Waves | ElasticWaves,
    shot: Shot,
    *,
    memory: int = MEMORY,
    threads: int = 1,
    comm: Comm | None = None,
    layout: str = "slabs",
) -> Image | ElasticImage | None:
    """Return the image of a shot by reverse time migration; collective.

    Parameters
    ----------
    waves
        Waves in a smooth medium with any boundary, from `minga.models.waves.prepare`, or from
        `minga.models.waves.elastic.prepare_elastic`.
    shot
        The shot, whose data are without the waves that came straight from the source.
    memory
        Bytes of each rank for states of the waves; with fewer, steps are computed again.
    threads
        Threads of each rank.
    comm
        Ranks that compute together; None: this process alone.
    layout
        Layout of the grid over the ranks.

    Returns
    -------
    Image, ElasticImage or None
        The image on rank 0, for elastic waves those of P to P and of P to S; None on other ranks.

    Raises
    ------
    CaseError
        If the data do not match the receivers.
    """
    if not isinstance(waves, Waves | ElasticWaves):
        raise CaseError(
            f"waves are a {type(waves).__name__}",
            key="waves",
            remedy="give the result of prepare() or prepare_elastic()",
        )
    data = checked_data(shot)
    run, watch = ShotRun(waves, shot), Program("watch")
    waves.watch(watch, shot.sources)
    elastic = isinstance(waves, ElasticWaves)
    images = {name: Field(name, waves.grid, "f8") for name in (IMAGES if elastic else ("image", "light"))}
    reverse = adjoint(run.stepping.step, waves.fields if elastic else waves.fields[:1])
    table = run.table(len(data))
    table.store(data)
    seed = table.injection(reverse.of)
    if isinstance(waves, ElasticWaves):
        record_correlation(seed, waves, reverse.of, images)
    else:
        _record_correlation(seed, waves, reverse.of, images)
    with run.engine(threads, comm, layout) as engine:
        for item in images.values():
            engine.set(item, 0.0)
        reverse.run(engine, table.steps, seed=seed, observe=watch if watch.operations else None, memory=memory)
        found = [engine.gather(item) for item in images.values()]
    whole: list[Floats] = [array for array in found if array is not None]
    if len(whole) < len(found):
        return None
    inside = waves.domain.inside.slices((0,) * waves.grid.ndim)
    *values, light = (array[inside].copy() for array in whole)
    stack = [Image(each, light, waves.domain.spacing) for each in values]
    return ElasticImage(*stack) if elastic else stack[0]


def _record_correlation(seed: Program, waves: Waves, of: Mapping[Field, Field], images: Mapping[str, Field]) -> None:
    """Record that a state is added to the image and its illumination."""
    p = waves.fields[0]
    seed.apply(_CORRELATE, p, of[p], *images.values())


def _correlate(p: CellReader, other: CellReader, image: CellReader, light: CellReader) -> None:
    here: Sequence[int] = (0,) * len(p.axes)
    image[here] = image[here] + p[here] * other[here]
    light[here] = light[here] + p[here] * p[here]


_CORRELATE = Kernel(_correlate)

"""Images of reflectors with any boundary: waves of the source times adjoint waves of the data, over all time.

`minga.models.waves.migration` does the same without storing waves, with boundaries that conserve energy. These are
images, not gradients: they lack the derivative of the operator by the medium (see `minga.models.waves.gradient`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minga.engine.comm import Comm
from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang.cell import CellReader
from minga.lang.kernel import Kernel
from minga.models.waves.medium import Floats
from minga.models.waves.shot import Shot, ShotRun, checked_data
from minga.models.waves.waves import Waves
from minga.solve.adjoint.adjoint import MEMORY, adjoint
from minga.space.field import Field

__all__ = ["Image", "shot_image"]


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """Image of one shot, or the sum of several: ``a + b`` stacks them.

    Parameters
    ----------
    values
        Sum over time of the source's p times the adjoint p, f8 of the model's shape.
    illumination
        Sum over time of the squares of the source's p.
    spacing
        Metres between cells along each axis.
    """

    values: Floats
    illumination: Floats
    spacing: tuple[float, ...]

    def __add__(self, other: Image) -> Image:
        return Image(self.values + other.values, self.illumination + other.illumination, self.spacing)

    def normalised(self, least: float = 1e-3) -> Image:
        """Return the image over its illumination, where that is not small: amplitudes at depth are those near sources.

        Parameters
        ----------
        least
            Part of the largest illumination that is added to it.

        Returns
        -------
        Image
            The image.
        """
        floor = least * float(self.illumination.max())
        return Image(
            self.values / (self.illumination + floor) if floor else self.values, self.illumination, self.spacing
        )

    def filtered(self) -> Image:
        """Return minus the Laplacian of the image, which removes the long waves along the paths of turning waves.

        Returns
        -------
        Image
            The image; cells at its ends count as continued by their own value.
        """
        total = np.zeros_like(self.values)
        for axis, h in enumerate(self.spacing):
            padded = np.pad(
                self.values, [(1, 1) if a == axis else (0, 0) for a in range(self.values.ndim)], mode="edge"
            )
            moved = np.moveaxis(padded, axis, 0)
            bend = (2 * moved[1:-1] - moved[2:] - moved[:-2]) / (h * h)
            total = total + np.moveaxis(bend, 0, axis)
        return Image(total, self.illumination, self.spacing)


def shot_image(
    waves: Waves,
    shot: Shot,
    *,
    memory: int = MEMORY,
    threads: int = 1,
    comm: Comm | None = None,
    layout: str = "slabs",
) -> Image | None:
    """Return the image of a shot by reverse time migration; collective.

    Parameters
    ----------
    waves
        Waves in a smooth medium, from `minga.models.waves.prepare`, with any boundary.
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
    Image or None
        The image on rank 0, None on other ranks.

    Raises
    ------
    CaseError
        If the data do not match the receivers.
    """
    if not isinstance(waves, Waves):
        raise CaseError(
            f"images are those of acoustic waves; found {type(waves).__name__}",
            key="waves",
            remedy="give the result of prepare(), or compute gradients by shot_gradient()",
        )
    data = checked_data(shot)
    run, watch = ShotRun(waves, shot), Program("watch")
    waves.watch(watch, shot.sources)
    p = waves.fields[0]
    reverse = adjoint(run.stepping.step, [p])
    image, light = (Field(name, waves.grid, "f8") for name in ("image", "illumination"))
    table = run.table(len(data))
    table.store(data)
    seed = table.injection(reverse.of)
    seed.apply(_CORRELATE, p, reverse.of[p], image, light)
    with run.engine(threads, comm, layout) as engine:
        for item in (image, light):
            engine.set(item, 0.0)
        reverse.run(engine, table.steps, seed=seed, observe=watch if watch.operations else None, memory=memory)
        found = [engine.gather(item) for item in (image, light)]
    whole = [array for array in found if array is not None]
    if len(whole) < len(found):
        return None
    inside = waves.domain.inside.slices((0,) * waves.grid.ndim)
    return Image(whole[0][inside].copy(), whole[1][inside].copy(), waves.spacing)


def _correlate(p: CellReader, other: CellReader, image: CellReader, light: CellReader) -> None:
    here: Sequence[int] = (0,) * len(p.axes)
    image[here] = image[here] + p[here] * other[here]
    light[here] = light[here] + p[here] * p[here]


_CORRELATE = Kernel(_correlate)

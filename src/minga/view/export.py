"""Pictures as a format of ``minga export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from minga.errors import CaseError
from minga.output.directory import write_whole
from minga.output.export import Export, ExportFormat

if TYPE_CHECKING:
    from minga.output.traces import Recorded

__all__ = ["PNG"]

_MOST_PIXELS: Final = 32768


def _write_png(export: Export) -> None:
    from minga.view.colours import values_shown
    from minga.view.pictures import draw

    if export.scale is not None:
        _write_cells(export, export.scale)
        return
    reader, field = export.reader, export.field
    title = reader.when(export.frame)
    attributes, coordinates = reader.attributes(field), reader.coordinates(field)
    draw(export.path, values_shown(export.values(), attributes), field, coordinates, attributes, title=title)


def _write_cells(export: Export, scale: int) -> None:
    """Draw cells as squares of pixels; numbers of colours in the palette of states are the states."""
    from minga.output.plane import plane_of
    from minga.view.colours import colour_scale, limits_of, values_shown
    from minga.view.raster import png, raster

    coordinates, attributes = export.reader.coordinates(export.field), export.reader.attributes(export.field)
    _check_scale(export.field, [len(axis.values) for axis in coordinates], scale)
    plane = plane_of(coordinates, attributes)
    values = np.atleast_2d(plane.laid(values_shown(export.values(), attributes)))
    shown = colour_scale(limits_of([values]), values.dtype, attributes)
    shown = shown if values.dtype.kind == "f" else shown.of_states()
    size = values.shape[1] * scale, values.shape[0] * scale
    write_whole(export.path, png(raster(values, shown, size, upwards=plane.upwards(values.dtype))))


def _check_scale(field: str, lengths: list[int], scale: int) -> None:
    """Raise CaseError where a picture of cells would have more than two axes, or too many pixels."""
    if len(lengths) > 2:
        raise CaseError(f"a picture of cells has two axes, {field} has {len(lengths)}", key="--scale")
    if scale < 1 or scale * max(lengths) > _MOST_PIXELS:
        raise CaseError(
            f"expected 1 pixel a cell or more, and at most {_MOST_PIXELS} on a side; found {scale}", key="--scale"
        )


def _write_receivers(path: Path, recorded: Recorded) -> None:
    from minga.view.seismogram import seismogram

    write_whole(path, seismogram(recorded))


PNG = ExportFormat("pictures, also of receivers", _write_png, write_receivers=_write_receivers, scale=True)

"""The command ``minga medium``: write synthetic media to files, and describe the contents of media files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.cli.memory import check_shape
from minga.errors import CaseError
from minga.models.waves.domain import AXES
from minga.models.waves.media_files import Volume, open_volume, quantities
from minga.models.waves.media_write import FORMS, write_medium
from minga.models.waves.medium import slabs
from minga.models.waves.synthetic import Layer, synthetic
from minga.paths import check_free
from minga.space.box import Box

__all__ = ["layers_of", "make", "show"]

_ANGLES = ("theta", "phi")


def make(
    kind: str, out: Path, shape: str, spacing: str, picture: Path | None, force: bool = False, **options: Any
) -> str:
    """Make a medium, write it, draw it if ``picture`` is given, and return a description of what was done."""
    cells = _numbers(shape, "--shape", int)
    steps = _numbers(spacing, "--spacing", float)
    if len(cells) not in AXES:
        raise CaseError(
            f"expected one to three numbers of cells, found {shape!r}", key="--shape",
            remedy="write --shape 100,200,200 along z, y, x, or --shape 100,200 along z, x",
        )  # fmt: skip
    if len(steps) not in (1, len(cells)):
        raise CaseError(f"expected one length in metres, or one for each axis, found {spacing!r}", key="--spacing")
    check_shape(cells)
    _check_picture(picture, force)
    if out.suffix not in FORMS:
        raise CaseError(f"cannot write {out.name!r}", key="OUT", remedy=f"name a file that ends in {', '.join(FORMS)}")
    medium = synthetic(kind, cells, steps * len(cells) if len(steps) == 1 else steps, **options)
    files = write_medium(medium, out)
    ranges = dict.fromkeys(medium.quantities, (math.inf, -math.inf))
    for box in slabs(medium.shape):
        for name, values in medium.values(box).items():
            low, high = ranges[name]
            ranges[name] = (min(low, float(values.min())), max(high, float(values.max())))
    if picture is not None:
        planes = _planes(medium.shape, lambda box: medium.values(box))
        _draw(picture, planes, medium.spacing, f"{kind}, {' x '.join(map(str, cells))} cells")
    lines = [
        f"{kind}, {' x '.join(map(str, medium.shape))} cells of {' x '.join(f'{s:g}' for s in medium.spacing)} m: "
        + (str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more")
    ]
    units = dict.fromkeys(_ANGLES, "radian") | {"vp": "m/s", "rho": "kg/m3"}
    lines += [_range(name, *found, units.get(name)) for name, found in ranges.items()]
    if picture is not None:
        lines.append(f"  slices are drawn in {picture}")
    return "\n".join(lines)


def layers_of(depths: str, velocities: str) -> Sequence[Layer]:
    """Return the layers that two lists of numbers describe; none if both are empty."""
    tops = _numbers(depths, "--depths", float) if depths else ()
    speeds = _numbers(velocities, "--velocities", float) if velocities else ()
    if len(tops) != len(speeds):
        raise CaseError(
            f"{len(tops)} depths but {len(speeds)} velocities were given",
            key="--velocities",
            remedy="give one velocity for each depth",
        )
    return [Layer(top, speed) for top, speed in zip(tops, speeds)]


def show(file: Path, variable: str | None, axes: str | None, picture: Path | None, force: bool = False) -> str:
    """Describe the contents of a medium file, and draw it if ``picture`` is given."""
    _check_picture(picture, force)
    names: Sequence[str | None] = [variable] if variable else quantities(file) if file.exists() else []
    volumes = {name or file.stem: open_volume(file, name, axes, "FILE") for name in names or [None]}
    first = next(iter(volumes.values()))
    lines = []
    for name, volume in volumes.items():
        if volume.cells != first.cells:
            raise CaseError(
                f"{name} has {volume.cells} values along {', '.join(volume.names)}, others have {first.cells}",
                key="FILE",
            )
        lines.append(_range(name, *_extremes(volume, name), volume.unit))
    spacing = "spacing unknown" if first.spacing is None else f"spacing {', '.join(f'{s:g}' for s in first.spacing)} m"
    order = f"axes {first.axes}" + ("" if first.named or axes else " (assumed: the file does not say)")
    if picture is not None:
        planes = _planes(first.cells, lambda box: {name: volume.values(box) for name, volume in volumes.items()})
        _draw(picture, planes, first.spacing or (1.0,) * len(first.cells), file.name)
        lines.append(f"  slices are drawn in {picture}")
    return "\n".join(
        [
            f"{file}: {' x '.join(map(str, first.cells))} values along {', '.join(first.names)}; {spacing}; {order}",
            *lines,
        ]
    )


def _extremes(volume: Volume, name: str) -> tuple[float, float]:
    low, high = math.inf, -math.inf
    for box in slabs(volume.cells):
        values = volume.values(box)
        if not np.isfinite(values).all():
            cell = np.argwhere(~np.isfinite(values))[0] + box.lo
            raise CaseError(
                f"{name} is not finite in cell {tuple(map(int, cell))} ({', '.join(volume.names)})", key="FILE"
            )
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    return low, high


def _range(name: str, low: float, high: float, unit: str | None) -> str:
    said = "" if unit in (None, "1") else f" {unit}"
    span = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
    return f"  {name:8s} {span}{said}"


def _planes(shape: Sequence[int], values: Any) -> Mapping[str, list[NDArray[Any]]]:
    """Return for every quantity the planes through the middle: normal to y, to x and to z; a section is itself one."""
    if len(shape) < 3:
        whole = values(Box((0,) * len(shape), tuple(shape)))
        return {name: [plane.reshape(shape[0], -1)] for name, plane in whole.items()}
    middle = [length // 2 for length in shape]
    found: dict[str, list[NDArray[Any]]] = {}
    for axis in (1, 2, 0):
        low, high = [0, 0, 0], list(shape)
        low[axis], high[axis] = middle[axis], middle[axis] + 1
        for name, plane in values(Box(tuple(low), tuple(high))).items():
            found.setdefault(name, []).append(np.squeeze(plane, axis))
    return found


def _draw(picture: Path, planes: Mapping[str, list[NDArray[Any]]], spacing: Sequence[float], title: str) -> None:
    from minga.view.medium_plot import draw_medium

    draw_medium(picture, planes, spacing, title)


def _check_picture(picture: Path | None, force: bool) -> None:
    if picture is not None and picture.suffix not in (".png", ".svg"):
        raise CaseError(f"cannot draw into {picture}", key="--picture", remedy="name a file .png or .svg")
    if picture is not None and not picture.parent.is_dir():
        raise CaseError(f"the directory {str(picture.parent)!r} does not exist", key="--picture")
    if picture is not None:
        check_free(picture, force, key="--picture")


def _numbers(text: str, key: str, kind: type[Any]) -> tuple[Any, ...]:
    try:
        found = tuple(kind(word) for word in text.replace("x", ",").split(",") if word.strip())
    except ValueError:
        found = ()
    least = 0.0 if key in ("--shape", "--spacing") else -1e-9
    if not found or not all(math.isfinite(value) and value > least for value in found):
        what = "whole numbers above 0" if kind is int else "numbers that are not negative"
        raise CaseError(f"expected {what} separated by commas, found {text!r}", key=key)
    return found

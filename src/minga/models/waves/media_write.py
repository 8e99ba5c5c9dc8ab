"""Writing of media to files, a few planes at a time: a Zarr store, or a NumPy or Madagascar file per quantity."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from minga.errors import CaseError
from minga.models.waves.domain import axes_of
from minga.models.waves.medium import slabs
from minga.models.waves.synthetic import Synthetic
from minga.output.directory import disk_errors, write_whole

__all__ = ["FORMS", "write_medium"]

FORMS: Final = (".zarr", ".npy", ".rsf")
"""Endings of files that can be written."""

_UNITS: Final = {"vp": "m/s", "epsilon": "1", "delta": "1", "theta": "radian", "phi": "radian", "rho": "kg/m3"}
_WORDS: Final = {
    "vp": "P velocity along the axis of symmetry", "epsilon": "Thomsen epsilon", "delta": "Thomsen delta",
    "theta": "dip of the axis from the vertical", "phi": "azimuth of the axis from x to y",
    "rho": "density",
}  # fmt: skip
_CHUNK = 128


def write_medium(medium: Synthetic, path: Path, progress: Callable[[float], None] | None = None) -> list[Path]:
    """Write a medium and return the files.

    `model.zarr` receives all quantities; `model.npy` is written as `model-vp.npy` and so on. Files appear under their
    names once all of them are complete.

    Raises
    ------
    CaseError
        If the ending is unknown, or a file exists already.
    RunError
        If the disk reports an error.
    """
    if path.suffix not in FORMS:
        raise CaseError(f"cannot write {path.name!r}", remedy=f"name a file that ends in {', '.join(FORMS)}")
    if not path.parent.is_dir():
        raise CaseError(f"the directory {str(path.parent)!r} does not exist")
    names = (
        [path.name] if path.suffix == ".zarr" else [f"{path.stem}-{name}{path.suffix}" for name in medium.quantities]
    )
    files = [path.with_name(name) for name in names]
    taken = [file for file in files if file.exists()]
    if taken:
        raise CaseError(f"{taken[0]} exists already; nothing is overwritten", remedy="name another file")
    parts = [file.with_name(f".{file.name}.partial") for file in files]
    with disk_errors(path):
        try:
            targets = _zarr(medium, parts[0]) if path.suffix == ".zarr" else [_array(medium, p, path) for p in parts]
            for box in slabs(medium.shape):
                values = medium.values(box)
                for name, target in zip(medium.quantities, targets):
                    target[box.lo[0] : box.hi[0]] = values[name]
                if progress is not None:
                    progress(box.hi[0] / medium.shape[0])
            if path.suffix == ".zarr":
                _publish(parts[0])
            del targets
            for part, file, name in zip(parts, files, medium.quantities):
                if path.suffix == ".rsf":
                    part.replace(file.with_name(file.name + "@"))
                    write_whole(file, _rsf_header(medium, name, file.name + "@"))
                else:
                    part.replace(file)
        finally:
            for part in parts:
                shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink(missing_ok=True)
    return files


def _zarr(medium: Synthetic, path: Path) -> Sequence[Any]:
    import zarr

    group = zarr.open_group(path, mode="w", zarr_format=3)
    group.attrs.update({"title": f"synthetic medium: {medium.kind}", "Conventions": "CF-1.11"})
    for axis, (name, length, step) in enumerate(zip(axes_of(len(medium.shape)), medium.shape, medium.spacing)):
        positions = np.arange(length) * step
        about: dict[str, Any] = {"units": "m", "long_name": "depth" if axis == 0 else name, "axis": name.upper()}
        array = group.create_array(name, shape=positions.shape, chunks=positions.shape, dtype="f8",
                                   dimension_names=(name,), attributes=about)  # fmt: skip
        array[:] = positions
    chunks, names = tuple(min(_CHUNK, length) for length in medium.shape), tuple(axes_of(len(medium.shape)))
    return [
        group.create_array(name, shape=medium.shape, chunks=chunks, dtype="f4", dimension_names=names,
                           attributes={"units": _UNITS[name], "long_name": _WORDS[name]})
        for name in medium.quantities
    ]  # fmt: skip


def _publish(path: Path) -> None:
    import zarr

    with warnings.catch_warnings():
        # Zarr warns that consolidated metadata is only a convention; Zarr and xarray both read it.
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        zarr.consolidate_metadata(str(path), zarr_format=3)


def _array(medium: Synthetic, part: Path, path: Path) -> Any:
    if path.suffix == ".npy":
        return np.lib.format.open_memmap(part, mode="w+", dtype="f4", shape=medium.shape)
    return np.memmap(part, mode="w+", dtype="<f4", shape=medium.shape)


def _rsf_header(medium: Synthetic, name: str, data: str) -> str:
    def lines() -> Iterator[str]:
        yield f'in="{data}"'
        yield 'data_format="native_float" esize=4'
        axes = axes_of(len(medium.shape))
        for number, axis in enumerate(reversed(axes), 1):
            place = axes.index(axis)
            yield (
                f"n{number}={medium.shape[place]} d{number}={medium.spacing[place]!r} o{number}=0 "
                f'label{number}="{axis}" unit{number}="m"'
            )
        yield f'label="{name}" unit="{_UNITS[name]}"'

    return "\n".join(lines()) + "\n"

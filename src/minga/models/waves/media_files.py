"""Quantities of a medium in files: Zarr, NetCDF, NumPy, Madagascar and SEG-Y, read one box at a time.

Axis names, spacing and units are taken from the file if it states them, otherwise from the case. Every file is
presented in the order z (down), y, x, or z, x, in whatever order its axes are stored.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError, suggest
from minga.models.waves.domain import AXES, axes_of
from minga.output.netcdf_read import is_classic, read_classic
from minga.space.box import Box

__all__ = ["ENDINGS", "Volume", "open_volume", "quantities"]

_AXIS_WORDS: Final = {
    "z": "z", "depth": "z", "y": "y", "inline": "y", "in-line": "y", "crossline": "x", "cross-line": "x", "x": "x",
    "distance": "x", "lateral": "x",
}  # fmt: skip
_DIMENSIONS: Final = (2, 3)
"""Numbers of axes of the quantities in stores, which have coordinates on one axis beside them."""
_METRES: Final = {
    "m": 1.0, "metre": 1.0, "metres": 1.0, "meter": 1.0, "meters": 1.0, "": 1.0, "1": 1.0, "km": 1000.0, "ft": 0.3048,
    "feet": 0.3048,
}  # fmt: skip
_NUMBERS: Final = "fiu"

Read = Callable[[tuple[slice, ...]], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Volume:
    """One quantity in a file.

    Attributes
    ----------
    shape
        Numbers of values along the file's axes.
    axes
        Axes of the file from the slowest to the fastest, a permutation of "zyx", "zx" or "z".
    named
        Whether the file itself names its axes.
    spacing
        Distances between values in m along the axes of the model, if the file states them.
    unit
        Unit of the values, if the file states it.
    """

    path: Path
    shape: tuple[int, ...]
    read: Read
    axes: str
    named: bool = False
    spacing: tuple[float, ...] | None = None
    unit: str | None = None

    @property
    def names(self) -> str:
        """Axes of the model, "zyx", "zx" or "z"."""
        return axes_of(len(self.shape))

    @property
    def cells(self) -> tuple[int, ...]:
        """Numbers of values along the axes of the model."""
        return tuple(self.shape[self.axes.index(name)] for name in self.names)

    def values(self, box: Box) -> NDArray[np.float64]:
        """Return the values of a box of the model; only this part of the file is read."""
        low, high = dict(zip(self.names, box.lo)), dict(zip(self.names, box.hi))
        stored = self.read(tuple(slice(low[name], high[name]) for name in self.axes))
        return np.transpose(stored, [self.axes.index(name) for name in self.names]).astype("f8")


def open_volume(path: Path, variable: str | None = None, axes: str | None = None, key: str = "") -> Volume:
    """Open the quantity in a file; only its description is read.

    Parameters
    ----------
    path
        A file or Zarr store; its kind follows from its ending, see ENDINGS.
    variable
        Name of the quantity, for files with several of them.
    axes
        Order of the file's axes from the slowest to the fastest, such as ``"zyx"`` or ``"xz"``, if the file does not
        name them; by default z, y, x or z, x.
    key
        Key of the case's entry, for errors.

    Raises
    ------
    CaseError
        If the file cannot be read, or its contents are not as expected.
    """
    if not path.exists():
        close = suggest(path.name, [p.name for p in path.parent.glob("*")]) if path.parent.is_dir() else None
        raise CaseError(
            f"there is no file {str(path)!r}",
            key=key,
            suggestion=close,
            remedy=f"give a number, or a file that ends in {', '.join(ENDINGS)}",
        )
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        raise CaseError(
            f"the kind of file {path.name!r} is unknown", key=key,
            remedy=f"name a file that ends in {', '.join(ENDINGS)}; for values without a header, write a text file "
            f'{path.stem}.rsf: in="{path.name}" data_format="native_float" esize=4 n1=... d1=...',
        )  # fmt: skip
    try:
        volume = opener(path, variable)
    except CaseError as error:
        error.key = error.key or key
        raise
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise CaseError(f"cannot read {path}: {error}", key=key) from error
    if min(volume.shape) < 1:
        raise CaseError(f"{path} has no values: {volume.shape}", key=key)
    if axes is None and not volume.named and path.suffix.lower() == ".rsf":
        raise CaseError(
            f"{path.name} does not say which of its axes is depth (label1, label2, ...)", key=key,
            remedy=f'name them, slowest first: axes = "{volume.names[1:] + "z"}" if n1 is depth, axes = '
            f'"{volume.names}" if n1 is x and the last one is depth',
        )  # fmt: skip
    if axes is None or axes == volume.axes:
        return volume
    if sorted(axes) != sorted(volume.names):
        raise CaseError(
            f"axes: expected the letters {', '.join(volume.names)} in the file's order, slowest first, found {axes!r}",
            key=key,
        )
    if volume.named:
        raise CaseError(
            f"{path.name} names its axes itself: {volume.axes}, not {axes}", key=key, remedy="leave axes out"
        )
    if volume.spacing is not None:  # reorder what was read in the wrong order
        by_place = dict(zip(axes, (volume.spacing[volume.names.index(name)] for name in volume.axes)))
        return replace(volume, axes=axes, spacing=tuple(by_place[name] for name in volume.names))
    return replace(volume, axes=axes)


def quantities(path: Path) -> list[str]:
    """Return the names of the variables on two or three axes of a Zarr store or NetCDF file; none for other files."""
    if path.suffix == ".zarr":
        group = _zarr(path)
        return (
            [n for n, a in _arrays(group, path)[0].items() if a.ndim in _DIMENSIONS] if hasattr(group, "arrays") else []
        )
    if path.suffix in (".nc", ".nc4", ".cdf") and is_classic(path):
        return sorted(name for name, variable in read_classic(path).items() if variable.values.ndim in _DIMENSIONS)
    if path.suffix in (".nc", ".nc4", ".cdf"):
        return sorted(str(n) for n, a in _netcdf(path).data_vars.items() if a.ndim in _DIMENSIONS)
    return []


# NumPy ---------------------------------------------------------------------------------------------------------------
def _open_npy(path: Path, variable: str | None) -> Volume:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    _check_numbers(path, array.dtype)
    return Volume(path, array.shape, lambda part: np.asarray(array[part]), _default_axes(path, array.ndim))


def _default_axes(path: Path, count: int) -> str:
    """Return the axes of a file that does not name them; raise CaseError for a number of axes that no model has."""
    if count not in AXES:
        raise CaseError(
            f"{path.name} has values along {count} axes, expected one to three",
            remedy="write the part to be used as an array with the axes z, y, x or z, x",
        )
    return AXES[count]


# Zarr and NetCDF -----------------------------------------------------------------------------------------------------
def _open_zarr(path: Path, variable: str | None) -> Volume:
    node = _zarr(path)
    array, beside, unreadable = node, dict[str, Any](), dict[str, str]()
    if hasattr(node, "arrays"):
        beside, unreadable = _arrays(node, path)
        if variable in unreadable:
            raise CaseError(f"cannot read {variable} in {path}: {unreadable[variable]}")
        array = _chosen(path, variable, beside, unreadable)
    _check_numbers(path, array.dtype)
    dims = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    _check_codecs(path, array)

    def read(part: tuple[slice, ...]) -> NDArray[Any]:
        try:
            return np.asarray(array[part])
        except Exception as error:  # each codec has its own errors
            raise CaseError(
                f"cannot read the values in {path}: {_of_library(error)}",
                remedy="the store is damaged, or uses a codec that this version of Zarr lacks: write it again",
            ) from error

    numbers = {n: a for n, a in beside.items() if a.ndim == 1 and getattr(a.dtype, "kind", "") in _NUMBERS}
    for each in numbers.values():
        _check_codecs(path, each)
    positions = {n: (np.asarray(a[:]), dict(a.attrs)) for n, a in numbers.items()}
    return _described(path, array.shape, read, dims, positions, dict(array.attrs))


def _check_codecs(path: Path, array: Any) -> None:
    """Raise CaseError if reading an array would unpickle the contents of the file, which may execute arbitrary code."""
    codecs = [getattr(array.metadata, "compressor", None), *(getattr(array.metadata, "filters", None) or ())]
    if any("pickle" in str(getattr(codec, "codec_id", "")) for codec in codecs):
        raise CaseError(
            f"{path} holds pickled Python objects; these may execute code and are not read",
            remedy="write the numbers with another codec, such as zstd",
        )


def _zarr(path: Path) -> Any:
    import zarr

    try:
        return zarr.open(str(path), mode="r")
    except Exception as error:  # Zarr raises different errors for the various ways in which a directory is no store
        raise CaseError(
            f"{path} is not a Zarr store: {_of_library(error)}",
            remedy="name the directory that holds zarr.json or .zgroup",
        ) from error


def _arrays(group: Any, path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arrays of a store by name, and the reasons for those not opened: unknown types or codecs."""
    found, unreadable = {}, {}
    for name in sorted(folder.name for folder in path.iterdir() if folder.is_dir()):
        try:
            member = group[name]
        except KeyError:
            continue  # a folder that does not belong to the store
        except Exception as error:  # Zarr raises different errors for different unknown features
            unreadable[name] = _of_library(error)
            continue
        if hasattr(member, "ndim"):
            found[name] = member
    return found, unreadable


def _of_library(error: Exception) -> str:
    """Return the message of a library's error in one line."""
    return str(error).partition("\n")[0] or type(error).__name__


def _open_netcdf(path: Path, variable: str | None) -> Volume:
    if is_classic(path):
        return _open_classic(path, variable)
    dataset = _netcdf(path)
    array = _chosen(path, variable, {str(n): a for n, a in dataset.data_vars.items()})
    _check_numbers(path, array.dtype)
    positions = {str(n): (np.asarray(c.values), dict(c.attrs)) for n, c in dataset.coords.items() if c.ndim == 1}
    return _described(
        path, array.shape, lambda part: np.asarray(array[part].values), array.dims, positions, array.attrs
    )


def _open_classic(path: Path, variable: str | None) -> Volume:
    known = read_classic(path)
    values = _chosen(path, variable, {name: each.values for name, each in known.items()})
    found = next(each for each in known.values() if each.values is values)
    _check_numbers(path, found.values.dtype)
    positions = {n: (np.asarray(v.values), v.attributes) for n, v in known.items() if v.dims == (n,)}
    scale, offset = (
        float(np.ravel(found.attributes.get(n, d))[0]) for n, d in (("scale_factor", 1), ("add_offset", 0))
    )
    missing = np.ravel(found.attributes.get("_FillValue", found.attributes.get("missing_value", np.nan)))[0]

    def read(part: tuple[slice, ...]) -> NDArray[Any]:
        stored = np.asarray(found.values[part])
        values = stored.astype("f8")
        return np.where(stored == missing, np.nan, values * scale + offset)

    return _described(path, found.values.shape, read, found.dims, positions, found.attributes)


def _netcdf(path: Path) -> Any:
    import xarray

    try:
        return xarray.open_dataset(path, decode_times=False, mask_and_scale=True)
    except Exception as error:  # each of xarray's engines has its own errors
        said = str(error).partition("\n")[0]
        lacking = isinstance(error, ValueError) and "engine" in said
        raise CaseError(
            f"cannot read {path}: {said}",
            remedy="install a NetCDF reader, such as h5netcdf (pip install h5netcdf)" if lacking else None,
        ) from error


def _chosen(path: Path, variable: str | None, arrays: Mapping[str, Any], unreadable: Mapping[str, str] = {}) -> Any:
    """Return the requested array, or the only one on two or three axes; CaseError if it is missing or ambiguous."""
    known = {name: array for name, array in arrays.items() if array.ndim in _DIMENSIONS}
    if variable is None and len(known) == 1:
        return next(iter(known.values()))
    if variable in known:
        return known[variable]
    names = ", ".join(known) or "none"
    others = [f"{name} has {array.ndim}" for name, array in arrays.items() if array.ndim not in _DIMENSIONS]
    others += [f"{name} cannot be read: {why}" for name, why in unreadable.items()]
    beside = f" ({'; '.join(others)})" if others and not known else ""
    raise CaseError(
        f"{path.name} has no quantity {variable!r} on two or three axes; it has {names}{beside}"
        if variable
        else f"{path.name} has several quantities on two or three axes: {names}"
        if known
        else f"{path.name} has no quantity on two or three axes{beside}",
        suggestion=suggest(variable, known) if variable else None,
        remedy="choose one of them: variable = ..." if known else "name another file",
    )


def _described(
    path: Path,
    shape: Sequence[int],
    read: Read,
    dims: Sequence[str] | None,
    positions: dict[str, tuple[NDArray[Any], dict[str, Any]]],
    attributes: dict[str, Any],
) -> Volume:
    """Return a volume described by the names and coordinates of its axes."""
    axes, named = _axes(path, len(shape), [str(name) for name in dims or ()])
    steps = {}
    for name, letter in zip(dims or (), axes):
        if name in positions and len(positions[name][0]) == shape[axes.index(letter)] > 1:
            values, about = positions[name]
            steps[letter] = _step(path, name, values.astype("f8")) * _metres(path, name, str(about.get("units", "m")))
    spacing = tuple(steps[name] for name in axes_of(len(axes))) if len(steps) == len(axes) else None
    unit = attributes.get("units")
    return Volume(path, tuple(map(int, shape)), read, axes, named, spacing, None if unit is None else str(unit))


def _axes(path: Path, count: int, labels: Sequence[str]) -> tuple[str, bool]:
    """Return the axes of a file in its order, and whether its labels name them."""
    default = _default_axes(path, count)
    names = [_AXIS_WORDS.get(label.lower(), "") for label in labels]
    named = sorted(names) == sorted(default)
    return "".join(names) if named else default, named


def _metres(path: Path, name: str, unit: str) -> float:
    """Return the length of a unit in m; CaseError if it is unknown."""
    if unit.lower() not in _METRES:
        raise CaseError(
            f"{path.name}: positions along {name} are in {unit!r}",
            remedy="give them in m, km or ft",
        )
    return _METRES[unit.lower()]


def _step(path: Path, name: str, positions: NDArray[np.float64]) -> float:
    step = float(positions[-1] - positions[0]) / (len(positions) - 1)
    if not step > 0 or np.abs(np.diff(positions) - step).max() > 1e-3 * step:
        raise CaseError(
            f"{path.name}: positions along {name} are not evenly spaced", remedy="resample the file evenly first"
        )
    return step


# Madagascar ----------------------------------------------------------------------------------------------------------
def _open_rsf(path: Path, variable: str | None) -> Volume:
    header, data = _rsf_parts(path)
    form = header.get("data_format", "native_float")
    order = {"native_float": "<f4", "xdr_float": ">f4"}.get(form)
    if order is None:
        raise CaseError(f"{path.name}: data_format is {form!r}; native_float and xdr_float can be read")
    count = next(n for n in range(1, 10) if f"n{n + 1}" not in header) if "n1" in header else 0
    while count > 1 and header.get(f"n{count}") == "1":
        count -= 1
    try:
        lengths = [int(header[f"n{axis}"]) for axis in range(count, 0, -1)]
        steps = [float(header.get(f"d{axis}", "nan")) for axis in range(count, 0, -1)]
    except ValueError as error:
        raise CaseError(f"{path.name}: n and d should be numbers: {error}") from error
    labels = [header.get(f"label{axis}", "") for axis in range(count, 0, -1)]
    units = [_metres(path, f"axis {axis}", header.get(f"unit{axis}", "m")) for axis in range(count, 0, -1)]
    file, offset = data
    size = file.stat().st_size if file.is_file() else -1
    if size < offset + 4 * math.prod(lengths):
        found = "is not there" if size < 0 else f"has {size} bytes, {4 * math.prod(lengths) + offset} are needed"
        raise CaseError(f"{path.name}: its data {str(file)!r} {found}")
    array = np.memmap(file, order, mode="r", offset=offset, shape=tuple(lengths))
    axes, named = _axes(path, count, labels)
    spacing = None
    if all(math.isfinite(step) and step > 0 for step in steps):
        by_axis = dict(zip(axes, (step * scale for step, scale in zip(steps, units))))
        spacing = tuple(by_axis[name] for name in axes_of(count))
    unit = header.get("unit") or None
    return Volume(path, tuple(lengths), lambda part: np.asarray(array[part]), axes, named, spacing, unit)


def _rsf_parts(path: Path) -> tuple[dict[str, str], tuple[Path, int]]:
    """Return the last value of each key of a header, and the place of the data: another file, or behind the header."""
    with path.open("rb") as stream:
        start = stream.read(1 << 20)
    text, end, _ = start.partition(b"\x0c\x0c\x04")
    header: dict[str, str] = {}
    try:
        for word in shlex.split(text.decode("utf-8", "replace"), comments=False):
            name, equals, value = word.partition("=")
            if equals:
                header[name] = value
    except ValueError as error:
        raise CaseError(f"{path.name} is not an RSF header: {error}") from error
    if "in" not in header:
        raise CaseError(f"{path.name} is not an RSF header: it does not state where its data are (in=...)")
    if end or header["in"] == "stdin":
        return header, (path, len(text) + len(end))
    return header, (path.parent / header["in"], 0)


# SEG-Y ---------------------------------------------------------------------------------------------------------------
def _open_segy(path: Path, variable: str | None) -> Volume:
    from minga.output.segy import SegyFile

    file = SegyFile.open(path)
    inline, crossline = np.asarray(file.headers["inline"]), np.asarray(file.headers["crossline"])
    lines = np.unique(inline)
    across = len(file) // len(lines)
    regular = across * len(lines) == len(file) and np.array_equal(np.sort(inline), np.repeat(lines, across))
    outer = np.all(inline.reshape(len(lines), -1) == lines[:, None]) if regular else False
    if not (regular and outer and np.array_equal(np.tile(crossline[:across], len(lines)), crossline)):
        raise CaseError(
            f"{path.name}: its {len(file)} traces do not fill a volume: bytes 189-192 and 193-196 of their headers "
            "should count in-lines and, within each, cross-lines",
            remedy="write it as a sorted volume, or as .npy",
        )

    def read(part: tuple[slice, ...]) -> NDArray[Any]:
        in_lines = range(len(lines))[part[0]]
        if not len(in_lines):
            return np.zeros((0, len(range(across)[part[1]]), len(range(file.samples)[part[2]])), "f4")
        rows = [range(line * across, (line + 1) * across)[part[1]] for line in in_lines]
        return np.stack([file.traces(slice(row.start, row.stop), part[2]) for row in rows])

    if len(lines) == 1:  # a section
        return Volume(path, (across, file.samples), lambda part: read((slice(0, 1), *part))[0], axes="xz", named=True)
    return Volume(path, (len(lines), across, file.samples), read, axes="yxz", named=True)


def _check_numbers(path: Path, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in _NUMBERS:
        raise CaseError(f"{path.name} holds {dtype}, expected numbers")


_OPENERS: Final[dict[str, Callable[[Path, str | None], Volume]]] = {
    ".zarr": _open_zarr, ".nc": _open_netcdf, ".nc4": _open_netcdf, ".cdf": _open_netcdf, ".npy": _open_npy,
    ".rsf": _open_rsf, ".sgy": _open_segy, ".segy": _open_segy,
}  # fmt: skip
ENDINGS: Final[Iterable[str]] = tuple(_OPENERS)
"""Endings of files that can be read."""

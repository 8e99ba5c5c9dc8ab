"""SEG-Y, the trace format of the seismic industry: the part of revision 1 that volumes and shot records need.

A file consists of a textual header of 3200 bytes in EBCDIC, a binary header of 400 bytes, and traces, each with a
header of 240 bytes and its samples. All numbers are big-endian; samples are IEEE or IBM floats of four bytes. Source:
SEG Y rev 1 Data Exchange format, SEG Technical Standards Committee, 2002. Byte numbers count from 1, as they do there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.output.directory import appearing

__all__ = ["TRACE_KEYS", "SegyFile", "file_head", "ibm_to_ieee", "metres", "trace_bytes", "write_segy"]

_TEXT, _BINARY, _TRACE = 3200, 400, 240
_IBM, _IEEE = 1, 5
_FEET: Final = 2
_MOST_SAMPLES = 65535
_TRACES_AT_ONCE = 4096

_FILE_KEYS: Final = {
    "line": (5, ">i4"), "traces_per_ensemble": (13, ">i2"), "interval": (17, ">u2"), "samples": (21, ">u2"),
    "format": (25, ">i2"), "sorting": (29, ">i2"), "system": (55, ">i2"), "revision": (301, ">u2"),
    "fixed": (303, ">i2"), "more_text": (305, ">i2"),
}  # fmt: skip

TRACE_KEYS: Final = {
    "in_line": (1, ">i4"), "in_file": (5, ">i4"), "record": (9, ">i4"), "number": (13, ">i4"),
    "source_point": (17, ">i4"), "kind": (29, ">i2"),
    "offset": (37, ">i4"), "elevation": (41, ">i4"), "source_elevation": (45, ">i4"),
    "source_depth": (49, ">i4"), "elevation_scale": (69, ">i2"),
    "coordinate_scale": (71, ">i2"), "source_x": (73, ">i4"), "source_y": (77, ">i4"), "x": (81, ">i4"),
    "y": (85, ">i4"), "coordinate_units": (89, ">i2"), "delay": (109, ">i2"), "samples": (115, ">u2"),
    "interval": (117, ">u2"), "cdp_x": (181, ">i4"), "cdp_y": (185, ">i4"), "inline": (189, ">i4"),
    "crossline": (193, ">i4"), "shot_point": (197, ">i4"), "shot_point_scale": (201, ">i2"),
    "unit": (203, ">i2"),
}  # fmt: skip
"""First byte and type of entries of trace headers, by the names used here."""


def _record(keys: Mapping[str, tuple[int, str]], size: int) -> np.dtype[Any]:
    return np.dtype({
        "names": list(keys),
        "formats": [form for _, form in keys.values()],
        "offsets": [byte - 1 for byte, _ in keys.values()],
        "itemsize": size,
    })  # fmt: skip


@dataclass(frozen=True, slots=True)
class SegyFile:
    """A memory-mapped SEG-Y file of traces of equal length, of which only accessed parts are read."""

    path: Path
    samples: int
    """Samples of each trace."""
    interval: int
    """Interval between samples as stated in the file, in microseconds; for depths, by convention, in millimetres."""
    headers: NDArray[Any]
    """Trace headers, one record each with the names of TRACE_KEYS."""
    _raw: NDArray[Any]
    _form: int
    feet: bool = False
    """True if lengths are in feet."""

    @classmethod
    def open(cls, path: Path) -> SegyFile:
        """Open a file; raise CaseError with the reason if it cannot be read as SEG-Y."""
        try:
            size = path.stat().st_size
            with path.open("rb") as stream:
                stream.seek(_TEXT)
                head = stream.read(_BINARY)
        except OSError as error:
            raise CaseError(f"cannot read {path}: {error.strerror}") from error
        if len(head) < _BINARY:
            raise _broken(path, f"it has {size} bytes, but the headers alone need {_TEXT + _BINARY}")
        about = np.frombuffer(head, _record(_FILE_KEYS, _BINARY))[0]
        form, samples, extra = int(about["format"]), int(about["samples"]), int(about["more_text"])
        if form not in (_IBM, _IEEE):
            turned = ": its bytes are in the reverse order" if form >> 8 in (_IBM, _IEEE) and not form & 0xFF else ""
            raise _broken(path, f"its sample format is {form}{turned}; 1 (IBM float) and 5 (IEEE float) can be read")
        first = _TEXT + _BINARY + max(0, extra) * _TEXT
        length = _TRACE + 4 * samples
        if samples == 0 or size <= first or (size - first) % length:
            raise _broken(
                path, f"traces of {samples} samples do not fill its {size} bytes; traces of unequal length are not read"
            )
        kind = np.dtype([("header", _record(TRACE_KEYS, _TRACE)), ("samples", ">u4", (samples,))])
        traces = np.memmap(path, kind, mode="r", offset=first)
        return cls(
            path,
            samples,
            int(about["interval"]),
            traces["header"],
            traces["samples"],
            form,
            int(about["system"]) == _FEET,
        )

    def __len__(self) -> int:
        """Return the number of traces."""
        return len(self._raw)

    def traces(self, which: Any, samples: slice = slice(None)) -> NDArray[np.float32]:
        """Return samples of the traces given by an index array or a slice, with one row per trace."""
        words = np.asarray(self._raw[which, samples] if isinstance(which, slice) else self._raw[which][..., samples])
        if self._form == _IEEE:
            return words.view(">f4").astype("f4")
        return ibm_to_ieee(words.astype("u4"))


def ibm_to_ieee(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Convert 4-byte IBM System/360 floats (sign, exponent of 16 with bias 64, fraction of 24 bits) to IEEE floats."""
    sign = np.where(words >> 31, -1.0, 1.0)
    exponent = ((words >> 24) & 0x7F).astype("i4")
    fraction = (words & 0xFFFFFF).astype("f8")
    values: NDArray[np.float32] = (sign * np.ldexp(fraction, 4 * (exponent - 64) - 24)).astype("f4")
    return values


def metres(headers: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return a coordinate, depth or elevation of trace headers with its scalar applied.

    Scalars are factors if positive and divisors if negative; 0 stands for none.

    Parameters
    ----------
    headers
        Trace headers.
    name
        One of the names of TRACE_KEYS.
    """
    vertical = name in ("elevation", "source_elevation", "source_depth")
    scale = np.asarray(headers["elevation_scale" if vertical else "coordinate_scale"], np.float64)
    size = np.where(scale == 0, 1.0, np.abs(scale))
    given = np.asarray(headers[name], np.float64)
    return np.where(scale < 0, given / size, given * size)


def write_segy(
    path: Path,
    traces: NDArray[Any],
    interval: float,
    *,
    headers: Mapping[str, Any] | None = None,
    text: Sequence[str] = (),
) -> None:
    """Write traces as a SEG-Y file of revision 1 with IEEE floats, which appears only when it is complete.

    Parameters
    ----------
    path
        The file to write.
    traces
        Samples, one row per trace. Any object that can be sliced like an array, so it need not fit into memory.
    interval
        Seconds between samples; for depths kilometres. It is stored in whole microseconds; the textual header has the
        exact value.
    headers
        Entries of trace headers by the names of TRACE_KEYS: a number, or one number for each trace.
    text
        Lines of the textual header, at most 36 of 76 characters each.

    Raises
    ------
    CaseError
        If the format cannot hold the traces.
    RunError
        If the disk fails.
    """
    count, samples = traces.shape
    lines = [*text, f"SAMPLES EVERY {interval * 1e6!r} MICROSECONDS, {count} TRACES"]
    head = file_head(samples, interval, lines, min(count, 32767), sorting=1)
    with appearing(path) as temporary, temporary.open("wb") as stream:
        stream.write(head)
        for low in range(0, count, _TRACES_AT_ONCE):
            part = slice(low, min(count, low + _TRACES_AT_ONCE))
            own = {
                key: value if np.ndim(value) == 0 else np.asarray(value)[part] for key, value in (headers or {}).items()
            }
            numbers = np.arange(low + 1, part.stop + 1)
            numbered = {"in_line": numbers, "in_file": numbers, "number": numbers, "record": 1} | own
            stream.write(trace_bytes(np.asarray(traces[part]), interval, numbered))
        stream.flush()
        os.fsync(stream.fileno())


def file_head(samples: int, interval: float, text: Sequence[str], traces_per_record: int, sorting: int) -> bytes:
    """Return the textual and the binary header of a file.

    Parameters
    ----------
    samples
        Samples of each trace.
    interval
        Seconds between samples.
    text
        Lines of the textual header.
    traces_per_record
        Traces of each record; 0 if they differ.
    sorting
        Code of the order of traces: 1 as recorded, 5 by sources.

    Raises
    ------
    CaseError
        If the format cannot hold such traces.
    """
    micro = round(interval * 1e6)
    if not 0 < micro <= 65535:
        raise CaseError(
            f"SEG-Y allows 1 to 65535 microseconds between samples; these have {interval * 1e6:.6g}",
            remedy="write another format, such as npy",
        )
    if not 0 < samples <= _MOST_SAMPLES:
        raise CaseError(f"a SEG-Y trace has 1 to {_MOST_SAMPLES} samples; these have {samples}")
    about = np.zeros(1, _record(_FILE_KEYS, _BINARY))
    for key, value in {
        "line": 1, "traces_per_ensemble": traces_per_record, "interval": micro, "samples": samples, "format": _IEEE,
        "sorting": sorting, "system": 1, "revision": 0x0100, "fixed": 1,
    }.items():  # fmt: skip
        about[key] = value
    return _text_header(text) + about.tobytes()


def trace_bytes(traces: NDArray[Any], interval: float, headers: Mapping[str, Any]) -> bytes:
    """Return traces with their headers as they are stored.

    Parameters
    ----------
    traces
        Samples, one row for each trace.
    interval
        Seconds between samples.
    headers
        Entries of trace headers by the names of TRACE_KEYS: a number, or one for each trace.
    """
    count, samples = traces.shape
    kind = np.dtype([("header", _record(TRACE_KEYS, _TRACE)), ("samples", ">f4", (samples,))])
    block = np.zeros(count, kind)
    known = {"kind": 1, "coordinate_units": 1, "samples": samples, "interval": round(interval * 1e6)}
    for key, value in (known | dict(headers)).items():
        block["header"][key] = value
    block["samples"] = traces
    return block.tobytes()


def _text_header(lines: Sequence[str]) -> bytes:
    """Encode the textual header: forty lines of eighty EBCDIC characters, the last two as the standard requires."""
    body = [line.upper().encode("ascii", "replace").decode()[:76] for line in lines][:37]
    body += [""] * (38 - len(body)) + ["SEG Y REV1", "END TEXTUAL HEADER"]
    return "".join(f"C{number:2d} {line:76s}" for number, line in enumerate(body, 1)).encode("cp037")


def _broken(path: Path, why: str) -> CaseError:
    return CaseError(
        f"{path} cannot be read as SEG-Y: {why}",
        remedy="convert it to IEEE floats, high bytes first, with traces of equal length",
    )

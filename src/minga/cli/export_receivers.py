"""``minga export --field receivers``: what receivers recorded, as a SEG-Y shot record, an array or a picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

import numpy as np

from minga.errors import CaseError, suggest
from minga.output.directory import RunDirectory, write_whole
from minga.output.traces import read_traces, traces_to_segy
from minga.paths import check_free

__all__ = ["RECEIVERS", "export_receivers"]

RECEIVERS: Final = "receivers"
_SEGY: Final = ("sgy", "segy")
_FORMATS: Final = (*_SEGY, "npy", "png")
_NOTICED: Final = 1.0
"""Microseconds by which the last sample may be off without a word."""


def export_receivers(run: RunDirectory, kind: str, out: Path, force: bool = False) -> str:
    """Write all samples of a run's receivers to ``out``; what was written, in words.

    Raises CaseError where the run has none, or for a format that is not theirs; RunError where the disk refuses.
    """
    if kind not in _FORMATS:
        raise CaseError(
            f"receivers cannot be written as {kind!r}; there are {', '.join(_FORMATS)}",
            key="--format",
            suggestion=suggest(kind, _FORMATS),
        )
    if not out.parent.is_dir():
        raise CaseError(f"the directory {str(out.parent)!r} does not exist", key="--out")
    check_free(out, force, key="--out")
    recorded = read_traces(run.traces)
    rows, columns = recorded.samples.shape
    if kind == "npy":
        stream = io.BytesIO()
        np.save(stream, recorded.samples)
        write_whole(out, stream.getvalue())
    elif kind == "png":
        from minga.view.seismogram import seismogram

        write_whole(out, seismogram(recorded))
    else:
        traces_to_segy(out, recorded)
    rounded = _rounded(recorded.interval, rows) if kind in _SEGY else ""
    return f"{out}: {columns} receivers, {rows} samples each, {recorded.interval * 1e3:.6g} ms apart{rounded}"


def _rounded(interval: float, samples: int) -> str:
    """What is to be said where an interval in seconds is no whole number of microseconds, which SEG-Y keeps."""
    exact = interval * 1e6
    late = abs(round(exact) - exact) * (samples - 1)
    if late < _NOTICED:
        return ""
    return (
        f"\n  SEG-Y keeps whole microseconds: the file says {round(exact)}, so that its last sample is"
        f" {late:.3g} microseconds off; give a time step in whole microseconds to have it exact"
    )

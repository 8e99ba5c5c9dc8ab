"""Comparison of the bits of transforms among the machines of a run.

The transforms of one build of SciPy have the same bits on all machines that its wheels are made for; other builds may
contract multiplications and additions, or use other sines. A fixed line tells.
"""

from __future__ import annotations

import functools
import hashlib
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Final

import numpy as np

from minga.extras import require

if TYPE_CHECKING:
    from minga.engine.engine import Engine

__all__ = ["compare_ranks", "fingerprint"]

_LENGTHS: Final = (64, 60, 97)
_LINES: Final = 8
_compared: weakref.WeakSet[Engine] = weakref.WeakSet()
_lock = threading.Lock()


@functools.cache
def fingerprint() -> str:
    """Return a hash of the transforms of fixed lines, each alone and in a batch.

    Returns
    -------
    str
        The hash; "" if a line alone and in a batch differ, so that results depend on the number of ranks.
    """
    require("scipy")
    from scipy import fft

    found = hashlib.sha256()
    for n in _LENGTHS:
        batch = (np.arange(_LINES * n, dtype=np.int64) ** 2 % 1009 / 1009.0).reshape(_LINES, n)
        for transform in (fft.rfft, fft.dct, fft.dst, lambda x: fft.ifft(fft.fft(x), norm="forward")):
            together = transform(batch)
            if any(transform(line).tobytes() != row.tobytes() for line, row in zip(batch, together, strict=True)):
                return ""
            found.update(together.tobytes())
    return found.hexdigest()


def compare_ranks(engine: Engine) -> None:
    """Compare the transforms of all ranks, once for each engine, and warn on rank 0 if their bits differ. Collective.

    Parameters
    ----------
    engine
        The engine.
    """
    with _lock:
        if engine in _compared:
            return
        _compared.add(engine)
    marks = engine.comm.gather(fingerprint())
    if marks is not None and (len(set(marks)) > 1 or not marks[0]):
        text = "the machines of this run have libraries whose Fourier transforms differ in their last bits"
        if len(set(marks)) == 1:
            text = "the Fourier transforms of this build of SciPy depend on the number of lines"
        warnings.warn(
            f"{text}: results depend on which rank owns what; install the same wheels of SciPy everywhere",
            RuntimeWarning, stacklevel=2,
        )  # fmt: skip

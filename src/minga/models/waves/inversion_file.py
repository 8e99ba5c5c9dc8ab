"""File of an inversion: its medium, its misfits, what it needs to go on with the same bits, and what it belongs to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from minga.errors import CaseError
from minga.models.waves.digests import digest, name_of
from minga.models.waves.medium import Floats
from minga.output.directory import appearing

if TYPE_CHECKING:
    from minga.models.waves.inversion import Inversion

__all__ = ["Stored", "identity", "load", "save"]

_REMEDY: Final = "name another file, or remove this one"


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """Content of a file.

    Parameters
    ----------
    misfits
        Misfit at the start, and after each iteration.
    values
        The medium.
    history
        Misfits and gradients of L-BFGS, in the order of evaluation.
    """

    misfits: Sequence[float]
    values: Mapping[str, Floats]
    history: Sequence[tuple[float, Floats]] = field(default_factory=list)


def identity(inversion: Inversion, start: Mapping[str, Floats]) -> dict[str, str]:
    """Return digests of all that determines a search, by the names that people know.

    Parameters
    ----------
    inversion
        The inversion. Its function `waves` does not count.
    start
        The initial medium.

    Returns
    -------
    dict
        A digest for each argument.
    """
    said: dict[str, Any] = {
        "shots": list(inversion.shots),
        "wrt": list(inversion.wrt),
        "misfit": name_of(inversion.misfit) if callable(inversion.misfit) else inversion.misfit,
        "bounds": {name: [np.asarray(end, np.float64) for end in ends] for name, ends in inversion.bounds.items()},
        "mask": None if inversion.mask is None else np.asarray(inversion.mask, np.float64),
        "units": {name: float(unit) for name, unit in inversion.units.items()},
        "method": inversion.method,
        "precondition": inversion.precondition,
        "start": dict(start),
    }
    if inversion.precondition is not None:
        said["floor"] = float(inversion.floor)
    if inversion.method == "gauss-newton":
        said |= {"inner": int(inversion.inner), "damping": float(inversion.damping)}
    return {name: digest(value) for name, value in said.items()}


def save(file: Path, key: Mapping[str, str], stored: Stored) -> None:
    """Write a file, in place of the one before.

    Parameters
    ----------
    file
        The file.
    key
        Digests of what it belongs to.
    stored
        Its content.
    """
    past = {} if not stored.history else {
        "evaluated": np.array([misfit for misfit, _ in stored.history]),
        "gradients": np.stack([slopes for _, slopes in stored.history]),
    }  # fmt: skip
    with appearing(file) as temporary, temporary.open("wb") as stream:
        np.savez(
            stream,
            allow_pickle=False,
            misfits=np.array(stored.misfits),
            key=np.array(json.dumps(key)),
            **past,
            **stored.values,
        )
        stream.flush()
        os.fsync(stream.fileno())


def load(file: Path, key: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]]) -> Stored:
    """Return the content of a file.

    Parameters
    ----------
    file
        The file.
    key
        Digests of what it should belong to.
    shapes
        Shape of each quantity.

    Returns
    -------
    Stored
        Its content.

    Raises
    ------
    CaseError
        If it cannot be read, or belongs to another inversion.
    """
    found = _read(file)
    differ = _differences(found.pop("key", None), key)
    past = found.pop("evaluated", np.zeros(0)), found.pop("gradients", np.zeros((0, 0)))
    misfits = found.pop("misfits", np.zeros(0))
    sizes = {name: array.shape for name, array in found.items()}
    if differ or sizes != shapes:
        raise CaseError(
            f"{file} is of another inversion: it has "
            + (
                f"other {', '.join(differ)}"
                if differ
                else f"arrays {json.dumps({n: list(s) for n, s in sizes.items()})}"
            ),
            key="file",
            remedy="name another file, or give the arguments of the inversion that has written this one",
        )
    size = sum(array.size for array in found.values())
    whole = misfits.ndim == 1 and misfits.size and past[0].ndim == 1 and past[1].shape in ((len(past[0]), size), (0, 0))
    if not whole or not all(_finite(array) for array in (misfits, *past, *found.values())):
        raise CaseError(f"{file} has damaged arrays", key="file", remedy=_REMEDY)
    history = list(zip(past[0].tolist(), past[1], strict=True))
    return Stored(misfits.tolist(), {name: array.astype(np.float64) for name, array in found.items()}, history)


def _read(file: Path) -> dict[str, Any]:
    """Return all arrays of a file; raise CaseError if it cannot be read."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except Exception as error:  # damaged archives raise errors of many kinds
        raise CaseError(
            f"cannot read {file} as a file of an inversion: {error or type(error).__name__}", key="file", remedy=_REMEDY
        ) from error


def _differences(text: Any, key: Mapping[str, str]) -> list[str]:
    """Return the names of arguments whose digests are not those in a file; all if it has none."""
    try:
        known = json.loads(str(text))
    except ValueError:
        known = None
    if not isinstance(known, dict):
        return list(key)
    return [name for name in {**key, **known} if key.get(name) != known.get(name)]


def _finite(array: Any) -> bool:
    """Return whether an array has finite real numbers only."""
    return array.dtype.kind == "f" and bool(np.isfinite(array).all())

"""Checks of what an inversion is given: each raises CaseError that says what was found, and what to give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from minga.errors import CaseError
from minga.models.waves.domain import is_number
from minga.models.waves.gradient import QUANTITIES
from minga.models.waves.medium import Floats
from minga.models.waves.misfits import MISFITS
from minga.models.waves.shot import Shot

if TYPE_CHECKING:
    from minga.models.waves.inversion import Inversion

__all__ = [
    "Method", "Preconditioner", "check_inversion", "check_run", "check_stages", "checked_start", "is_finite",
    "is_whole", "wrong",
]  # fmt: skip

Method = Literal["l-bfgs", "gauss-newton"]
Preconditioner = Literal["illumination"]


def check_inversion(inversion: Inversion) -> None:
    """Check all arguments of an inversion.

    Parameters
    ----------
    inversion
        The inversion.

    Raises
    ------
    CaseError
        If one of them cannot be.
    """
    _check_shots(inversion.shots)
    if not callable(inversion.waves):
        raise wrong("waves", inversion.waves, "give a function of the medium and a shot that returns prepare(...)")
    _check_wrt(inversion.wrt)
    _check_bounds(inversion.bounds, inversion.wrt)
    mask = inversion.mask
    if mask is not None:
        parts = _array(mask, "biuf")
        if parts is None or parts.ndim == 0 or not ((parts >= 0) & (parts <= 1)).all():
            raise wrong("mask", mask, "give an array of the shape of the model, with numbers from 0 to 1")
    _check_units(inversion.units, inversion.wrt)
    _check_method(inversion)
    if not is_finite(inversion.memory) or inversion.memory < 0:
        raise wrong("memory", inversion.memory, "give a number of bytes: 1_000_000_000")
    if not is_whole(inversion.threads, 1):
        raise wrong("threads", inversion.threads, "give a whole number, 1 or more")


def _check_shots(shots: Any) -> None:
    if not isinstance(shots, list | tuple) or not all(isinstance(shot, Shot) for shot in shots):
        raise wrong("shots", shots, "give a list of Shot(sources, receivers, data)")
    if not shots:
        raise CaseError("an inversion without shots", key="shots", remedy="give at least one, with its data")
    for number, shot in enumerate(shots):
        if shot.data is not None and _array(shot.data, "iuf", nan=True) is None:
            raise CaseError(
                f"the data of shots[{number}] are no array of real numbers",
                key="shots",
                remedy="give a row for each sample, and a column for each receiver (and quantity)",
            )


def _check_wrt(wrt: Any) -> None:
    if not isinstance(wrt, list | tuple) or not all(isinstance(name, str) for name in wrt) or not wrt:
        raise wrong("wrt", wrt, 'give a list of names: ["vp"]')
    for name in wrt:
        if name not in QUANTITIES:
            raise CaseError(
                f"there is no quantity {name!r}", key="wrt", remedy=f"choose from {', '.join(QUANTITIES)}"
            )  # fmt: skip
    if len(set(wrt)) < len(wrt):
        raise wrong("wrt", wrt, "name each quantity once")


def _check_bounds(bounds: Any, wrt: Sequence[str]) -> None:
    if not isinstance(bounds, Mapping):
        raise wrong("bounds", bounds, 'give a mapping: {"vp": (1500.0, 4500.0)}')
    for name, ends in bounds.items():
        if name not in wrt:
            known = name in QUANTITIES
            raise CaseError(
                f"{name!r} is not varied" if known else f"there is no quantity {name!r}",
                key="bounds",
                remedy=f"choose from {', '.join(wrt)}",
            )
        pair = ends if isinstance(ends, list | tuple) or (isinstance(ends, np.ndarray) and ends.ndim) else ()
        low, high = (_array(end, "iuf") for end in pair) if len(pair) == 2 else (None, None)
        if low is None or high is None:
            raise wrong(f"bounds of {name}", ends, "give a lowest and a highest value, numbers or arrays: (1500, 4500)")
        if low.ndim and high.ndim and low.shape != high.shape:
            raise wrong(f"bounds of {name}", ends, "give numbers, or arrays of the shape of the model")
        if (low > high).any():
            raise wrong(f"bounds of {name}", ends, "give the lowest value first, then the highest one")


def _check_units(units: Any, wrt: Sequence[str]) -> None:
    numbers = isinstance(units, Mapping) and all(is_finite(unit) and unit > 0 for unit in units.values())
    if not numbers or not all(name in wrt for name in units):
        raise wrong("units", units, 'give a positive number for quantities of wrt: {"epsilon": 0.5}')


def _check_method(inversion: Inversion) -> None:
    misfit = inversion.misfit
    if not callable(misfit) and not (isinstance(misfit, str) and misfit in MISFITS):
        raise wrong("misfit", misfit, f"choose one of {', '.join(MISFITS)}, or give a function")
    if not isinstance(inversion.method, str) or inversion.method not in get_args(Method):
        raise wrong("method", inversion.method, f"choose one of {', '.join(get_args(Method))}")
    given: Any = inversion.precondition
    if given is not None and not (isinstance(given, str) and given in get_args(Preconditioner)):
        raise wrong("precondition", given, 'choose "illumination" or None')
    if not is_finite(inversion.floor) or inversion.floor <= 0:
        raise wrong("floor", inversion.floor, "give a positive number: 1e-2")
    if not is_finite(inversion.damping) or inversion.damping < 0:
        raise wrong("damping", inversion.damping, "give 0 or a positive number: 1e-3")
    if not is_whole(inversion.inner, 1):
        raise wrong("inner", inversion.inner, "give a whole number, 1 or more")
    if inversion.method == "gauss-newton" and inversion.misfit != "l2":
        raise CaseError(
            f"Gauss-Newton with the misfit {inversion.misfit!r}, which is no sum of squares",
            key="misfit",
            remedy='choose misfit = "l2", or method = "l-bfgs"',
        )


def checked_start(inversion: Inversion, start: Any) -> dict[str, Floats]:
    """Return the initial arrays of the quantities that are varied.

    Parameters
    ----------
    inversion
        The inversion.
    start
        The initial medium, as it was given.

    Returns
    -------
    dict
        An array, f8, for each quantity.

    Raises
    ------
    CaseError
        If an array is missing or has values that are not finite, or if shapes differ, also from those of the mask and
        the bounds.
    """
    if not isinstance(start, Mapping):
        raise wrong("start", start, "give a mapping of arrays: {name: array}")
    if missing := [name for name in inversion.wrt if name not in start]:
        raise CaseError(f"start has no {', '.join(missing)}", key="start", remedy="give an array of each")
    found: dict[str, Floats] = {}
    for name in inversion.wrt:
        values = _array(start[name], "iuf")
        if values is None or values.ndim == 0 or not values.size or not np.isfinite(values).all():
            raise wrong(f"start of {name}", start[name], "give an array of the shape of the model, of finite numbers")
        found[name] = values
    shape = found[inversion.wrt[0]].shape
    others: dict[str, Any] = {f"start of {name}": values for name, values in found.items()}
    others |= {"mask": inversion.mask} if inversion.mask is not None else {}
    others |= {
        f"bounds of {name}": end for name, ends in inversion.bounds.items() for end in ends if np.ndim(end)
    }  # fmt: skip
    for key, value in others.items():
        if np.shape(value) != shape:
            raise wrong(key, value, f"give an array of the shape of start[{inversion.wrt[0]!r}], {shape}")
    return found


def check_run(iterations: object, file: object, callback: object) -> None:
    """Check the further arguments of `Inversion.run`.

    Parameters
    ----------
    iterations, file, callback
        The arguments.

    Raises
    ------
    CaseError
        If one of them cannot be.
    """
    if not is_whole(iterations, 0):
        raise wrong("iterations", iterations, "give a whole number, 0 or more")
    if file is not None and (not isinstance(file, str | Path) or not Path(file).name):
        raise wrong("file", file, 'give the name of a file: "vp.npz"')
    if callback is not None and not callable(callback):
        raise wrong("callback", callback, "give a function of a Progress, or None")


def check_stages(stages: Any) -> None:
    """Check the stages of `run_in_bands`.

    Parameters
    ----------
    stages
        The stages.

    Raises
    ------
    CaseError
        If they are no pairs of a frequency and a number of iterations, or none.
    """
    remedy = "give one or more: [(5.0, 10), (10.0, 10)]"
    if not isinstance(stages, list | tuple):
        raise wrong("stages", stages, remedy)
    if not stages:
        raise CaseError("an inversion without stages", key="stages", remedy=remedy)
    for number, stage in enumerate(stages):
        pair = stage if isinstance(stage, list | tuple) and len(stage) == 2 else (None, None)
        if not is_finite(pair[0]) or not is_whole(pair[1], 0):
            raise wrong(
                f"stages[{number}]", stage, "give a highest frequency in Hz and a number of iterations: (5.0, 10)"
            )


def is_finite(value: Any) -> bool:
    """Return whether a value is one finite real number."""
    return is_number(value) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: Any, least: int) -> bool:
    """Return whether a value is a whole number that is not below another one."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least


def wrong(key: str, value: object, remedy: str) -> CaseError:
    """Return the error for an argument that cannot be.

    Parameters
    ----------
    key
        Name of the argument.
    value
        Its value.
    remedy
        An instruction.
    """
    said = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) and value.ndim else repr(value)
    said = said if len(said) < 100 else f"{said[:100]}..."
    return CaseError(f"the {key} of an inversion: {said}", key=key.split(" of ")[0], remedy=remedy)


def _array(value: Any, kinds: str, *, nan: bool = False) -> Floats | None:
    """Return a value as an array, f8; None if its type is not one of some kinds, or if it has NaN."""
    try:
        found = np.asarray(value)
    except ValueError:  # rows of different lengths
        return None
    if found.dtype.kind not in kinds:
        return None
    found = found.astype(np.float64)
    return found if nan or not np.isnan(found).any() else None

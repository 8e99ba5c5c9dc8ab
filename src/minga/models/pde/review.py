"""A look at a run whose steps may have been too long: values that have grown without bound are no solution."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from minga.engine.diagnostics import Finding

__all__ = ["review_of"]

_GROWN: Final = 1e6
"""Ratio of the largest values after and before a run from which they count as grown without bound."""

Review = Callable[[Mapping[str, Any], Mapping[str, Any]], Finding | None]


def review_of(names: Sequence[str], warnings: Sequence[str]) -> Review | None:
    """Return the function that reviews a run, if there is reason to.

    Parameters
    ----------
    names
        Names of the fields.
    warnings
        What was said before the start.

    Returns
    -------
    callable or None
        A function of the observables before and after the run, as `minga.Model` takes it.
    """
    return functools.partial(_review, tuple(names)) if warnings else None


def _review(names: Sequence[str], first: Mapping[str, Any], last: Mapping[str, Any]) -> Finding | None:
    usual = max(_size(name, first) for name in names) or 1.0
    for name in names:
        before, after = _size(name, first), _size(name, last)
        if after > _GROWN * (before or usual):
            said = f"{name} has grown from {before:.3g} to {after:.3g}"
            return Finding(
                f"{said}: unless the equations themselves grow so, these are numbers of the instability of which the "
                "warning before the start says the cause, and no solution of the equations",
                {"instability": said},
            )
    return None


def _size(name: str, observables: Mapping[str, Any]) -> float:
    return max(abs(float(observables[f"{word}_{name}"])) for word in ("smallest", "largest"))

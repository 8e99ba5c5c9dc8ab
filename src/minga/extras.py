"""Packages that only some of minga's work needs, and the extras of ``pip install`` that bring them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from minga.errors import CaseError

__all__ = ["EXTRAS", "available", "missing", "require"]

EXTRAS: Final = {"matplotlib": "plots", "scipy": "solvers", "xarray": "data"}
"""Extras by the package that they bring; ``all`` brings all of them."""
_WORK: Final = {
    "plots": "pictures, movies and reports",
    "solvers": "Fourier transforms, sparse systems and inversions",
    "data": "datasets, such as those of mg.run, mg.open and mg.sweep",
}


def available(package: str) -> bool:
    """Return True if a package of an extra is installed."""
    return find_spec(package) is not None


def require(package: str) -> None:
    """Raise CaseError if a package of an extra is not installed."""
    if not available(package):
        raise missing(package)


def missing(package: str) -> CaseError:
    """Return the error for a package of an extra that is not installed."""
    extra = EXTRAS[package]
    return CaseError(
        f"{_WORK[extra]} need the package {package}, which is not installed",
        remedy=f'pip install "minga[{extra}]", or "minga[all]" for all of its extras',
    )

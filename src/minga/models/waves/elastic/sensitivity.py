"""Derivatives of the coefficients of elastic waves by P and S velocity and density, and their transpose.

Each coefficient depends on the medium at up to four cells around its place. With mu the harmonic mean of n moduli,

    d mu / d mu_i = mu^2 / (n mu_i^2),    d mu_i / d vs_i = 2 rho_i vs_i,    d mu_i / d rho_i = vs_i^2

and the product of both is 0 where vs_i is 0: the harmonic mean of moduli is n mu_i to first order if mu_i alone
is small, and smaller if others are, while mu_i is of second order in vs_i. So no coefficient depends to first order on
the S velocity of a fluid cell, and derivatives by it are 0 there: fluids stay fluids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from minga.errors import CaseError
from minga.models.waves.domain import folded
from minga.models.waves.elastic.medium import ENTRIES
from minga.models.waves.medium import Floats
from minga.space.box import Box
from minga.space.field import Field

if TYPE_CHECKING:
    from minga.models.waves.elastic.waves import ElasticWaves

__all__ = ["ElasticSensitivity"]


@dataclass(frozen=True, slots=True, eq=False)
class ElasticSensitivity:
    """Derivatives of the fields of an elastic medium.

    Parameters
    ----------
    waves
        The waves.
    """

    waves: ElasticWaves

    def fields(self, wrt: Sequence[str]) -> dict[str, Field]:
        """Return the fields that vary with some quantities, by name; raise CaseError if one of these cannot vary.

        Parameters
        ----------
        wrt
            Quantities: "vp", "vs", "rho".
        """
        found: dict[str, Field] = {}
        for name in wrt:
            if name not in ENTRIES:
                raise CaseError(
                    f"there is no quantity {name!r} of elastic waves",
                    key="wrt",
                    remedy=f"choose from {', '.join(ENTRIES)}",
                )
            if self.waves.coefficients.single(name):
                raise CaseError(
                    f"{name} is one number",
                    key=f"elastic.medium.{name}",
                    remedy="prepare the waves with an array of it",
                )
            found |= {each.name: each for each in self.waves.medium if name in self._entries(each.name)}
        return found

    def changes(self, changes: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the changes of the fields, on the grid, by those of quantities, on the model.

        Parameters
        ----------
        changes
            Changes of quantities, arrays of the model's shape.
        """
        wider = {name: self._widened(change) for name, change in changes.items()}
        found = {}
        for name in self.fields([*changes]):
            total = np.zeros(self.waves.grid.shape)
            for entry, at, factor in self._partials(name):
                if entry in wider:
                    total += factor * wider[entry][at]
            found[name] = total
        return found

    def slopes(self, wrt: Sequence[str], slopes: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return derivatives by quantities, on the model, from those by the fields, on the grid.

        Parameters
        ----------
        wrt
            Quantities.
        slopes
            Derivatives by the fields, arrays of the grid's shape.
        """
        wider = {name: np.zeros(tuple(n + 1 for n in self.waves.grid.shape)) for name in wrt}
        for name, slope in slopes.items():
            for entry, at, factor in self._partials(name):
                if entry in wider:
                    wider[entry][at] += factor * slope
        return {name: self._narrowed(total) for name, total in wider.items()}

    # The grid with one more cell at the end of each axis ------------------------------------------------------------
    def _widened(self, values: Floats) -> Floats:
        """Return values of the model on that grid; layers repeat the outermost cells, periodic axes go on."""
        domain = self.waves.domain
        for axis, (low, high, periodic) in enumerate(zip(domain.low, domain.high, domain.periodic, strict=True)):
            widths = [(low, high + 1) if a == axis else (0, 0) for a in range(values.ndim)]
            values = np.pad(values, widths, mode="wrap" if periodic else "edge")
        return values

    def _narrowed(self, values: Floats) -> Floats:
        """Return sums over the cells that repeat each cell of the model: the transpose of `_widened`."""
        domain = self.waves.domain
        for axis, periodic in enumerate(domain.periodic):
            moved = np.moveaxis(values, axis, 0)
            kept = moved[:-1].copy()
            kept[0 if periodic else -1] += moved[-1]
            values = np.moveaxis(kept, 0, axis)
        return folded(values, domain)

    # Derivatives of a coefficient -----------------------------------------------------------------------------------
    def _entries(self, name: str) -> tuple[str, ...]:
        """Return the quantities on which a coefficient depends."""
        if name.startswith("tau"):
            return ()
        return ENTRIES if name == "lambda" else ("vs", "rho") if name.startswith("mu") else ("rho",)

    def _partials(self, name: str) -> Iterator[tuple[str, Any, Floats]]:
        """Yield quantities that a coefficient depends on, a part of the wider grid, and derivatives by values there."""
        coefficients, shape = self.waves.coefficients, self.waves.grid.shape
        mean = coefficients.values(name, self.waves.grid.box)
        offsets = coefficients.offsets(name)
        for offset in offsets:
            box = Box(offset, tuple(o + n for o, n in zip(offset, shape, strict=True)))
            vp, vs, rho = (coefficients.entry(each, box) for each in ENTRIES)
            at = box.slices((0,) * len(shape))
            p, s = coefficients.factor("q", box), coefficients.factor("shear", box)
            if name == "lambda":
                yield "vp", at, 2.0 * rho * vp * p
                yield "vs", at, -4.0 * rho * vs * s
                yield "rho", at, np.square(vp) * p - 2.0 * np.square(vs) * s
            elif name.startswith("mu"):
                mu = rho * np.square(vs) * s
                ratio = np.divide(mean, mu, out=np.zeros(shape), where=mu > 0)
                by_modulus = np.square(ratio) / len(offsets)
                yield "vs", at, by_modulus * (2.0 * rho * vs * s)
                yield "rho", at, by_modulus * (np.square(vs) * s)
            else:
                yield "rho", at, np.square(mean) / -len(offsets)

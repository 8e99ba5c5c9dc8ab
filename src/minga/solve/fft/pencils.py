"""Layouts whose blocks hold complete lines along one axis: slabs, or pencils where slabs would not suffice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minga.space.box import Box
from minga.space.cuts import best_cartesian, cartesian
from minga.space.layout import Layout

__all__ = ["complete", "interleaved", "pencils", "reshaped"]


def complete(layout: Layout, axis: int) -> bool:
    """Return True if all blocks hold complete lines along an axis."""
    low, high = layout.domain.lo[axis], layout.domain.hi[axis]
    return bool((layout.lo[:, axis] == low).all() and (layout.hi[:, axis] == high).all())


def pencils(layout: Layout, shapes: Sequence[Sequence[int]]) -> list[Layout]:
    """Return for each transform, along the last axis first, a layout with complete lines.

    Consecutive layouts have the same cuts where possible, so that nothing moves between them.

    Parameters
    ----------
    layout
        The layout of the values that are transformed.
    shapes
        The number of points along each axis before each transform.

    Returns
    -------
    list of Layout
        The layouts.
    """
    owners, cells = np.unique(layout.owner), layout.cells()
    weights = cells[owners].astype(np.float64)
    found: list[Layout] = []
    given = layout
    for shape, axis in zip(shapes, range(layout.ndim - 1, -1, -1), strict=True):
        domain = Box.of(shape)
        given = reshaped(given, domain)
        if not complete(given, axis) or layout.replicated:
            given = _lines(domain, axis, owners, weights, layout.ranks)
        found.append(given)
    return found


def reshaped(layout: Layout, domain: Box) -> Layout:
    """Return a layout with the same cuts of a domain that ends elsewhere along some axes."""
    if layout.domain == domain:
        return layout
    ends = np.array(layout.domain.hi)
    hi = np.where(layout.hi == ends, domain.hi, layout.hi)
    return Layout(domain, layout.ranks, layout.lo, hi, layout.owner)


def interleaved(layout: Layout) -> Layout:
    """Return the layout of real and imaginary parts that alternate along the last axis."""
    twice = np.array([1] * (layout.ndim - 1) + [2])
    domain = Box.of(tuple((np.array(layout.domain.shape) * twice).tolist()))
    return Layout(domain, layout.ranks, layout.lo * twice, layout.hi * twice, layout.owner)


def _lines(domain: Box, axis: int, owners: np.ndarray, weights: np.ndarray, ranks: int) -> Layout:
    """Return a layout with complete lines along an axis for some of the ranks."""
    others = [a for a in range(domain.ndim) if a != axis]
    count = len(owners)
    if not others:
        return Layout.single(domain, ranks, int(owners[0]))
    if count <= domain.shape[others[0]] or len(others) == 1:
        parts = [count if a == others[0] else 1 for a in range(domain.ndim)]
        along = [weights.tolist() if a == others[0] else None for a in range(domain.ndim)]
        cut = cartesian(domain, parts, along, granule=1)
    else:
        first, second = others[:2]
        plane = Box.of((domain.shape[first], domain.shape[second]))
        cut = _raised(best_cartesian(plane, count, granule=1), domain, (first, second))
    return Layout(domain, ranks, cut.lo, cut.hi, owners[cut.owner])


def _raised(plane: Layout, domain: Box, axes: tuple[int, int]) -> Layout:
    """Return the layout of a domain that is cut like a plane along two of its axes."""
    lo = np.repeat(np.array([domain.lo]), len(plane), axis=0)
    hi = np.repeat(np.array([domain.hi]), len(plane), axis=0)
    lo[:, list(axes)], hi[:, list(axes)] = plane.lo, plane.hi
    return Layout(domain, plane.ranks, lo, hi, plane.owner)

"""Measures of deposits: fractal dimension by box counting, height, roughness, and the velocity of the front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minga.compile.portable import functions
from minga.errors import CaseError
from minga.models.electrodeposition.problem import CATHODE
from minga.output.directory import RunDirectory
from minga.output.store import FrameReader
from minga.output.variables import faces_of

__all__ = ["Boxes", "DepositHistory", "box_counts", "deposit_history", "gyration"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Numbers of boxes that cover a set of cells.

    Parameters
    ----------
    widths
        Widths of the boxes, in cells: powers of the base, from 1; i8, shape (sizes,).
    counts
        Number of boxes of each width that hold a cell of the set; i8, shape (sizes,).
    """

    widths: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def slopes(self) -> Floats:
        """Local dimension between each width and the next, -d log(count) / d log(width); shape (sizes - 1,)."""
        width, count = (np.asarray(functions.log(values.astype(np.float64))) for values in (self.widths, self.counts))
        return -np.diff(count) / np.diff(width)

    def dimension(self, smallest: int = 1, largest: int | None = None) -> float:
        """Return the fractal dimension, the slope of the least-squares line through log(count) over log(width).

        Parameters
        ----------
        smallest, largest
            Widths of the boxes to use, in cells, both included; by default all. Boxes nearly as wide as the set see a
            solid block, and boxes nearly as small as a branch is thick see a solid branch: leave both out.

        Returns
        -------
        float
            The dimension.

        Raises
        ------
        CaseError
            If fewer than two widths are left.
        """
        last = int(self.widths[-1]) if largest is None else largest
        used = (self.widths >= smallest) & (self.widths <= last)
        if used.sum() < 2:
            raise CaseError(
                f"only {used.sum()} of the widths {self.widths.tolist()} lie between {smallest} and {last} cells",
                key="smallest",
                remedy="a slope needs two or more widths: choose ends farther apart, or count in a larger grid",
            )
        width, count = (functions.log(values[used].astype(np.float64)) for values in (self.widths, self.counts))
        off = width - width.mean()
        return float(-(off * (count - count.mean())).sum() / (off * off).sum())


def box_counts(solid: NDArray[np.generic], base: int = 2) -> Boxes:
    """Count the boxes that cover a set of cells, for boxes of 1, base, base**2, ... cells along each axis.

    Boxes begin at the first cell along each axis; widths end where one box covers the longest axis.

    Parameters
    ----------
    solid
        Cells of the set: not 0; any number of axes, any type of numbers or booleans.
    base
        Ratio of successive widths.

    Returns
    -------
    Boxes
        Widths and counts.

    Raises
    ------
    CaseError
        If no cell belongs to the set, if values are not finite, or if the base is not a whole number above 1.
    """
    values = np.asarray(solid)
    if values.dtype.kind not in "buif" or values.ndim == 0 or not np.isfinite(values).all():
        raise CaseError(
            f"expected an array of finite numbers or booleans, found {values.dtype} with {values.ndim} axes",
            key="solid",
            remedy="pass the solid cells, such as kind == 1",
        )
    if isinstance(base, bool) or not isinstance(base, int) or base < 2:
        raise CaseError(f"the base of the widths is {base!r}", key="base", remedy="give a whole number from 2 on")
    there = values != 0
    if not there.any():
        raise CaseError("no cell belongs to the set", key="solid", remedy="pass a frame in which something has grown")
    places = np.stack(np.nonzero(there))
    widths, counts = [1], [places.shape[1]]
    while widths[-1] < max(there.shape):
        places = np.unique(places // base, axis=1)
        widths.append(widths[-1] * base)
        counts.append(places.shape[1])
    return Boxes(np.array(widths, np.int64), np.array(counts, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class DepositHistory:
    """A deposit over time; all arrays have one value for each frame.

    Parameters
    ----------
    time
        Time, s, or in units of L2/D in scaled cases; f8.
    cells
        Number of solid cells of the cathode and its deposit; i8.
    highest
        Distance of the highest tip from the cathode's plane, m; f8.
    height
        Mean over all columns along y of the distance up to which each is reached, m; f8.
    roughness
        Standard deviation of these distances, m; f8. All columns count alike.
    gyration
        Root mean square distance of the cells' centres from their mean, m; f8. All cells count alike, and 0 if there
        are none.
    solid
        The deposit in the last frame; bool.
    """

    time: Floats
    cells: NDArray[np.int64]
    highest: Floats
    height: Floats
    roughness: Floats
    gyration: Floats
    solid: NDArray[np.bool_]

    def velocity(self, start: float = 0.0, end: float | None = None) -> float:
        """Return the velocity of the front: the slope of the least-squares line through `height` over `time`.

        Parameters
        ----------
        start, end
            The frames to use, as times, both included; by default all.

        Returns
        -------
        float
            The velocity, m/s.

        Raises
        ------
        CaseError
            If fewer than two frames are left.
        """
        last = float(self.time[-1]) if end is None else end
        used = (self.time >= start) & (self.time <= last)
        if used.sum() < 2:
            raise CaseError(
                f"{used.sum()} frames lie between {start:g} and {last:g}",
                key="start",
                remedy="a velocity needs two or more: choose ends farther apart, or keep more frames",
            )
        return _slope(self.time[used], self.height[used])

    def dimension(self, fewest: int = 100, most: int | None = None) -> float:
        """Return the fractal dimension of a deposit that grows from a point: cells grow as gyration^D.

        That is the inverse of the slope of the least-squares line through ln(gyration) over ln(cells).

        Parameters
        ----------
        fewest, most
            The frames to use, as numbers of cells, both included; by default all with 100 or more.

        Returns
        -------
        float
            The dimension.

        Raises
        ------
        CaseError
            If the deposit has fewer than two sizes in these frames.
        """
        last = int(self.cells[-1]) if most is None else most
        used = (self.cells >= fewest) & (self.cells <= last) & (self.gyration > 0.0)
        if np.unique(self.cells[used]).size < 2:
            raise CaseError(
                f"the deposit has fewer than two sizes between {fewest} and {last} cells",
                key="fewest",
                remedy="a dimension needs a deposit that grows: choose ends farther apart, or keep more frames",
            )
        cells, reach = (
            np.asarray(functions.log(values[used].astype(np.float64))) for values in (self.cells, self.gyration)
        )
        return 1.0 / _slope(cells, reach)


def _slope(x: Floats, y: Floats) -> float:
    """Return the slope of the least-squares line."""
    off = x - x.mean()
    return float((off * (y - y.mean())).sum() / (off * off).sum())


def gyration(solid: NDArray[np.bool_], places: Sequence[Floats]) -> float:
    """Return the root mean square distance of cells from their mean, with the places of their centres on each axis."""
    squares = 0.0
    for axis, along in enumerate(places):
        counts = solid.sum(axis=tuple(a for a in range(solid.ndim) if a != axis))
        total = max(int(counts.sum()), 1)
        off = along - (counts * along).sum() / total
        squares += float((counts * off * off).sum()) / total
    return float(np.sqrt(squares))


def deposit_history(directory: str | Path) -> DepositHistory:
    """Read how the deposit of a run has grown.

    Parameters
    ----------
    directory
        Directory of the run.

    Returns
    -------
    DepositHistory
        The deposit in each frame that the run kept.

    Raises
    ------
    CaseError
        If the run kept no frames of a deposit.
    """
    fields = RunDirectory(Path(directory)).fields
    reader = FrameReader.open(fields) if fields.exists() else None
    if reader is None or "kind" not in reader.fields or not reader.steps:
        raise CaseError(
            f"{directory} has no frames of a deposit",
            key="directory",
            remedy='give the directory of a run with growth whose output has the field "kind"',
        )
    axes = reader.coordinates("kind")
    y = [axis.name for axis in axes].index("y")
    edges = faces_of(axes[y].values)
    cells, highest, height, roughness, reach = [], [], [], [], []
    solid = np.zeros(0, bool)
    for index in range(len(reader.steps)):
        solid = reader.frame("kind", index) == CATHODE
        reached = (edges[1:] - edges[0]) * np.moveaxis(solid, y, -1)
        tops = reached.max(axis=-1)
        mean = float(tops.mean())
        cells.append(int(solid.sum()))
        highest.append(float(tops.max()))
        height.append(mean)
        roughness.append(float(np.sqrt(((tops - mean) * (tops - mean)).mean())))
        reach.append(gyration(solid, [axis.values for axis in axes]))
    return DepositHistory(
        np.array(reader.times, np.float64),
        np.array(cells, np.int64),
        np.array(highest, np.float64),
        np.array(height, np.float64),
        np.array(roughness, np.float64),
        np.array(reach, np.float64),
        solid,
    )

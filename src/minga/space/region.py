"""Regions: the cells on which an operation acts, if they are not simply a box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minga.errors import LayoutError
from minga.space.box import Box, Point


@dataclass(frozen=True, slots=True, init=False)
class Region:
    """Cells of a box: all of them, every n-th along each axis, those of one colour, single points, or active tiles.

    Parameters
    ----------
    box
        Box to choose from; None for all points of the stored field.
    stride
        Choose cells whose distance from the box's low end is a multiple of it; one number, or one for each axis.
    colour
        0 or 1: cells whose indices sum to an even or odd number.
    points
        Single cells by index, such as sources and receivers; each is computed once.
    active
        True, or the shape of tiles: leave out tiles in which nothing can change, because the values that determine
        their cells equal those of two steps before. Results are those of all cells; see docs/programs.md for the
        requirements.

    Raises
    ------
    LayoutError
        If the choice is invalid, or cells are chosen in more than one way.
    """

    box: Box | None
    stride: Point | None
    colour: int | None
    points: tuple[Point, ...] | None
    active: Point | None

    def __init__(
        self,
        box: Box | None = None,
        *,
        stride: int | Sequence[int] | None = None,
        colour: int | None = None,
        points: Sequence[Sequence[int]] | None = None,
        active: bool | int | Sequence[int] = False,
    ) -> None:
        chosen = [
            name for name, value in (("stride", stride), ("colour", colour), ("points", points)) if value is not None
        ]
        if len(chosen) > 1:
            raise LayoutError(f"a region with {' and '.join(chosen)}", remedy="choose cells in one way")
        put = object.__setattr__
        put(self, "box", box)
        put(
            self,
            "stride",
            None if stride is None else (stride,) if isinstance(stride, int) else tuple(map(int, stride)),
        )
        put(self, "colour", colour)
        shape = () if active is True else (active,) if isinstance(active, int) else tuple(map(int, active))
        put(self, "active", None if active is False else shape)
        put(self, "points", None if points is None else tuple(sorted({tuple(map(int, p)) for p in points})))
        if self.stride is not None and min(self.stride) < 1:
            raise LayoutError(f"a region with stride {stride}", remedy="use 1 or more along each axis")
        if colour not in (None, 0, 1):
            raise LayoutError(f"a region of colour {colour}", remedy="colours are 0 (even) and 1 (odd)")
        if self.active and min(self.active) < 1:
            raise LayoutError(f"a region of active tiles {active}", remedy="give tiles 1 cell or more along each axis")
        if self.active is not None and (box is not None or chosen):
            raise LayoutError(
                "a region of active tiles with a box or chosen cells", remedy="active tiles are those of all cells"
            )
        if points is not None and not points:
            raise LayoutError("a region of no points", remedy="name one point or more, or leave the operation out")

    @property
    def sparse(self) -> bool:
        """True if some cells of the box are left out."""
        return self.stride is not None or self.colour is not None or self.points is not None

    def within(self, space: Box) -> Region:
        """Return the same cells, with the box (and a stride for each axis) made explicit for the points of a field.

        Parameters
        ----------
        space
            The box of all points of the field.

        Returns
        -------
        Region
            The region with an explicit box.
        """
        if self.points is not None:
            if {len(p) for p in self.points} != {space.ndim}:
                raise LayoutError(
                    f"points with {sorted({len(p) for p in self.points})} indices on a grid of {space.ndim} axes",
                    remedy=f"give {space.ndim} indices for each point",
                )
            lo = tuple(map(min, zip(*self.points, strict=True)))
            hi = tuple(max(values) + 1 for values in zip(*self.points, strict=True))
            return Region(Box(lo, hi), points=self.points)
        box = space if self.box is None else self.box
        stride = self.stride
        if stride is not None:
            stride = stride * space.ndim if len(stride) == 1 else stride
            if len(stride) != space.ndim:
                raise LayoutError(
                    f"a stride of {len(stride)} numbers on {space.ndim} axes", remedy="give one for each axis"
                )
        whole = Region(box, stride=stride, colour=self.colour)
        if self.active is not None:
            object.__setattr__(whole, "active", self._tile(space))
        return whole

    def _tile(self, space: Box) -> Point:
        """Return the shape of active tiles; () if whoever applies the kernel chooses it."""
        active = self.active or ()
        shape = active * space.ndim if len(active) == 1 else active
        if shape and len(shape) != space.ndim:
            raise LayoutError(
                f"active tiles of {len(shape)} lengths on {space.ndim} axes", remedy="give one for each axis"
            )
        return shape


WHOLE = Region()
"""All points."""

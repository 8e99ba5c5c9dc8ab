"""Appearance of a model in pictures, movies, reports and on the live page; no result depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Final

from minga.engine.drawing import Drawing
from minga.errors import LayoutError, ProgramError, shown
from minga.lang.colours import as_colours

if TYPE_CHECKING:
    from minga.space.field import Field

__all__ = ["PLAIN", "FieldStyle", "Presentation"]


@dataclass(frozen=True, slots=True)
class FieldStyle:
    """Appearance of one field in pictures.

    Parameters
    ----------
    colours
        Colours of whole numbers, ``"#rrggbb"`` each, the first for 0; by default pictures choose them.
    signed
        Whether values oscillate around 0, as waves do: pictures then have a colour for each sign.
    logarithmic
        Whether pictures show the decimal logarithm of the values, as of densities that vary by powers of ten; values of
        0 and below have the colour of missing ones.
    section
        For three axes: the axis that pictures cut across, and the position along it in the unit of the axis, such as
        ``("y", 240.0)``; the first axis is drawn downwards.
    along
        The axis that pictures draw to the right, with the other one upwards; by default the last axis is drawn to the
        right.

    Raises
    ------
    LayoutError
        If a colour, an axis or a position is invalid.
    """

    colours: tuple[str, ...] = ()
    signed: bool = False
    section: tuple[str, float] | None = None
    along: str | None = None
    logarithmic: bool = False

    def __post_init__(self) -> None:
        if self.signed and self.logarithmic:
            raise LayoutError("a field that is both signed and logarithmic", remedy="leave one of them out")
        try:
            object.__setattr__(self, "colours", as_colours(self.colours))
        except ValueError as error:
            remedy = 'give one for each value: colours=["#f7f5ef", "#1f3b57"]'
            raise LayoutError(f"colours of a field: {error}", remedy=remedy) from error
        along: object = self.along
        section: object = self.section
        if along is not None and not isinstance(along, str):
            raise LayoutError(f"along={shown(along)}: expected the name of an axis", remedy='write along="y"')
        match section:
            case None:
                pass
            case (str() as axis, Real() as place):
                object.__setattr__(self, "section", (axis, float(place)))
            case other:
                raise LayoutError(
                    f"section={shown(other)}: expected an axis and a position along it",
                    remedy='write section=("y", 240.0)',
                )


PLAIN: Final = FieldStyle()
"""The default style."""


@dataclass(frozen=True, slots=True)
class Presentation:
    """Appearance of a model: styles of its fields, and curves that are drawn together.

    Parameters
    ----------
    fields
        Styles of fields, by name; fields without one have the default style.
    drawings
        Curves of fields or observables that pictures and reports draw together.

    Examples
    --------
    ::

        look = mg.Presentation(fields={"p": mg.FieldStyle(signed=True)})
        mg.Model("waves", grid, (p,), step, presentation=look)
    """

    fields: Mapping[str, FieldStyle] = field(default_factory=dict)
    drawings: tuple[Drawing, ...] = ()

    def style(self, name: str) -> FieldStyle:
        """Return the style of a field.

        Parameters
        ----------
        name
            The name of the field.

        Returns
        -------
        FieldStyle
            Its style, or the default style.
        """
        return self.fields.get(name, PLAIN)

    def check(self, model: str, fields: Mapping[str, Field], observables: Mapping[str, object]) -> None:
        """Raise an error if fields, observables or axes do not exist.

        Parameters
        ----------
        model
            The name of the model, for messages.
        fields, observables
            The fields and observables of the model, by name.

        Raises
        ------
        ProgramError
            If a style or a drawing names a field or an observable that the model does not have.
        LayoutError
            If a style names an axis that the field's grid does not have.
        """
        for name, style in self.fields.items():
            if name not in fields:
                raise ProgramError(
                    f"model {model!r}: a style of {name!r}, which is not one of its fields",
                    remedy=f"its fields are {', '.join(fields)}",
                )
            given: object = style
            if not isinstance(given, FieldStyle):
                raise ProgramError(
                    f"model {model!r}: the style of {name!r} is {shown(given)}",
                    remedy=f"write mg.Presentation(fields={{{name!r}: mg.FieldStyle(...)}})",
                )
            item = fields[name]
            if style.section is not None:
                item.grid.axis(style.section[0])
            if style.along is not None and item.grid.axis(style.along) not in item.axes:
                raise LayoutError(
                    f"field {name!r} does not depend on {style.along!r}, along which it is to be drawn",
                    remedy=f"name one of {', '.join(item.grid.axes[axis] for axis in item.axes)}",
                )
        for drawing in self.drawings:
            known = fields if drawing.over is None else observables
            lost = [n for n in (*drawing.lines.values(), *([drawing.over] if drawing.over else [])) if n not in known]
            if lost:
                raise ProgramError(
                    f"model {model!r}: the drawing {drawing.title!r} of {lost}, which it does not have",
                    remedy="draw fields over an axis, or observables over an observable",
                )

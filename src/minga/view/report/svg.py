"""Drawings as inline SVG: elements whose text and attributes are escaped by construction."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Element", "drawing", "element", "markup", "number", "text"]

Element = ElementTree.Element
Attribute = str | int | float


def element(tag: str, *children: Element, **attributes: Attribute) -> Element:
    """Return an element; ``class_`` is the attribute class, and underscores in names become hyphens."""
    made = Element(tag, {key.rstrip("_").replace("_", "-"): number(value) for key, value in attributes.items()})
    made.extend(children)
    return made


def text(content: str, x: float, y: float, **attributes: Attribute) -> Element:
    """Return text whose baseline begins at (x, y)."""
    made = element("text", x=x, y=y, **attributes)
    made.text = content
    return made


def titled(content: str, made: Element) -> Element:
    """Give an element a tooltip, and return it."""
    title = element("title")
    title.text = content
    made.insert(0, title)
    return made


def drawing(width: float, height: float, *children: Element, label: str, **attributes: Attribute) -> Markup:
    """Return a drawing of this size in pixels, which shrinks with the page; ``label`` is its text alternative."""
    return markup(
        element(
            "svg",
            *children,
            viewBox=f"0 0 {number(width)} {number(height)}",
            width=width,
            height=height,
            role="img",
            aria_label=label,
            **attributes,
        )
    )


def markup(made: Element) -> Markup:
    """Return an element as text that may be put into a page unchanged."""
    from markupsafe import Markup

    return Markup(ElementTree.tostring(made, encoding="unicode"))


def number(value: Attribute) -> str:
    """Format a number without digits that would not be visible."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)

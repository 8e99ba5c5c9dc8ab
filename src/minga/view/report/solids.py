"""The section of a report with the surface of a solid in three dimensions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from markupsafe import Markup

from minga.output.store import FrameReader
from minga.view.pages import png_address
from minga.view.solid import solid_of, solid_picture

__all__ = ["solid_section"]


def solid_section(reader: FrameReader) -> dict[str, Any] | None:
    """Return the values of the section: a picture, and the data and the script that turn it; None without a solid."""
    solid = solid_of(reader)
    if solid is None:
        return None
    script = (Path(__file__).parent / "solid.js").read_text(encoding="utf-8")
    return {
        "picture": png_address(solid_picture(solid)),
        "steps": solid.steps,
        "times": solid.times,
        "axes": solid.axes,
        "colours": solid.colours,
        # Numbers, colours and base64 hold nothing that HTML would take for a tag.
        "data": Markup(json.dumps(solid.data, separators=(",", ":"))),
        "script": Markup(script),
    }

"""The section of a report that turns a run in three dimensions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from minga.output.store import FrameReader
from minga.view.pages import png_address
from minga.view.scene import scene_of
from minga.view.solid import solid_picture

__all__ = ["SCRIPTS", "scene_section"]

SCRIPTS: Final = ("solid.js", "sections.js", "scene.js")
"""Scripts that a page with a scene needs, in order."""


def scene_section(reader: FrameReader) -> dict[str, Any] | None:
    """Return the values of the section: its parts, and the data and scripts that turn them; None without a scene."""
    scene = scene_of(reader)
    if scene is None:
        return None
    here = Path(__file__).parent
    return {
        "scene": scene,
        "picture": png_address(solid_picture(scene.solid)) if scene.solid else None,
        # Numbers, colours and base64 hold nothing that HTML would take for a tag, labels are escaped.
        "data": Markup(json.dumps(scene.data, separators=(",", ":")).replace("<", "\\u003c")),
        "script": Markup("\n".join((here / name).read_text(encoding="utf-8") for name in SCRIPTS)),
    }

"""Pages for browsers: templates filled with values, in one style, that load nothing from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minga.view.amounts import bytes_text, grouped, quantity, seconds_text
from minga.view.progress import rate_text

__all__ = ["fill", "png_address"]

_SHARED = Path(__file__).parent


def fill(template: Path, content: Mapping[str, Any]) -> str:
    """Return the page that a template gives with these values; it may include the templates of this directory."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, _SHARED], encoding="utf-8"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "rate": rate_text,
        "time": seconds_text,
        "quantity": quantity,
        "bytes": bytes_text,
        "grouped": grouped,
    }
    return environment.get_template(template.name).render(**content)


def png_address(picture: bytes) -> str:
    """Return the data URL of a PNG file."""
    return "data:image/png;base64," + base64.b64encode(picture).decode()

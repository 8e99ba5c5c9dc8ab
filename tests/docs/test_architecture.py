"""docs/architecture.md describes the house as it is."""

from __future__ import annotations

import re
from pathlib import Path

import minga
from test_layers import LAYERS

SOURCE = Path(minga.__file__).parent
PAGE = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()


def test_all_files_and_rooms_that_it_names_exist() -> None:
    named = set(re.findall(r"`((?:\w+/)+\w+(?:\.py)?)`", PAGE)) | set(re.findall(r"`([a-z]+)` \|", PAGE))
    assert len(named) > 25
    outside = {"minga/api.py", "minga/examples"}
    assert outside <= named
    places = [SOURCE.parents[1] / name if name.startswith("tests") else SOURCE / name for name in named - outside]
    assert [str(place) for place in places if not place.exists()] == []


def test_it_tells_the_order_of_imports() -> None:
    order = PAGE[PAGE.index("Imports go downwards only") :]
    assert tuple(re.findall(r"`(\w+)`", order[: order.index(";")])) == LAYERS

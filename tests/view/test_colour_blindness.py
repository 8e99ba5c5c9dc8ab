"""Colours that stand beside each other differ for people with any kind of colour blindness.

The simulation is that of Machado, Oliveira and Fernandes, IEEE Trans. Vis. Comput. Graph. 15, 1291, 2009, at full
severity; differences are those of CIE 1976 (1 is just visible beside each other, 10 at a glance).
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import minga.view.pages
from minga.view import colours

SEEN = {
    "everybody": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])
CATEGORIES = "compute|boundary|pack|send|wait|reduce|call|balance|other|output|checkpoint"


def lab(colour: str, kind: str) -> np.ndarray:
    """CIE L*a*b* of a colour as these people see it."""
    shown = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)
    ratio = XYZ @ np.clip(np.asarray(SEEN[kind]) @ linear, 0.0, 1.0) / WHITE
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def palettes() -> dict[str, list[str]]:
    """Sets of colours by name: states, curves in pictures, and the lines and categories of pages."""
    css = (Path(minga.view.pages.__file__).parent / "palette.css").read_text()
    found = {"states": list(colours._STATE_COLOURS), "curves": list(colours.LINES)}
    for scheme, part in zip(("light", "dark"), css.split("@media"), strict=True):
        for name, pattern in (("lines", r"line-\d"), ("categories", CATEGORIES)):
            found[f"{name}, {scheme}"] = re.findall(rf"--(?:{pattern}): (#[0-9a-f]{{6}})", part)
    return found


def test_palettes_are_found() -> None:
    assert {name: len(each) for name, each in palettes().items()} == {
        "states": 6, "curves": 8, "lines, light": 8, "categories, light": 11, "lines, dark": 8, "categories, dark": 11,
    }  # fmt: skip


@pytest.mark.parametrize("kind", SEEN)
@pytest.mark.parametrize("name", list(palettes()))
def test_colours_differ_for_everybody(name: str, kind: str) -> None:
    seen = {colour: lab(colour, kind) for colour in palettes()[name]}
    nearest = min(itertools.combinations(seen, 2), key=lambda pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]))
    assert np.linalg.norm(seen[nearest[0]] - seen[nearest[1]]) >= 20, nearest

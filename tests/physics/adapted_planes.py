"""Devices with two axes whose meshes adapt: coarse meshes, which contain all edges, and what they are solved for."""

from __future__ import annotations

from typing import Any

PIN: dict[str, Any] = {
    "width": 12.0,
    "bias": [-2.0],
    "contacts": {"anode": {"y": [0.0, 4.0]}, "cathode": "ohmic"},
    "layers": [
        {"name": "i", "material": "Si", "thickness": 4.0, "n": 1e15},
        {"name": "n", "material": "Si", "thickness": 1.0, "n": 1e18},
    ],
    "regions": [{"name": "p", "x": [0.0, 0.5], "y": [0.0, 6.0], "doping": -1e18}],
    "mesh": {
        "graded": {"first": "50 nm", "growth": 2.0, "cap": "1 um"},
        "across": {"first": "200 nm", "growth": 2.0, "cap": "2 um"},
    },
}
"""Planar silicon p-i-n diode in the dark, whose anode covers a third of the surface."""

ROUND: dict[str, Any] = PIN | {
    "symmetry": "cylinder",
    "contacts": {"anode": {"y": [3.0, 5.0]}, "cathode": "ohmic"},
    "light": {"wavelength": 850.0, "power": "1 mW/cm2", "side": "anode"},
    "curves": ["lit"],
}
"""A round photodiode in light, whose anode is a ring."""

POLYGON: dict[str, Any] = PIN | {
    "curves": ["lit"],
    "contacts": {"anode": "ohmic", "cathode": "ohmic"},
    "light": {"wavelength": 1310.0, "power": "1 mW/cm2", "side": "cathode"},
    "layers": [
        {"name": "p", "material": "InP", "thickness": 0.5, "p": 1e18},
        {"name": "i", "material": "InP", "thickness": 2.0, "n": 1e15},
        {"name": "n", "material": "InP", "thickness": 0.5, "n": 1e18},
    ],
    "regions": [
        {
            "name": "absorber", "material": "InGaAs", "doping": 1e15,
            "polygon": [[1.0, 0.0], [2.0, 0.0], [2.0, 6.0], [1.5, 6.0], [1.0, 4.0]],
        }
    ],
}  # fmt: skip
"""InP with an absorber of InGaAs whose upper edge is oblique."""

DEVICES = {"pin": PIN, "round": ROUND, "polygon": POLYGON}

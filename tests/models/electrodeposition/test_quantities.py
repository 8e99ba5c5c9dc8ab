"""Quantities as people write them."""

from __future__ import annotations

import pytest

from minga.models.electrodeposition.quantities import Kind, quantity


@pytest.mark.parametrize(
    ("written", "kind", "value"),
    [
        ("500 um", "length", 500e-6), ("500 µm", "length", 500e-6), ("2 km", "length", 2000.0),
        ("1.5cm", "length", 0.015), (2e-3, "length", 2e-3), ("-3 nm", "length", -3e-9),
        ("0.1 M", "concentration", 100.0), ("20 mmol/l", "concentration", 20.0), ("5 mol/m³", "concentration", 5.0),
        ("-20 mV", "potential", -0.02), ("5 mA/cm2", "current", 50.0), ("1e-2 A/cm²", "current", 100.0),
        ("2 A/dm2", "current", 200.0),
        ("2 min", "time", 120.0), ("0.5 us", "time", 5e-7), (3, "time", 3.0),
    ],
)  # fmt: skip
def test_units(written: object, kind: Kind, value: float) -> None:
    assert quantity(written, kind) == value


@pytest.mark.parametrize("written", ["500", "500 mV", "um", "1.2.3 m", "nan", float("inf"), True, None, [1.0], "5 m m"])
def test_what_is_no_length_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match='metres, or a length such as "500 um"'):
        quantity(written, "length")

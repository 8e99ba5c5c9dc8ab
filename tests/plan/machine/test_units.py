"""Quantities as people write them."""

from __future__ import annotations

import pytest

from minga.plan.machine.units import Kind, quantity


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("50 us", "time", 50e-6),
        ("1.5µs", "time", 1.5e-6),
        ("0 s", "time", 0.0),
        (2e-6, "time", 2e-6),
        ("100 Mb/s", "rate", 12.5e6),
        ("100Mbit/s", "rate", 12.5e6),
        ("100mbit/s", "rate", 12.5e6),
        ("1 Gbps", "rate", 125e6),
        ("11 MB/s", "rate", 11e6),
        ("1 MiB/s", "rate", 2**20),
        (5e9, "rate", 5e9),
        ("16 GB", "memory", 16e9),
        ("16 GiB", "memory", 16 * 2**30),
        ("1.2 Gcells/s", "speed", 1.2e9),
        ("3e8 cells/s", "speed", 3e8),
    ],
)
def test_what_people_write(text: object, kind: Kind, value: float) -> None:
    assert quantity(text, kind) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("50 miles", "time", "50 us"),
        ("100 Mb", "rate", "100 Mb/s"),
        ("50 Mbit", "rate", "100 Mb/s"),
        ("16 Gb", "memory", "16 GB"),
        ("fast", "speed", "Gcells/s"),
        ("1.2.3 s", "time", "seconds"),
        (0, "rate", "bytes per second"),
        (-1.0, "time", "seconds"),
        (float("nan"), "speed", "cells"),
        (True, "memory", "bytes"),
        (None, "memory", "bytes"),
    ],
)
def test_what_is_no_quantity_names_one(text: object, kind: Kind, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        quantity(text, kind)
